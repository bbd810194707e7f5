#include <nn/models.hpp>

#include <support/temporary_folder.hpp>
#include <tapegraph/nn/losses/all.hpp>

#include <array>
#include <cmath>
#include <limits>

namespace losses_ends_test {

/// Losses where formulas end: logits of 1000, probabilities of 0 and 1, zeros; slopes by differences; what is refused.

using namespace nn_test;
using support::contains;
using support::message_of;

namespace {

using matrix = tg::tensor<double>;
using labels = tg::tensor<std::int32_t>;

const matrix extremes{{1000, -1000, 0}, {-1000, 0, 1000}};
const matrix certain{{1, 0, 0}, {0, 0, 1}};
const matrix right{{1, 0, 0}, {0, 0, 1}}, wrong{{0, 1, 0}, {0, 1, 0}};

/// The value, where it and the derivative are finite.
template <class Loss, class Z>
double finite(const Loss& loss, const matrix& x, const Z& z) {
    const auto [value, slope] = tg::value_and_gradient([&](const auto& at) { return loss(at, z); })(x);
    for (const double v : slope.values()) CHECK(std::isfinite(v));
    return value.item();
}
/// The derivative along all of [2, 3] against central differences.
template <class Loss, class Z>
void check_slope(const Loss& loss, const matrix& x, const Z& z) {
    const auto [value, slope] = tg::value_and_gradient([&](const auto& at) { return loss(at, z); })(x);
    const double h = 1e-5; // errors of h^2, and of rounding by h: 1e-10
    for (int i = 0; i < 2; ++i)
        for (int k = 0; k < 3; ++k) {
            CAPTURE(k);
            matrix up = x.detach(), down = x.detach();
            up.set(x(i, k) + h, i, k);
            down.set(x(i, k) - h, i, k);
            CHECK(std::abs((loss(up, z).item() - loss(down, z).item()) / (2 * h) - slope(i, k)) < 1e-8);
        }
}
double log_of(double p) { return -std::log(p); }

} // namespace

TEST_CASE("losses of logits are finite for logits of 1000") {
    CHECK(finite(tg::sigmoid_focal_cross_entropy{}, extremes, right) == doctest::Approx((2 * 0.25 * std::log(2)) / 6));
    CHECK(finite(tg::sigmoid_focal_cross_entropy{}, extremes, wrong) ==
          doctest::Approx((3000 + 0.25 * std::log(2) + 0.25 * std::log(2)) / 6));
    CHECK(finite(tg::softmax_focal_cross_entropy{}, extremes, right) == 0);
    CHECK(finite(tg::softmax_focal_cross_entropy{}, extremes, wrong) == 0.25 * (2000 + 1000) / 2);
    CHECK(finite(tg::smoothed<tg::softmax_cross_entropy>{.label_smoothing = 0.3}, extremes, right) ==
          doctest::Approx(0.1 * (2000 + 1000 + 2000 + 1000) / 2));
    finite(tg::log_cosh{}, extremes, right);
    CHECK(tg::log_cosh{}(matrix{1000, -1000}, matrix{0, 0}).item() == doctest::Approx(1000 - std::log(2)));
}

TEST_CASE("losses of probabilities are finite for 0 and 1") {
    const double clipped = log_of(1e-7), rest = log_of(1 - 1e-7);
    CHECK(finite(tg::categorical_cross_entropy{}, certain, right) / rest == doctest::Approx(1)); // rest is 1e-7
    CHECK(finite(tg::categorical_cross_entropy{}, certain, wrong) == doctest::Approx(clipped));
    CHECK(finite(tg::sparse_categorical_cross_entropy{}, certain, labels{1, 1}) == doctest::Approx(clipped));
    CHECK(finite(tg::binary_focal_cross_entropy{}, certain, right) < 1e-60);
    CHECK(finite(tg::binary_focal_cross_entropy{}, certain, wrong) == doctest::Approx(clipped * 2 / 3));
    CHECK(finite(tg::categorical_focal_cross_entropy{}, certain, wrong) == doctest::Approx(clipped / 4));
    CHECK(finite(tg::kl_divergence{}, certain, wrong) > 10);
    CHECK(finite(tg::poisson{}, certain, wrong) > 5);
    // Without focus they are the cross-entropies.
    CHECK(finite(tg::binary_focal_cross_entropy{.gamma = 0}, certain, wrong) ==
          doctest::Approx(finite(tg::binary_cross_entropy{}, certain, wrong)));
    CHECK(finite(tg::categorical_focal_cross_entropy{.alpha = 1, .gamma = 0}, certain, right) / rest ==
          doctest::Approx(1));
    const matrix none = tg::zeros<double>({2, 3});
    CHECK(finite(tg::dice{}, none, none) == 1);
    CHECK(finite(tg::tversky_per_record{}, right, right) == doctest::Approx(0));
    CHECK(finite(tg::cosine_similarity{}, none, right) == 0);
    CHECK(finite(tg::mean_absolute_percentage_error{}, right, none) == doctest::Approx(100.0 / 3 / 1e-7));
}

TEST_CASE("derivatives of losses are differences of their values") {
    const matrix x{{0.3, -0.7, 1.1}, {-0.2, 0.9, 0.4}}, z{{0.1, 0.5, -0.3}, {1, -0.6, 0.2}};
    check_slope(tg::huber{.delta = 0.6}, x, z);
    check_slope(tg::log_cosh{}, x, z);
    check_slope(tg::cosine_similarity{}, x, z);
    check_slope(tg::categorical_hinge{}, x, right);
    check_slope(tg::smoothed<tg::sigmoid_focal_cross_entropy>{.loss = {.gamma = 1.5}, .label_smoothing = 0.1}, x,
                right);
    check_slope(tg::softmax_focal_cross_entropy{}, x, wrong);
    check_slope(tg::tversky{.alpha = 0.2, .beta = 0.9}, matrix{{0.3, 0.7, 0.1}, {0.2, 0.9, 0.4}}, right);
}

TEST_CASE("a loss is the mean of what it is per record, whatever the rank") {
    const matrix x = noise<double>({3, 2, 4}, 1), z = noise<double>({3, 2, 4}, 2);
    const tg::huber huber{.delta = 0.5};
    const matrix each = huber.per_record(x, z, huber.numbers());
    CHECK(each.shape() == tg::shape{3, 2});
    CHECK(mean(each).item() == doctest::Approx(huber(x, z).item()));
    const matrix squares = tg::mean_squared_error::per_record(x, z);
    CHECK(mean(squares).item() == doctest::Approx(tg::mean_squared_error{}(x, z).item()));
    const matrix flat{1, 2, 4};
    CHECK(tg::mean_absolute_error::per_record(flat, matrix{0, 0, 0}).to_vector() == std::vector<double>{1, 2, 4});
    const tg::tensor<std::int32_t> classes{{0, 3}, {1, 1}, {2, 0}};
    CHECK(tg::sparse_softmax_cross_entropy::per_record(x, classes).shape() == tg::shape{3, 2});
    const matrix overlaps = tg::dice_per_record::per_record(abs(x), abs(z));
    CHECK(overlaps.shape() == tg::shape{3});
}

TEST_CASE("hinges take labels of -1 and 1 as they are, and of 0 and 1 for them") {
    const matrix x{{0.3, -0.7, 1.1}, {-0.2, 0.9, 0.4}};
    const matrix signs = 2 * right - 1;
    CHECK(tg::hinge{}(x, signs).item() == tg::hinge{}(x, right).item());
    CHECK(tg::squared_hinge{}(x, signs).item() == tg::squared_hinge{}(x, right).item());
    CHECK(tg::hinge::accuracy(x, signs).item() == tg::hinge::accuracy(x, right).item());
    CHECK(tg::hinge::accuracy(x, right).item() == doctest::Approx(4.0 / 6));
    CHECK(tg::hinge::accuracy(matrix{{0.3, -0.7, -1.1}, {-0.2, 0.9, 0.4}}, right).item() == doctest::Approx(5.0 / 6));
    CHECK(tg::categorical_hinge::accuracy(x, right).item() == 0);
}

TEST_CASE("an output at the threshold answers 0") {
    const matrix half{{0.5, 0.5}}, zero{{0, 0}}, half_label{{0.5, 0}};
    CHECK(tg::binary_focal_cross_entropy::accuracy(half, zero).item() == 1);
    CHECK(tg::sigmoid_focal_cross_entropy::accuracy(zero, zero).item() == 1);
    CHECK(tg::sigmoid_focal_cross_entropy::accuracy(zero, half_label).item() == 1);
    CHECK(tg::hinge::accuracy(zero, zero).item() == 1);
}

TEST_CASE("what losses are by default") {
    CHECK(tg::huber{}.numbers() == std::array{1.0});
    CHECK(tg::pinball{}.numbers() == std::array{0.5});
    CHECK(tg::smoothed<tg::softmax_cross_entropy>{}.numbers() == std::array{0.1});
    CHECK(tg::tversky{}.numbers() == std::array{0.5, 0.5});
    CHECK(tg::tversky_per_record{}.numbers() == std::array{0.5, 0.5});
    CHECK(tg::binary_focal_cross_entropy{}.numbers() == std::array{1.0, 1.0, 2.0});
    CHECK(tg::binary_focal_cross_entropy{.apply_class_balancing = true}.numbers() == std::array{0.25, 0.75, 2.0});
    CHECK(tg::softmax_focal_cross_entropy{}.numbers() == std::array{0.25, 2.0});
    CHECK(tg::triplet_semi_hard{}.numbers() == std::array{1.0, 0.0});
    CHECK(tg::triplet_hard{}.numbers() == std::array{1.0, 0.0});
    // By default tversky is dice.
    const matrix x{{0.3, 0.7, 0.1}, {0.2, 0.9, 0.4}};
    CHECK(tg::tversky{}(x, right).item() == doctest::Approx(tg::dice{}(x, right).item()));
}

TEST_CASE("what losses refuse") {
    const matrix x = tg::zeros<double>({2, 1}), z = tg::zeros<double>({2});
    const auto number = [&](const auto& loss) { return message_of<tg::argument_error>([&] { loss(x, x); }); };
    const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
    CHECK(number(tg::pinball{.quantile = 1.5}) == "pinball: quantile 1.5 is outside [0, 1]");
    CHECK(number(tg::huber{.delta = infinity}).starts_with("huber: delta inf must be finite"));
    CHECK(number(tg::huber{.delta = 0}).starts_with("huber: delta 0 must be"));
    CHECK(number(tg::huber{.delta = nan}).starts_with("huber: delta nan must be"));
    CHECK(number(tg::tversky{.alpha = -0.5}) == "tversky: alpha -0.5 must be finite and at least 0");
    CHECK(number(tg::binary_focal_cross_entropy{.gamma = -1}).starts_with("binary_focal_cross_entropy: gamma -1"));
    CHECK(number(tg::smoothed<tg::sigmoid_cross_entropy>{.label_smoothing = 2}) ==
          "smoothed: label_smoothing 2 is outside [0, 1]");
    const auto shapes = [&](const auto& loss) { return message_of<tg::shape_error>([&] { loss(x, z); }); };
    CHECK(contains(shapes(tg::huber{}), "output and labels differ in shape"));
    CHECK(contains(shapes(tg::kl_divergence{}), "output and labels differ in shape"));
    CHECK(contains(shapes(tg::dice{}), "output and labels differ in shape"));
    CHECK(contains(message_of<tg::range_error>([&] {
                       tg::sparse_categorical_cross_entropy{}(certain, labels{0, 3});
                   }),
                   "index 3 at position 1"));
}

} // namespace losses_ends_test
