#include <cuda/whole_programs.hpp>

#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace models_test {

/// Models on a GPU, or on the imitated device: convolutions, pooling, normalization and dropout in
/// a captured step, and recurrent layers in both modes.

namespace tg = tapegraph;

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        // Without a bias: its gradient would be what rounding leaves of zero, and adam's steps would be that noise's signs.
        auto h = tg::conv2d(scope / "first", x,
                            {.filters = 5, .kernel_size = {3, 3}, .padding = tg::padding::same(), .use_bias = false});
        h = tg::batch_normalization(scope / "norm", h);
        auto p = tg::max_pooling2d(relu(h), {.pool_size = {2, 2}});
        auto q = tg::conv2d(scope / "second", p, {.filters = 6, .kernel_size = {2, 2}});
        auto d = tg::dropout(scope / "drop", tg::flatten(relu(q)), {.rate = 0.25});
        return tg::dense(scope / "score", d, {.units = 1});
    }
};

// Column sums of a formula, as in normalization: the CPU adds them where it computes their terms.
bool has_sums_in_one_pass(const tg::ir::program_view& view) {
    for (const tg::ir::kernel_entry& kernel : view.kernels)
        if (kernel.kind == static_cast<int>(tg::ir::kernel_kind::sums)) return true;
    return false;
}

template <class Mode>
std::vector<double> losses(tg::device where) {
    auto model = tg::compile<Mode>(network{}, tg::spec<float, tg::dyn, 8, 8, 3>{}, tg::sigmoid_cross_entropy{},
                                   tg::adam{.learning_rate = 0.01}, {.seed = 5, .device = where});
    if constexpr (std::is_same_v<Mode, tg::graph>) CHECK(has_sums_in_one_pass(model.training_view()));
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

/// Losses of steps and of an evaluation.
template <class Mode>
std::vector<double> recurrent_losses(tg::device where, std::int64_t batch = 4,
                                     tg::math_mode mode = tg::math_mode::fp32) {
    auto model = tg::compile<Mode>(recurrent_network{}, tg::spec<float, tg::dyn, 5, 3>{}, tg::sigmoid_cross_entropy{},
                                   tg::sgd{.learning_rate = 0.1}, {.seed = 5, .device = where, .math_mode = mode});
    auto x = tg::tensor<float>::uninitialized({batch, 5, 3}), y = tg::tensor<float>::uninitialized({batch, 1});
    for (int i = 0; i < x.size(); ++i) x.mutable_data()[i] = float(i * 31 % 127) / 63 - 1;
    for (int i = 0; i < y.size(); ++i) y.mutable_data()[i] = x.data()[15 * i] > 0 ? 1.0F : 0.0F;
    std::vector<double> all;
    for (int s = 0; s < 6; ++s) {
#ifdef TG_SIMT
        const int before = on_device::launches();
#endif
        all.push_back(model.train_on_batch(x, y).loss);
#ifdef TG_SIMT // no launches of its own: the step is a captured graph
        if (std::is_same_v<Mode, tg::graph> && s == 5 && tg::runtime::capture_steps())
            CHECK(on_device::launches() == before);
#endif
    }
    all.push_back(model.evaluate(x, y).loss);
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

// So many samples that a device of four multiprocessors would process them in several rounds in one
// launch for all steps. Each step is therefore its own launch, in TF32 on tensor cores.
constexpr std::int64_t many = 132;

#ifdef TG_SIMT
template <class Cell>
void check_steps_on_tensor_cores(std::int64_t units) {
    using tg::cuda::recurrent_pass;
    const tg::math_mode_scope in(tg::math_mode::tf32);
    const auto& device = tg::cuda::context::of(0).properties();
    const tg::cuda::recurrent_geometry g{many, 5, units};
    CHECK(tg::cuda::recurrent_detail::feasible_plan<Cell, float, recurrent_pass::forward>(g, device).tensor);
    CHECK(tg::cuda::recurrent_detail::feasible_plan<Cell, float, recurrent_pass::backward>(g, device).tensor);
}
#endif

} // namespace

TEST_CASE("an LSTM, GRUs and a simple RNN in TF32: the same bits in both modes, captured or not, near those of float") {
#ifdef TG_SIMT
    check_steps_on_tensor_cores<tg::cpu::lstm_cell>(7);
    check_steps_on_tensor_cores<tg::cpu::gru_cell<true>>(6);
    check_steps_on_tensor_cores<tg::cpu::gru_cell<false>>(5);
    check_steps_on_tensor_cores<tg::cpu::simple_rnn_cell>(6);
#endif
    const on_device::late_device late;
    const auto there = tg::device::cuda(0);
    const auto captured = recurrent_losses<tg::graph>(there, many, tg::math_mode::tf32);
    tg::runtime::capture_steps() = false;
    const auto launched = recurrent_losses<tg::graph>(there, many, tg::math_mode::tf32);
    tg::runtime::capture_steps() = true;
    CHECK(captured == launched);
    CHECK(captured == recurrent_losses<tg::eager>(there, many, tg::math_mode::tf32));
    const auto exact = recurrent_losses<tg::graph>(there, many);
    CHECK(captured != exact);
    // Factors are off by at most 2^-11; so are sums, relative to their terms, and so are the
    // gradients that steps follow.
    for (std::size_t i = 0; i < exact.size(); ++i) CHECK(std::abs(captured[i] - exact[i]) < 0x1p-11);
}

TEST_CASE("an LSTM, GRUs and a simple RNN train on a device as on the CPU, in both modes") {
    check_recurrent<tg::graph>();
    check_recurrent<tg::eager>();
}

TEST_CASE("a convolutional model trains on a device as on the CPU, on each to the same bits in both modes") {
    const on_device::late_device late;
    const auto there = losses<tg::graph>(tg::device::cuda(0)), here = losses<tg::graph>(tg::device::cpu());
    for (std::size_t i = 0; i < here.size(); ++i) CHECK(there[i] == doctest::Approx(here[i]).epsilon(1e-4));
    CHECK(there == losses<tg::graph>(tg::device::cuda(0)));
    CHECK(there == losses<tg::eager>(tg::device::cuda(0)));
    CHECK(here == losses<tg::eager>(tg::device::cpu()));
}

} // namespace models_test
