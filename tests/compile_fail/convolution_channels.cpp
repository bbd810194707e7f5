// expect: ill_formed_model<
// expect: {"convolution: channels differ"}
// expect: {"convolution_channels.cpp:17"}
// expect: {"f32[?,8,8,3]"}
// expect: {"f32[3,3,4,16]"}
// expect: {"conv1"}
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/training.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

struct wrong {
    static constexpr wrong get() { return {}; }
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = (scope / "conv1").variable_like(x, "kernel", {3, 3, 4, 16});
        return tg::conv2d(x, w);
    }
};

using model = tg::ir::prediction_trace<wrong, tg::spec<float, tg::dyn, 8, 8, 3>>;
const auto& program = tg::ir::compile_program<model>();
