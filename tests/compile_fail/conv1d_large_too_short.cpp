// expect: ill_formed_model<
// expect: convolution: kernel larger than padded input
// expect: {"conv1d_large.hpp:14"}
// expect: {"f32[?,140,30]"}
// expect: {"f32[400,30,64]"}
// expect: {"entry/0"}
// The large model of the mode study over the small one's series: the error names the layer's line, the extent and the kernel.
#include "../../examples/models/conv1d_large.hpp"

namespace tg = tapegraph;

int main() {
    auto model = tg::compile<tg::graph>(models::conv1d_large{}, tg::spec<float, tg::dyn, 140, 30>{},
                                        tg::sigmoid_cross_entropy{}, tg::adam{.learning_rate = 1e-4});
    return static_cast<int>(model.parameter_count());
}
