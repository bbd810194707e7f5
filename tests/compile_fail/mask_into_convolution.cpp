// A convolution over time has no mask: padding would count without a word.
// expect: conv1d: it has no mask, padding counts as any step; say so by x.value
// expect-elsewhere: a static_assert in the function
// expect-longer: the layer is in a body that is looked into where tg::compile stands
#include <tapegraph/nn/layers/masking.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct model {
    constexpr auto operator()(auto scope, auto words) const {
        const auto h = tg::embedding(scope / "words", words, {.input_dim = 6, .output_dim = 3}, tg::mask_zero);
        return tg::conv1d(scope / "conv", h, {.filters = 2});
    }
};

int main() {
    auto m = tg::compile<tg::graph>(model{}, tg::spec<float, tg::dyn, tg::dyn>{}, tg::mean_squared_error{}, tg::sgd{});
}
