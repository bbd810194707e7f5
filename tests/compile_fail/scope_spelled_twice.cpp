// expect: ill_formed_model<
// expect: variable: this path is already taken
// expect: {"block/1"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong { // one path, spelled in two ways
    constexpr auto operator()(auto scope, auto x) const {
        const auto a = (scope / "block" / 1).variable_like(x, "bias", {4});
        const auto b = (scope / "block/1").variable_like(x, "bias", {4});
        return eval(x + a + b);
    }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, tg::dyn, 4>{}); }
