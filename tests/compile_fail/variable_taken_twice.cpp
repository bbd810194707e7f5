// expect: ill_formed_model<
// expect: variable: this path is already taken
// expect: {"dense"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    constexpr auto operator()(auto scope, auto x) const {
        const auto a = (scope / "dense").variable_like(x, "bias", {4});
        const auto b = (scope / "dense").variable_like(x, "bias", {4});
        return eval(x + a + b);
    }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, tg::dyn, 4>{}); }
