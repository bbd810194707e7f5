// Numbers without a shape where a batch is meant.
// expect: a batch is one tensor, and this has no shape: tg::tensor<float>(values, {records, features})
#include <tapegraph/tapegraph.hpp>

#include <vector>

namespace tg = tapegraph;

struct classifier {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "hidden", x, {.units = 32});
        return tg::dense(scope / "score", tanh(h), {.units = 1});
    }
};

int main() {
    auto model = tg::compile<tg::graph>(classifier{}, tg::spec<float, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{}, tg::adam{});
    const tg::tensor<float> x = tg::ones<float>({3, 2}), y = tg::ones<float>({3, 1});
    const std::vector<float> values(6);
    const tg::tensor<float> z = model.predict(values);
}
