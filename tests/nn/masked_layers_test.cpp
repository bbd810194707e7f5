#include <tapegraph/nn/layers/masking.hpp>

#include <nn/layer_bench.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace masked_layers_test {

using namespace nn_test;

/// Batch normalization of values with a mask, and masked values put together.

namespace {

// The numbers that Keras's layer was given: 0.4 sin(0.7 k + i).
tg::tensor<double> waves(const tg::shape& dims, double i) {
    auto values = tg::tensor<double>::uninitialized(dims);
    for (std::int64_t k = 0; k < values.size(); ++k)
        values.mutable_data()[k] = 0.4 * std::sin(0.7 * static_cast<double>(k) + i);
    return values;
}

// Steps whose features are both 0 do not count.
struct normalized {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::batch_normalization(scope / "norm", tg::masking(scope / "mask", x), {.momentum = 0.9});
    }
};
struct joined {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::masking(scope / "mask", x);
        const auto both = tg::concat(h, tg::dense(scope / "more", h, {.units = 3}), -1);
        const auto longer = tg::concat(both, tg::dense(scope / "plain", x, {.units = 5}), 1);
        const auto y = tg::batch_normalization(scope / "norm", longer, {.momentum = 0.5});
        return tg::dense(scope / "out", tanh(y), {.units = 1});
    }
};
using input = tg::spec<double, tg::dyn, tg::dyn, 2>;

const tg::tensor<bool> counts{{true, true, true, false}, {true, false, false, false}, {true, true, false, false}};

} // namespace

TEST_CASE_TEMPLATE("masked layers: batch normalization's statistics are Keras's", Mode, tg::graph, tg::eager) {
    auto model =
        tg::compile<Mode>(normalized{}, input{}, tg::mean_squared_error{}, tg::sgd{.learning_rate = 0}, {.seed = 3});
    model.variables()["norm/gamma"].assign(tg::tensor<double>(waves({2}, 2) + 1));
    model.variables()["norm/beta"].assign(waves({2}, 3));
    const tg::tensor<double> x = where(expand_dims(counts, -1), 3 * waves({3, 4, 2}, 1), tg::zeros<double>({3, 4, 2}));
    const auto result = model.train_on_batch(x, tg::zeros<double>({3, 4, 2}));
    // BatchNormalization(momentum=0.9)(x, training=True, mask=counts) of Keras 3.15 (torch backend), which computes in float.
    CHECK(std::abs(result.loss - 1.636581501727129) < 2e-6);
    const tg::tensor<double> mean = model.variables()["norm/moving_mean"].template value<double>(),
                             variance = model.variables()["norm/moving_variance"].template value<double>();
    CHECK(std::abs(mean(0) - 0.03435100242495537) < 1e-7);
    CHECK(std::abs(mean(1) - 0.04440797492861748) < 1e-7);
    CHECK(std::abs(variance(0) - 0.9482538104057312) < 1e-6);
    CHECK(std::abs(variance(1) - 0.9701567888259888) < 1e-6);

    // Nothing counts: mean and variance are 0, as Keras has them.
    auto none = tg::compile<Mode>(normalized{}, input{}, tg::mean_squared_error{}, tg::sgd{});
    CHECK(none.train_on_batch(tg::zeros<double>({2, 3, 2}), tg::ones<double>({2, 3, 2})).loss == 0);
    CHECK(none.variables()["norm/moving_mean"].template value<double>().to_vector() == std::vector<double>{0, 0});
    CHECK(none.variables()["norm/moving_variance"].template value<double>()(0) == doctest::Approx(0.9));
}

TEST_CASE_TEMPLATE("masked layers: padding changes neither statistics nor gradients", Mode, tg::graph, tg::eager) {
    auto one = tg::compile<Mode>(normalized{}, input{}, tg::mean_squared_error{}, tg::sgd{});
    auto two = tg::compile<Mode>(normalized{}, input{}, tg::mean_squared_error{}, tg::sgd{});
    const tg::tensor<double> x = waves({2, 3, 2}, 1), y = waves({2, 3, 2}, 2), zero = tg::zeros<double>({2, 4, 2});
    const tg::tensor<double> padded = tg::concat(x, zero, 1), labels = tg::concat(y, zero, 1);
    for (int step = 0; step < 3; ++step) {
        const double a = one.train_on_batch(x, y).loss, b = two.train_on_batch(padded, labels).loss;
        CHECK(std::abs(a - b) < 1e-14); // sums of as many numbers and zeros, in another order
    }
    for (const tg::variable& v : one.variables()) {
        CAPTURE(v.path());
        const tg::tensor<double> a = v.value<double>(), b = two.variables()[v.path()].template value<double>();
        CHECK(max(abs(a - b)).item() < 1e-14);
    }
}

TEST_CASE("masked layers: both modes give the same bits, at sizes that are no whole number of anything") {
    auto a = tg::compile<tg::graph>(joined{}, input{}, tg::mean_squared_error{}, tg::adam{});
    auto b = tg::compile<tg::eager>(joined{}, input{}, tg::mean_squared_error{}, tg::adam{});
    for (const auto& [batch, time] : {std::pair{3, 4}, {1, 1}, {7, 13}}) {
        tg::tensor<double> x = waves({batch, time, 2}, 1);
        for (std::int64_t k = 0; k < x.size(); k += 6) x.mutable_data()[k] = x.mutable_data()[k + 1] = 0;
        const tg::tensor<double> y = waves({batch, 2 * time, 1}, 4);
        CHECK(a.train_on_batch(x, y).loss == b.train_on_batch(x, y).loss);
    }
    for (const tg::variable& v : a.variables())
        CHECK(same_bits(v.value<double>(), b.variables()[v.path()].value<double>()));
}

TEST_CASE("masked layers: masks of what is put together") {
    const tg::tensor<double> x = waves({2, 3, 2}, 1);
    const tg::tensor<bool> one{{true, true, false}, {true, true, true}}, two{{true, false, false}, {true, false, true}};
    const auto a = tg::with_mask(x, one), b = tg::with_mask(x, two);
    const std::vector<bool> both{true, false, false, true, false, true};
    const auto features = tg::concat(a, b);
    CHECK(features.value.shape() == tg::shape{2, 3, 4});
    CHECK(features.mask.to_vector() == both);
    CHECK(tg::concat({a, b, a}, -1).mask.to_vector() == both);
    CHECK(tg::concat(a, 2 * x, 2).mask.to_vector() == one.to_vector());
    CHECK(tg::concat(x, b, -1).mask.to_vector() == two.to_vector());
    const auto times = tg::concat(a, b, 1);
    CHECK(times.mask.to_vector() ==
          std::vector<bool>{true, true, false, true, false, false, true, true, true, true, false, true});
    CHECK(tg::concat(a, x, -2).mask.to_vector() ==
          std::vector<bool>{true, true, false, true, true, true, true, true, true, true, true, true});
    const auto batches = tg::concat(x, b, 0);
    CHECK(batches.mask.shape() == tg::shape{4, 3});
    CHECK(batches.mask(1, 2));
    CHECK(!batches.mask(2, 1));
    auto used_up = a;
    used_up.has_mask = false;
    CHECK(!tg::concat(used_up, x).has_mask);
    CHECK(tg::concat(used_up, b).mask.to_vector() == two.to_vector());
    CHECK(maximum(a, b).mask.to_vector() == both);
    CHECK(minimum(a, x).mask.to_vector() == one.to_vector());
    CHECK_THROWS_AS(tg::concat(a, tg::with_mask(waves({2, 4, 2}, 1), tg::ones<bool>({2, 4}))), tg::shape_error);
}

} // namespace masked_layers_test
