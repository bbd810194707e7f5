#include <tapegraph/tapegraph.hpp>

#include <tapegraph/fast_convolution.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace models_test {

namespace tg = tapegraph;

namespace {

/// The choice is the process's, and made before anything convolves: this folder is a program of its own.
[[maybe_unused]] const bool chosen = (tg::set_convolution_algorithm(tg::convolution_algorithm::direct), true);

/// Shapes that `fast`, the default, would take: two dimensions and a line.
struct network {
    constexpr auto operator()(auto scope, auto image) const {
        const auto h = tg::relu(tg::conv2d(scope / "planar", image, {.filters = 32, .kernel_size = 3}));
        const auto line = tg::reshape(h, {-1, 256, 32});
        return tg::dense(scope / "score",
                         tg::flatten(tg::relu(tg::conv1d(scope / "line", line, {.filters = 32, .kernel_size = 40}))),
                         {.units = 3});
    }
};

template <class T>
tg::tensor<T> images() {
    return tg::eval(tg::cast<T>(tg::random::normal<float>({4, 18, 18, 33}, {.seed = 5})));
}

template <class Mode, class T>
auto compiled() {
    return tg::compile<Mode>(network{}, tg::spec<T, tg::dyn, 18, 18, 33>{}, tg::sparse_softmax_cross_entropy{},
                             tg::momentum{.learning_rate = 0.01}, {.seed = 3});
}

} // namespace

TEST_CASE(
    "direct convolutions: both modes have the same bits, and outputs are as near to double's as sums of products are") {
    auto graph = compiled<tg::graph, float>();
    auto eager = compiled<tg::eager, float>();
    auto in_double = compiled<tg::graph, double>();
    for (const auto& v : graph.variables())
        if (!v.optimizer_state())
            in_double.variables()[v.path()].assign(tg::eval(tg::cast<double>(v.template value<float>())));
    // Zeros of an image give zeros exactly, which transforms of tiles do not.
    auto dark = images<float>();
    dark = tg::eval(dark * 0.0f);
    dark.set(1.0f, 0, 0, 0, 0);
    const auto scores = graph.predict(dark).to_vector();
    CHECK(scores == eager.predict(dark).to_vector());
    const auto wanted = in_double.predict(tg::eval(tg::cast<double>(dark))).to_vector();
    for (std::size_t i = 0; i < scores.size(); ++i) CHECK(std::abs(scores[i] - wanted[i]) < 1e-6);

    const tg::tensor<std::int32_t> labels{0, 1, 2, 1};
    for (int step = 0; step < 3; ++step) {
        const double loss = graph.train_on_batch(images<float>(), labels).loss;
        CHECK(loss == eager.train_on_batch(images<float>(), labels).loss);
        // Rounding of 1e-7, multiplied by some ten in each step.
        CHECK(std::abs(loss - in_double.train_on_batch(images<double>(), labels).loss) < 1e-4);
    }
}

TEST_CASE("a choice that comes too late is refused") {
    static_cast<void>(compiled<tg::graph, float>().predict(images<float>()));
    tg::set_convolution_algorithm(tg::convolution_algorithm::direct); // what it is
    CHECK_THROWS_WITH_AS(
        tg::set_convolution_algorithm(tg::convolution_algorithm::automatic),
        "set_convolution_algorithm: choose before the first convolution, whose memory is planned for the other",
        tg::argument_error);
    CHECK(tg::current_convolution_algorithm() == tg::convolution_algorithm::direct);
}

} // namespace models_test
