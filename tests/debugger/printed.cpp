// What debuggers show of these with tools/debugger_printers.py; check.py compares it.
//
// shown: weights = f32[2, 3] {0.5, 1, 1.5, 2, 0.1, nan}
// shown: many = i32[100] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...}
// shown: flags = bool[2] {true, false}
// shown: rounded = bf16[2] {0.1, 3}
// shown: halves = f16[2] {0.1, -3}
// shown: scalar = f64[] {0.1}
// shown: nothing = f64[0] {}
// shown: outline = f32[2, 3] without elements
// shown: dims = [4, 5]
// shown: type = bf16
// shown: kernel = "dense/kernel" f32[2, 3] {0.5, 1, 1.5, 2, 0.1, nan}, not trainable
#include <tapegraph/model/variables.hpp>
#include <tapegraph/tensor.hpp>

namespace tg = tapegraph;

void stop() {}

int main() {
    const tg::tensor<float> weights{{0.5, 1, 1.5}, {2, 0.1, NAN}};
    const tg::tensor<std::int32_t> many = tg::arange<std::int32_t>(100);
    const tg::tensor<bool> flags{true, false};
    const tg::tensor<tg::bfloat16> rounded{0.1, 3};
    const tg::tensor<tg::half> halves{0.1, -3};
    const tg::tensor<double> scalar(0.1), nothing;
    const tg::any_tensor outline = weights.outline();
    [[maybe_unused]] const tg::shape dims{4, 5};
    [[maybe_unused]] const tg::dtype type = tg::dtype::bf16;
    const tg::variable kernel("dense/kernel", weights, false, false);
    stop();
}
