// expect: ill_formed_model<
// expect: convolution: kernel larger than padded input
// expect: {"layer_error.cpp:14"}
// expect: {"f32[?,8,2,3]"}
// expect: {"deep/conv"}
// An error inside a layer of the library names the line that calls the layer, through tg::compile.
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct network {
    constexpr auto operator()(auto scope, auto image) const {
        auto h = relu(image);
        return tg::conv2d(scope / "deep" / "conv", h, {.filters = 4, .kernel_size = {3, 3}});
    }
};

int main() {
    auto model = tg::compile<tg::graph>(network{}, tg::spec<float, tg::dyn, 8, 2, 3>{}, tg::mean_squared_error{}, tg::sgd{});
    return static_cast<int>(model.parameter_count());
}
