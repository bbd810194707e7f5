// expect: ill_formed_model<
// expect-gcc: {"assign: shape or type of the value differs"}
// expect-clang: {"assign: shape or type of the v
// expect: {"assign_other_shape.cpp:18"}
// expect: {"f32[4]"}
// expect: {"f32[?]"}
// expect: {"state"}
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/training.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

struct wrong {
    static constexpr wrong get() { return {}; }
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = (scope / "state").variable_like(x, "w", {4});
        scope.assign(w, sum(x, 1));
        return x;
    }
};

using model = tg::ir::prediction_trace<wrong, tg::spec<float, tg::dyn, 4>>;
const auto& program = tg::ir::compile_program<model>();
