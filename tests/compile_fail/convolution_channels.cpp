// expect: ill_formed_model<
// expect: {"convolution: channels differ"}
// expect: {"convolution_channels.cpp:14"}
// expect: {"f32[?,8,8,3]"}
// expect: {"f32[3,3,4,16]"}
// expect: {"conv1"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = (scope / "conv1").variable_like(x, "kernel", {3, 3, 4, 16});
        return tg::conv2d(x, w);
    }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, tg::dyn, 8, 8, 3>{}); }
