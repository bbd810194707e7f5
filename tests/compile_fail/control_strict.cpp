// A program of everything, compiled as strictly as users compile theirs: warnings about the headers are the library's, and with
// -fsanitize=undefined g++ does not know that two variables have two addresses, which traces must not need.
// expect-success
// flags: -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsanitize=undefined
#include <tapegraph/compile/features.hpp>
#include <tapegraph/data/synthetic.hpp>
#include <tapegraph/graph/explain.hpp>
#include <tapegraph/io/onnx.hpp>
#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>
#include <tapegraph/nn/scan.hpp>
#include <tapegraph/tapegraph.hpp>
#include <tapegraph/train/summary.hpp>

#include <cstdio>
#include <iostream>

namespace tg = tapegraph;

struct network {
    constexpr auto operator()(auto scope, auto image) const {
        auto h = tg::conv2d(scope / "conv1", image, {.filters = 4, .kernel_size = {3, 3}});
        h = tg::max_pooling2d(tg::batch_normalization(scope / "norm1", relu(h)), {.pool_size = {2, 2}});
        h = tg::dropout(scope / "drop2", h, {.rate = 0.25});
        return tg::dense(scope / "score", tg::flatten(h), {.units = 3});
    }
};
struct text {
    constexpr auto operator()(auto scope, auto words) const {
        auto h = tg::embedding(scope / "words", words, {.input_dim = 50, .output_dim = 8});
        h = tg::gru(scope / "gru", h, {.units = 5, .return_sequences = true});
        h = tg::multi_head_attention(scope / "attention", h, h, {.num_heads = 2, .key_dim = 4});
        return tg::dense(scope / "class", tg::mean(h, 1), {.units = 3});
    }
};

template <class Mode>
void all_of(const tg::tensor<float>& images, const tg::tensor<std::int32_t>& words,
            const tg::tensor<std::int32_t>& classes) {
    auto seen =
        tg::compile<Mode>(network{}, tg::spec<float, tg::dyn, 8, 8, 3>{}, tg::softmax_cross_entropy{}, tg::adam{});
    static_assert(tg::onnx::exportable<decltype(seen)>);
    seen.train_on_batch(images, classes);
    auto inside = tg::compile<Mode>(tg::features<"conv1", "score">(network{}), tg::spec<float, tg::dyn, 8, 8, 3>{});
    (void)inside.predict(images);
    auto read =
        tg::compile<Mode>(text{}, tg::spec<std::int32_t, tg::dyn, 6>{}, tg::softmax_cross_entropy{}, tg::momentum{});
    read.train_on_batch(words, classes);
    std::cout << seen.summary() << read.evaluate(words, classes).loss;
    auto f = [](auto x, auto w) { return sum(square(matmul(x, w))) + mean(exp(x)); };
    auto g = tg::function<Mode>(tg::value_and_gradient(f), tg::spec<double, tg::dyn, 3>{}, tg::spec<double, 3, 2>{});
    (void)g(tg::ones<double>({2, 3}), tg::ones<double>({3, 2}));
}

int main() {
    const auto x = tg::ones<float>({4, 3});
    tg::gradient_tape tape;
    tg::tensor<float> w = tg::random::normal<float>({3, 4}, {.seed = 1});
    tape.watch(w);
    tg::tensor<float> loss = mean(square(tg::einsum("ij,jk->ik", x, w) - 1.f)) + sum(max(w, 0));
    auto dw = tape.gradient(loss, w);
    std::printf("%g\n", static_cast<double>(dw(0, 0)));
    auto cube = [](auto t) { return sum(t * t * t + softmax(t)); };
    (void)tg::hvp(cube)(x, x);
    (void)tg::vmap(tg::gradient(cube))(x);
    all_of<tg::graph>(tg::ones<float>({2, 8, 8, 3}), tg::zeros<std::int32_t>({2, 6}), tg::zeros<std::int32_t>({2}));
    all_of<tg::eager>(tg::ones<float>({2, 8, 8, 3}), tg::zeros<std::int32_t>({2, 6}), tg::zeros<std::int32_t>({2}));
}
