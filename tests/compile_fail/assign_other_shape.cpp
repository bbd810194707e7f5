// expect: ill_formed_model<
// expect: assign: shape or type of the value differs
// expect: {"assign_other_shape.cpp:14"}
// expect: {"f32[4]"}
// expect: {"f32[?]"}
// expect: {"state"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = (scope / "state").variable_like(x, "w", {4});
        scope.assign(w, sum(x, 1));
        return x;
    }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, tg::dyn, 4>{}); }
