// The same of a model of two inputs.
// expect: the call of a model is const: constexpr auto operator()(auto scope, auto x) const
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct net {
    constexpr auto operator()(auto scope, auto a, auto b) {
        return tg::dense(scope / "score", a + b, {.units = 1});
    }
};

int main() {
    using input = tg::spec<float, tg::dyn, 2>;
    auto model = tg::compile<tg::graph>(net{}, tg::inputs{tg::input<"a">(input{}), tg::input<"b">(input{})}, tg::mean_squared_error{},
                                        tg::adam{});
}
