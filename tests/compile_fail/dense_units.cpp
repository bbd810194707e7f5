// expect: {"dense: units must be positive"}
// expect: {"dense_units.cpp:12"}
// expect: {"score"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct no_units {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "hidden", x, {.units = 3});
        // The line of the layer, not that of what was sealed last.
        return tg::dense(scope / "score", h, {.units = 0});
    }
};

const auto table = tg::summarize(no_units{}, tg::spec<float, tg::dyn, 2>{});
