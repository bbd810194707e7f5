// A trace outlives the string. clang's constant evaluation knows no std::string.
// expect-gcc: a trace keeps the name: write scope /
// expect-clang: the compiler cannot run this
// expect-errors-gcc: 2, one for each call
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct classifier {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / std::string("hidden"), x, {.units = 32});
        return tg::dense(scope / "score", tanh(h), {.units = 1});
    }
};

int main() {
    auto model = tg::compile<tg::graph>(classifier{}, tg::spec<float, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{}, tg::adam{});
    const tg::tensor<float> x = tg::ones<float>({3, 2}), y = tg::ones<float>({3, 1});
    model.train_on_batch(x, y);
    model.evaluate(x, y);
    const tg::tensor<float> z = model.predict(x);
    auto eager = tg::compile<tg::eager>(classifier{}, tg::spec<float, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{}, tg::adam{});
    eager.train_on_batch(x, y);
    eager.evaluate(x, y);
    const tg::tensor<float> w = eager.predict(x);
}
