// expect: ill_formed_model<
// expect: assign: the target is not a variable
// expect: {"assign_to_expression.cpp:12"}
// expect: {"state"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = (scope / "state").variable_like(x, "w", {4});
        scope.assign(w * 2, w + 1);
        return x;
    }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, tg::dyn, 4>{}); }
