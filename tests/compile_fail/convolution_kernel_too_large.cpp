// expect: ill_formed_model<
// expect-gcc: {"convolution: kernel larger than padded input"}
// expect-clang: {"convolution: kernel larger tha
// expect-gcc: {"convolution_kernel_too_large.cpp:19"}
// expect-clang: {"convolution_kernel_too_large.c
// expect: {"f32[?,8,4,3]"}
// expect: {"f32[3,5,3,16]"}
// expect: {"conv1"}
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/training.hpp>
#include <tapegraph/ops/ops.hpp>

namespace tg = tapegraph;

struct wrong {
    static constexpr wrong get() { return {}; }
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = (scope / "conv1").variable_like(x, "kernel", {3, 5, 3, 16});
        return tg::conv2d(x, w);
    }
};

using model = tg::ir::prediction_trace<wrong, tg::spec<float, tg::dyn, 8, 4, 3>>;
const auto& program = tg::ir::compile_program<model>();
