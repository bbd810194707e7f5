// Labels that were forgotten.
// expect: a tensor for each input of the model, then one of labels for each column of its losses
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct net {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "score", x, {.units = 1});
    }
};

int main() {
    auto model = tg::compile<tg::graph>(net{}, tg::spec<float, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{}, tg::adam{});
    const tg::tensor<float> x = tg::ones<float>({3, 2}), y = tg::ones<float>({3, 1});
    model.train_on_batch(x);
}
