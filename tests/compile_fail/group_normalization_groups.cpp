// expect: group_normalization: groups must divide the channels
// expect: {"group_normalization_groups.cpp:10"}
#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct grouped {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::group_normalization(scope / "norm", x, {.groups = 4});
    }
};

const auto table = tg::summarize(grouped{}, tg::spec<float, tg::dyn, 5, 5, 6>{});
