// expect: ill_formed_model<
// expect: convolution: kernel larger than padded input
// expect: convolution_kernel_too_large.cpp:14
// expect: {"f32[?,8,4,3]"}
// expect: {"f32[3,5,3,16]"}
// expect: {"conv1"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = (scope / "conv1").variable_like(x, "kernel", {3, 5, 3, 16});
        return tg::conv2d(x, w);
    }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, tg::dyn, 8, 4, 3>{}); }
