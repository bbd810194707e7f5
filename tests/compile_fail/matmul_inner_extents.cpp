// expect: ill_formed_model<
// expect: {"matmul: inner extents differ"}
// expect: {"matmul_inner_extents.cpp:18"}
// expect: {"f32[?,512]"}
// expect: {"f32[500,10]"}
// expect: {"mlp/out"}
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/training.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

struct mlp {
    static constexpr mlp get() { return {}; }
    constexpr auto operator()(auto scope, auto x) const {
        const auto layer = scope / "mlp" / "out";
        const auto w = layer.variable_like(x, "kernel", {500, 10});
        return matmul(x, w);
    }
};

using model = tg::ir::prediction_trace<mlp, tg::spec<float, tg::dyn, 512>>;
const auto& program = tg::ir::compile_program<model>();
