#pragma once

#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

/// Models, data and comparisons that the tests of several files share.

namespace nn_test {

namespace tg = tapegraph;

/// The layers of the cats-and-dogs CNN with few filters, for images [batch, 26, 26, 3].
struct small_cnn {
    static constexpr int filters[3]{4, 5, 3};
    static constexpr double rate = 0.25;

    constexpr auto operator()(auto scope, auto image) const {
        auto h = tg::conv2d(scope / "conv1", image, {.filters = filters[0], .kernel_size = {3, 3}});
        h = tg::max_pooling2d(tg::batch_normalization(scope / "norm1", relu(h)), {.pool_size = {2, 2}});
        h = tg::conv2d(scope / "conv2", h, {.filters = filters[1], .kernel_size = {5, 5}});
        h = tg::max_pooling2d(tg::batch_normalization(scope / "norm2", relu(h)), {.pool_size = {2, 2}});
        h = tg::dropout(scope / "drop2", h, {.rate = rate});
        h = tg::conv2d(scope / "conv3", h, {.filters = filters[2], .kernel_size = {3, 3}});
        h = tg::max_pooling2d(relu(h), {.pool_size = {2, 2}});
        h = tg::dropout(scope / "drop3", tg::flatten(h), {.rate = rate});
        return tg::dense(scope / "score", h, {.units = 1});
    }
};
template <class T>
using cnn_spec = tg::spec<T, tg::dyn, 26, 26, 3>;

/// 6 numbers to 3 classes, through a hidden layer with dropout.
struct small_mlp {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "hidden", x, {.units = 9});
        h = tg::dropout(scope / "drop", tanh(h), {.rate = 0.3});
        return tg::dense(scope / "out", h, {.units = 3});
    }
};
template <class T>
using mlp_spec = tg::spec<T, tg::dyn, 6>;

/// Numbers in [-1, 1) that depend on the seed alone.
template <class T>
tg::tensor<T> noise(const tg::shape& dims, std::uint64_t seed) {
    auto x = tg::tensor<T>::uninitialized(dims);
    T* const to = x.mutable_data();
    for (std::int64_t i = 0; i < x.size(); ++i)
        to[i] = 2 * tg::random::uniform_at<T>(seed, 0, 77, static_cast<std::uint64_t>(i)) - 1;
    return x;
}
/// Zeros and ones, [count, 1].
template <class T>
tg::tensor<T> coin_flips(std::int64_t count, std::uint64_t seed) {
    auto y = noise<T>({count, 1}, seed);
    for (std::int64_t i = 0; i < count; ++i) y.set(y(i, 0) > 0 ? T(1) : T(0), i, 0);
    return y;
}
/// Class numbers below `classes`, [count].
inline tg::tensor<std::int32_t> classes(std::int64_t count, int classes, std::uint64_t seed) {
    auto y = tg::tensor<std::int32_t>::uninitialized({count});
    for (std::int64_t i = 0; i < count; ++i)
        y.set(static_cast<std::int32_t>(tg::random::uniform_at<double>(seed, 1, 3, static_cast<std::uint64_t>(i)) *
                                        classes),
              i);
    return y;
}

/// Whether two tensors hold the same bits.
inline bool same_bits(const tg::any_tensor& a, const tg::any_tensor& b) {
    return a.type() == b.type() && a.shape() == b.shape() && std::memcmp(a.read(), b.read(), a.view().bytes()) == 0;
}
/// The path of the first variable, optimizer state included, in which two models differ; empty where they are equal.
template <class A, class B>
std::string first_difference(A& a, B& b) {
    if (a.variables().size() != b.variables().size()) return "number of variables";
    for (int i = 0; i < a.variables().size(); ++i) {
        const auto &x = a.variables().at(i), &y = b.variables().at(i);
        if (x.path() != y.path() || !same_bits(x.data(), y.data())) return x.path();
    }
    return {};
}

/// Restores the number of threads at the end of a test.
struct thread_limit {
    explicit thread_limit(int threads) { tg::set_thread_count(threads); }
    ~thread_limit() { tg::set_thread_count(0); }
    thread_limit(const thread_limit&) = delete;
    thread_limit& operator=(const thread_limit&) = delete;
};

/// Trains two models on the same batches, of the given sizes, and demands the same bits of losses, accuracies, variables,
/// evaluations and predictions. `batch(size, seed)` gives a pair of inputs and labels.
template <class A, class B, class Batch>
void train_alike(A& a, B& b, const std::vector<int>& sizes, const Batch& batch) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        CAPTURE(i);
        CAPTURE(sizes[i]);
        const auto [x, y] = batch(sizes[i], 100 + i);
        const tg::step_result left = a.train_on_batch(x, y), right = b.train_on_batch(x, y);
        REQUIRE(left.loss == right.loss);
        REQUIRE(left.accuracy == right.accuracy);
        REQUIRE(first_difference(a, b) == "");
    }
    const auto [x, y] = batch(5, 99);
    const tg::step_result left = a.evaluate(x, y), right = b.evaluate(x, y);
    CHECK(left.loss == right.loss);
    CHECK(left.accuracy == right.accuracy);
    CHECK(same_bits(a.predict(x), b.predict(x)));
}

/// Runs f once with each mode: `each_mode([](auto mode) { ... tg::compile<decltype(mode)>(...) ... })`.
template <class F>
void each_mode(const F& f) {
    SUBCASE("graph") { f(tg::graph{}); }
    SUBCASE("eager") { f(tg::eager{}); }
}

} // namespace nn_test
