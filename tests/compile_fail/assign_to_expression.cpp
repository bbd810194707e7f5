// expect: ill_formed_model<
// expect-gcc: {"assign: the target is not a variable"}
// expect-clang: {"assign: the target is not a va
// expect: {"assign_to_expression.cpp:16"}
// expect: {"state"}
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/training.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

struct wrong {
    static constexpr wrong get() { return {}; }
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = (scope / "state").variable_like(x, "w", {4});
        scope.assign(w * 2, w + 1);
        return x;
    }
};

using model = tg::ir::prediction_trace<wrong, tg::spec<float, tg::dyn, 4>>;
const auto& program = tg::ir::compile_program<model>();
