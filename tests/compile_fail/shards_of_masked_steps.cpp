// A mean over the steps of a mask is not one over records, by which shards are weighted.
// expect: shards: the loss of an output with a mask is a mean over the steps that count, not over records; take x.value
// expect-elsewhere: a static_assert in the model's constructor
// expect-longer: the chain from tg::compile to the constructor names the whole model twice
#include <tapegraph/nn/layers/masking.hpp>
#include <tapegraph/nn/sharded.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct tagger {
    constexpr auto operator()(auto scope, auto words) const {
        const auto h = tg::embedding(scope / "words", words, {.input_dim = 6, .output_dim = 3}, tg::mask_zero);
        return h.map([](auto x) { return eval(x * 2); });
    }
};

int main() {
    auto m = tg::compile<tg::graph>(tagger{}, tg::spec<float, tg::dyn, tg::dyn>{}, tg::mean_squared_error{}, tg::sgd{},
                                    tg::sharded{.shards = 4});
}
