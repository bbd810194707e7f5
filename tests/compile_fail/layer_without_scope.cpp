// A layer called as a function of its input.
// expect: a layer takes a scope first: layer(scope / \"name\", x, ...)
// expect-longer-clang: clang prints the way into a model in twelve lines
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct no_scope {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::dense(scope / "hidden", x, {.units = 4});
        return tg::dense(h, {.units = 3});
    }
};

auto model = tg::compile<tg::graph>(no_scope{}, tg::spec<float, tg::dyn, 4>{});
