// A layer with a name in place of a scope.
// expect: a layer takes a scope first: layer(scope / \"name\", x, ...)
// expect-longer-clang: clang prints the way into a model in twelve lines
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct name_alone {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::dense(scope / "hidden", x, {.units = 4});
        return tg::conv2d("conv", h, {.filters = 3});
    }
};

auto model = tg::compile<tg::graph>(name_alone{}, tg::spec<float, tg::dyn, 8, 8, 1>{});
