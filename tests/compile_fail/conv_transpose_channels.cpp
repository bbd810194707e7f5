// expect: ill_formed_model<
// expect: {"conv_transpose: channels differ"}
// expect: {"conv_transpose_channels.cpp:13"}
// expect: {"f32[?,8,8,3]"}
// expect: {"f32[3,3,16,4]"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto f = tg::function<tg::graph>(
        [](auto x, auto w) { // the kernel's last axis meets the input's channels
            return conv2d_transpose(x, w);
        },
        tg::spec<float, tg::dyn, 8, 8, 3>{}, tg::spec<float, 3, 3, 16, 4>{});
    f(tg::zeros<float>({1, 8, 8, 3}), tg::zeros<float>({3, 3, 16, 4}));
}
