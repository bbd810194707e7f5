#include <cuda/whole_programs.hpp>

#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace models_test {

/// Models on a GPU, or on the imitated device: convolutions, pooling, normalization and dropout in a captured step, and recurrent
/// layers in both modes.

namespace tg = tapegraph;

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::conv2d(scope / "first", x, {.filters = 5, .kernel_size = {3, 3}, .padding = tg::padding::same()});
        h = tg::batch_normalization(scope / "norm", h);
        auto p = tg::max_pooling2d(relu(h), {.pool_size = {2, 2}});
        auto q = tg::conv2d(scope / "second", p, {.filters = 6, .kernel_size = {2, 2}});
        auto d = tg::dropout(scope / "drop", tg::flatten(relu(q)), {.rate = 0.25});
        return tg::dense(scope / "score", d, {.units = 1});
    }
};

std::vector<double> losses(tg::device where) {
    auto model = tg::compile<tg::graph>(network{}, tg::spec<float, tg::dyn, 8, 8, 3>{}, tg::sigmoid_cross_entropy{},
                                        tg::adam{.learning_rate = 0.01}, {.seed = 5, .device = where});
    std::vector<double> all;
    for (int s = 0; s < 6; ++s) {
        auto x = tg::tensor<float>::uninitialized({4, 8, 8, 3});
        for (int i = 0; i < x.size(); ++i) x.mutable_data()[i] = float((i * 31 + s * 17) % 29) / 14 - 1;
        const auto y = tg::from_range<float>(std::vector<float>{0, 1, 1, 0}, {4, 1});
        if (s == 2 || s == 4) model.variables().set_trainable("norm", s == 4); // two steps with inference statistics
        all.push_back(model.train_on_batch(x, y).loss);
    }
    return all;
}

struct recurrent_network {
    constexpr auto operator()(auto scope, auto x) const {
        const auto memory = scope / "memory";
        const auto kernel = memory.variable_like(x, "kernel", {3, 28});
        const auto recurrent = memory.variable_like(x, "recurrent_kernel", {7, 28});
        auto h = tg::lstm(x, kernel, recurrent, tg::no_bias, {.return_sequences = true, .go_backwards = true});
        h = tg::gru(scope / "gru", h, {.units = 6, .return_sequences = true});
        h = tg::gru(scope / "first_form", h, {.units = 5, .reset_after = false, .return_sequences = true});
        h = tg::simple_rnn(scope / "simple", h, {.units = 6});
        return tg::dense(scope / "score", h, {.units = 1});
    }
};

template <class Mode>
std::vector<double> recurrent_losses(tg::device where) {
    auto model = tg::compile<Mode>(recurrent_network{}, tg::spec<float, tg::dyn, 5, 3>{}, tg::sigmoid_cross_entropy{},
                                   tg::adam{.learning_rate = 0.05}, {.seed = 5, .device = where});
    auto x = tg::tensor<float>::uninitialized({4, 5, 3});
    for (int i = 0; i < x.size(); ++i) x.mutable_data()[i] = float(i * 31 % 29) / 14 - 1;
    const auto y = tg::from_range<float>(std::vector<float>{0, 1, 1, 0}, {4, 1});
    std::vector<double> all;
    int launches = 0;
    for (int s = 0; s < 6; ++s) {
        launches = -tg::cuda::driver::imitation::instance().launches;
        all.push_back(model.train_on_batch(x, y).loss);
        launches += tg::cuda::driver::imitation::instance().launches;
    }
    if (std::is_same_v<Mode, tg::graph>) CHECK(launches == 0); // none by itself: the step is a captured graph
    return all;
}

template <class Mode>
void check_recurrent() {
    const on_device::late_device late;
    const auto there = recurrent_losses<Mode>(tg::device::cuda(0)), here = recurrent_losses<Mode>(tg::device::cpu());
    for (std::size_t i = 0; i < here.size(); ++i) CHECK(there[i] == doctest::Approx(here[i]).epsilon(1e-4));
    CHECK(there == recurrent_losses<Mode>(tg::device::cuda(0)));
    CHECK(here.back() < here.front()); // it learns
}

} // namespace

TEST_CASE("an LSTM, GRUs and a simple RNN train on a device as on the CPU, in both modes") {
    check_recurrent<tg::graph>();
    check_recurrent<tg::eager>();
}

TEST_CASE("a convolutional model trains on a device as on the CPU") {
    const on_device::late_device late;
    const auto there = losses(tg::device::cuda(0)), here = losses(tg::device::cpu());
    for (std::size_t i = 0; i < here.size(); ++i) CHECK(there[i] == doctest::Approx(here[i]).epsilon(1e-4));
    CHECK(there == losses(tg::device::cuda(0)));
}

} // namespace models_test
