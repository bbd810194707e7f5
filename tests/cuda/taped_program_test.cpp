#include <cuda/whole_programs.hpp>

#include <doctest/doctest.h>

#include <tuple>

namespace taped_program_test {

/// Compiled programs under a gradient_tape, on a GPU or the imitated device.

namespace tg = tapegraph;

namespace {

struct scorer {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "hidden", x, {.units = 5});
        return tg::dense(scope / "score", tanh(h), {.units = 1});
    }
};
struct two_results {
    constexpr auto operator()(const auto& x, const auto& w) const {
        const auto h = tg::eval(tanh(matmul(x, w)));
        return std::tuple{h, tg::eval(sum(h * x, 1))};
    }
};

tg::tensor<float> numbers(const tg::shape& dims) {
    auto x = tg::tensor<float>::uninitialized(dims);
    for (int i = 0; i < x.size(); ++i) x.mutable_data()[i] = float(i * 31 % 29) / 14 - 1;
    return x;
}

tg::tensor<float> saliency(tg::device where) {
    const tg::device_scope on(where);
    auto model = tg::compile<tg::graph>(scorer{}, tg::spec<float, tg::dyn, 3>{}, tg::sigmoid_cross_entropy{},
                                        tg::sgd{.learning_rate = 0.5}, {.seed = 5});
    tg::tensor<float> x = numbers({4, 3});
    tg::gradient_tape tape;
    tape.watch(x);
    const tg::tensor<float> y = model.predict(x);
    tape.stop_recording();
    model.train_on_batch(x, tg::ones<float>({4, 1})); // the gradient is of the variables as they were
    return tape.gradient(y, x);
}

template <class Mode>
auto function_gradients(tg::device where) {
    const tg::device_scope on(where);
    auto f = tg::function<Mode>(two_results{}, tg::spec<float, tg::dyn, 4>{}, tg::spec<float, 4, 4>{});
    tg::tensor<float> x = numbers({3, 4}), w = numbers({4, 4});
    tg::gradient_tape tape;
    tape.watch(x, w);
    const auto [h, s] = f(x, w);
    return tape.gradient(square(s), x, w); // nothing flows to h
}

void check_close(const tg::tensor<float>& there, const tg::tensor<float>& here) {
    REQUIRE(there.shape() == here.shape());
    for (std::int64_t i = 0; i < here.size(); ++i)
        CHECK(there.data()[i] == doctest::Approx(here.data()[i]).epsilon(1e-4));
    CHECK(here.data()[0] != 0);
}

} // namespace

TEST_CASE("the gradient of a prediction by its input, and of a compiled function, on a device as on the CPU") {
    const on_device::late_device late;
    check_close(saliency(tg::device::cuda(0)), saliency(tg::device::cpu()));
    const auto there = function_gradients<tg::graph>(tg::device::cuda(0));
    const auto here = function_gradients<tg::graph>(tg::device::cpu());
    const auto eager = function_gradients<tg::eager>(tg::device::cpu());
    check_close(std::get<0>(there), std::get<0>(here));
    check_close(std::get<1>(there), std::get<1>(here));
    CHECK(std::get<0>(here).to_vector() == std::get<0>(eager).to_vector());
    CHECK(std::get<1>(here).to_vector() == std::get<1>(eager).to_vector());
}

} // namespace taped_program_test
