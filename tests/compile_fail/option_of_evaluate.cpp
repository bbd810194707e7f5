// Options where evaluate takes a number.
// expect: predict(set, 128), evaluate(set, 128)
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
    model.evaluate(x, y, {.batch_size = 2});
}
