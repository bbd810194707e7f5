#include <tapegraph/nn/constraint.hpp>
#include <tapegraph/nn/layers/activation.hpp>
#include <tapegraph/nn/layers/depthwise_convolution.hpp>
#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/layers/resizing.hpp>
#include <tapegraph/nn/layers/transposed_convolution.hpp>
#include <tapegraph/nn/layers/weight_normalization.hpp>
#include <tapegraph/nn/regularizer.hpp>

#include <nn/layer_bench.hpp>

namespace image_layers_test {

/// Layers of images in both modes: the same bits, gradients that are central differences, penalties in the loss, constraints after
/// the update, rows of the summary.

using namespace nn_test;

namespace {

struct image_model {
    constexpr auto operator()(auto scope, auto x) const { // [batch, 6, 6, 2]
        auto h = tg::depthwise_conv2d(scope / "each", x,
                                      {.padding = tg::padding::same(),
                                       .depth_multiplier = 2,
                                       .depthwise_regularizer = tg::regularizers::l1{0.02}});
        h = tg::prelu(scope / "bend", tg::group_normalization(scope / "norm", h, {.groups = 2}),
                      {.shared_axes = {1, 2}, .alpha_initializer = tg::init::constant{0.25}});
        h = tg::separable_conv2d(scope / "both", h,
                                 {.filters = 3, .stride = 2, .bias_regularizer = tg::regularizers::l2{0.1}});
        h = tg::conv2d_transpose(tg::weight_normalized(scope / "up"), h, {.filters = 2, .kernel_size = 2, .stride = 2});
        h = tg::up_sampling2d(tg::cropping2d(h, {.height = {1, 0}, .width = 1}),
                              {.interpolation = tg::interpolation::bilinear});
        h = tg::layer(scope / "scale", "scaled", h, [](auto s, auto y) {
            return y * s.variable_like(y, "factor", {2}, {.initializer = tg::init::constant{1.5}});
        });
        return tg::dense(
            scope / "score", tg::flatten(tg::zero_padding2d(tanh(h))),
            {.units = 2, .kernel_regularizer = tg::regularizers::orthogonal{.factor = 0.3, .columns = true}});
    }
};

template <class Mode>
auto images() {
    return tg::compile<Mode>(image_model{}, tg::spec<double, tg::dyn, 6, 6, 2>{}, tg::mean_squared_error{},
                             tg::sgd{.learning_rate = 0.1}, {.seed = 3});
}

} // namespace

TEST_CASE("layers of images: both modes train alike, gradients are central differences") {
    auto graph = images<tg::graph>();
    auto eager = images<tg::eager>();
    const std::string summary = graph.summary();
    CAPTURE(summary);
    for (const char* row : {"each (depthwise_conv2d)", "norm (group_normalization)", "bend (prelu)",
                            "both (separable_conv2d)", "up (conv2d_transpose)", "scale (scaled)", "score (dense)"})
        CHECK(summary.find(row) != std::string::npos);
    CHECK(summary.find("[1, ") == std::string::npos);       // nothing that layers do inside
    CHECK(graph.variables()["up/kernel_gain"].size() == 3); // the last axis of its kernel [2, 2, 2, 3]
    CHECK(graph.variables()["each/kernel"].regularizer().a == 0.02);
    train_alike(graph, eager, {4, 3}, [](int size, std::uint64_t seed) {
        return std::pair{noise<double>({size, 6, 6, 2}, seed), noise<double>({size, 2}, seed)};
    });
    check_slopes(graph, eager, noise<double>({2, 6, 6, 2}, 1), noise<double>({2, 2}, 2));
}

namespace {

struct held_model {
    constexpr auto operator()(auto scope, auto x) const {
        const tg::dense_options o{.units = 4,
                                  .kernel_regularizer = tg::regularizers::l1_l2{0.01, 0.02},
                                  .kernel_constraint = tg::constraints::max_norm{.max_value = 0.5},
                                  .bias_constraint = tg::constraints::non_negative{}};
        auto h = tg::dense(scope / "a", x, o);
        // Shared: its penalty counts once.
        h = tg::eval(h + tg::dense((scope / "a").reuse(), tg::eval(square(x)), o));
        h = tg::batch_normalization(scope / "norm", tanh(h), {.gamma_constraint = tg::constraints::unit_norm{}});
        return tg::dense(
            scope / "b", h,
            {.units = 1, .kernel_constraint = tg::constraints::min_max_norm{.min_value = 0.9, .rate = 0.5}});
    }
};

template <class Mode>
auto held() {
    return tg::compile<Mode>(held_model{}, tg::spec<double, tg::dyn, 3>{}, tg::mean_squared_error{},
                             tg::momentum{.learning_rate = 0.1}, {.seed = 1});
}

double norm_of(const tg::tensor<double>& w, std::int64_t column) {
    double squares = 0;
    for (std::int64_t i = 0; i < w.shape()[0].value; ++i) squares += w(i, column) * w(i, column);
    return std::sqrt(squares);
}

} // namespace

TEST_CASE("penalties are part of the loss, constraints hold after each step") {
    auto graph = held<tg::graph>();
    auto eager = held<tg::eager>();
    const auto x = noise<double>({8, 3}, 1), y = noise<double>({8, 1}, 2);
    // Evaluation, too: the loss less the mean squared error of the predictions is the penalty.
    const tg::tensor<double> p = graph.predict(x);
    double error = 0, penalty = 0;
    for (std::int64_t i = 0; i < 8; ++i) error += (p.data()[i] - y.data()[i]) * (p.data()[i] - y.data()[i]) / 8;
    for (const double w : graph.variables()["a/kernel"].value<double>().to_vector())
        penalty += 0.01 * std::abs(w) + 0.02 * w * w;
    CHECK(std::abs(graph.evaluate(x, y).loss - error - penalty) < 1e-14);
    train_alike(graph, eager, {6, 5, 6}, [](int size, std::uint64_t seed) {
        return std::pair{noise<double>({size, 3}, seed), tg::tensor<double>(5 * noise<double>({size, 1}, seed))};
    });
    const auto a = graph.variables()["a/kernel"].value<double>(), bias = graph.variables()["a/bias"].value<double>();
    double largest = 0;
    for (std::int64_t k = 0; k < 4; ++k) {
        largest = std::max(largest, norm_of(a, k));
        CHECK(bias(k) >= 0);
    }
    CHECK(largest < 0.5);
    CHECK(largest > 0.499999); // it was reached
    double gamma = 0;
    for (const double g : graph.variables()["norm/gamma"].value<double>().to_vector()) gamma += g * g;
    CHECK(std::abs(gamma - 1) < 1e-6);
    // A frozen variable is left as it is.
    graph.variables().set_trainable("a", false);
    graph.variables()["a/bias"].assign(tg::full<double>({4}, -1));
    graph.train_on_batch(x, y);
    CHECK(graph.variables()["a/bias"].value<double>()(0) == -1);
}

TEST_CASE("what a regularizer or constraint cannot be is refused, with its variable's scope") {
    layer_bench b;
    const auto x = noise<double>({2, 3}, 1);
    const auto dense = [&](const tg::dense_options& o) { tg::dense(b.scope() / "d", x, o); };
    const auto refuses = [&](const tg::dense_options& o, const char* text) {
        CHECK_THROWS_WITH_AS(dense(o), doctest::Contains(text), tg::argument_error);
    };
    refuses({.kernel_regularizer = tg::regularizers::l2{-1}},
            "regularizer: factors must be finite and not negative, in scope 'd'");
    refuses({.kernel_regularizer = tg::regularizers::l1{NAN}}, "regularizer: factors must be finite");
    refuses({.kernel_initializer = tg::init::variance_scaling{.scale = 0}}, "variance_scaling: scale must be positive");
    refuses({.kernel_constraint = tg::constraints::max_norm{.axis = 2}}, "constraint: axis outside the rank");
    refuses({.kernel_constraint = tg::constraints::max_norm{.max_value = -1}}, "constraint: norms must be finite");
    refuses({.kernel_constraint = tg::constraints::min_max_norm{2, 1}},
            "min_max_norm: min_value must not exceed max_value");
    layer_bench other;
    CHECK_THROWS_WITH_AS(tg::dense(other.scope() / "d", x, {.bias_regularizer = tg::regularizers::orthogonal{}}),
                         doctest::Contains("orthogonal: the variable must be a matrix"), tg::argument_error);
}

} // namespace image_layers_test
