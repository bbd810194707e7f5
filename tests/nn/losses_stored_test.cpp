#include <nn/models.hpp>
#include <nn/stored_losses.hpp>

#include <tapegraph/nn/losses/all.hpp>

#include <cmath>

namespace losses_stored_test {

/// Losses and their derivatives in both modes against stored ones.

using namespace nn_test;
namespace stored = nn_test::stored_losses;

namespace {

const tg::tensor<double> x{{0.5, -1.25, 3, -2}, {0.125, -0.0625, 2, -0.75}, {1, -1.5, 0.75, 0.25}};
const tg::tensor<double> z{{1, 0.5, 2.5, 0.75}, {0.25, 1, -0.5, -0.5}, {1.5, -2, 0.5, 3}};
const tg::tensor<double> p{{0.5, 0.125, 0.9, 0.2}, {0.0625, 0.6, 0.75, 0.3}, {0.8, 0.4, 0.1, 0.7}};
const tg::tensor<double> b{{1, 0, 1, 0}, {0, 1, 1, 0}, {1, 0, 0, 1}};
const tg::tensor<double> h{{0, 0, 1, 0}, {0, 1, 0, 0}, {1, 0, 0, 0}};
const tg::tensor<std::int32_t> c{2, 1, 0};

/// Value, derivative and loss per record, if there is one.
template <class Loss>
constexpr auto parts(const Loss& loss, const auto& output, const auto& labels) {
    auto both = tg::value_and_gradient([&](const auto& at) { return loss(at, labels); })(output);
    if constexpr (requires { Loss::per_record(output, labels, loss.numbers()); })
        return std::tuple{both.value, both.gradient, Loss::per_record(output, labels, loss.numbers())};
    else if constexpr (requires { Loss::per_record(output, labels); })
        return std::tuple{both.value, both.gradient, Loss::per_record(output, labels)};
    else
        return std::tuple{both.value, both.gradient};
}
/// Of several losses, in their order.
template <class... Loss>
constexpr auto all_parts(const auto& output, const auto& labels, const Loss&... loss) {
    return std::tuple<decltype(parts(loss, output, labels))...>{parts(loss, output, labels)...};
}

template <class T>
void check_close(const tg::tensor<T>& got, const std::vector<double>& expected) {
    REQUIRE(got.size() == static_cast<std::int64_t>(expected.size()));
    // Digits are all there; what is left are the roundings of some ten operations, and of floats the inputs'.
    const double tolerance = std::is_same_v<T, float> ? 1e-6 : 1e-14;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        CHECK(std::abs(static_cast<double>(got.data()[i]) - expected[i]) <=
              tolerance * std::max(1.0, std::abs(expected[i])));
    }
}
template <class... T>
void check_parts(const std::tuple<T...>& got, const stored_loss& expected) {
    check_close(std::get<0>(got), {expected.value});
    check_close(std::get<1>(got), expected.gradient);
    if constexpr (sizeof...(T) == 3) check_close(std::get<2>(got), expected.record);
}
template <class... T>
void check_all(const std::tuple<T...>& got, const std::vector<stored_loss>& expected) {
    std::size_t loss = 0;
    const auto one = [&](const auto& each) {
        CAPTURE(loss);
        check_parts(each, expected[loss++]);
    };
    std::apply([&](const auto&... each) { (one(each), ...); }, got);
    CHECK(loss == expected.size());
}
template <class... T>
bool all_same_bits(const std::tuple<T...>& left, const std::tuple<T...>& right);
template <class T>
bool all_same_bits(const tg::tensor<T>& left, const tg::tensor<T>& right) {
    return same_bits(left, right);
}
template <class... T>
bool all_same_bits(const std::tuple<T...>& left, const std::tuple<T...>& right) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return (all_same_bits(std::get<I>(left), std::get<I>(right)) && ...);
    }
    (std::index_sequence_for<T...>{});
}

/// Both modes on doubles, with the same bits; some in eager mode on floats.
template <bool Floats = false, class F, class Z>
void check(const F& f, const tg::tensor<double>& output, const tg::tensor<Z>& labels,
           const std::vector<stored_loss>& expected) {
    auto compiled = tg::function<tg::graph>(f, typename F::output{}, typename F::labels{});
    const auto graph = compiled(output, labels);
    const auto eager = f(output, labels);
    check_all(graph, expected);
    CHECK(all_same_bits(graph, eager));
    if constexpr (Floats) {
        const auto narrow = [](const auto& t) {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(t)>, tg::tensor<double>>)
                return tg::tensor<float>(cast<float>(t));
            else
                return t;
        };
        check_all(f(narrow(output), narrow(labels)), expected);
    }
}

template <class Z, auto... Extents>
struct of_rows {
    using output = tg::spec<double, tg::dyn, 4>;
    using labels = tg::spec<Z, Extents...>;
};
using of_numbers = of_rows<double, tg::dyn, 4>;
using of_classes = of_rows<std::int32_t, tg::dyn>;

struct of_errors : of_numbers {
    constexpr auto operator()(const auto& v, const auto& w) const {
        return all_parts(v, w, tg::mean_absolute_error{}, tg::mean_absolute_percentage_error{},
                         tg::huber{.delta = 0.75}, tg::log_cosh{}, tg::pinball{.quantile = 0.9},
                         tg::cosine_similarity{}, tg::mean_squared_error{});
    }
};
struct of_positive : of_numbers {
    constexpr auto operator()(const auto& v, const auto& w) const {
        const auto size = tg::eval(abs(w));
        return all_parts(v, size, tg::mean_squared_logarithmic_error{}, tg::poisson{});
    }
};
struct of_scores : of_numbers {
    constexpr auto operator()(const auto& v, const auto& w) const {
        return all_parts(v, w, tg::hinge{}, tg::squared_hinge{}, tg::sigmoid_cross_entropy{},
                         tg::sigmoid_focal_cross_entropy{.gamma = 3},
                         tg::smoothed<tg::sigmoid_cross_entropy>{.label_smoothing = 0.2},
                         tg::smoothed<tg::sigmoid_focal_cross_entropy>{.label_smoothing = 0.2});
    }
};
struct of_one_hot_scores : of_numbers {
    constexpr auto operator()(const auto& v, const auto& w) const {
        return all_parts(v, w, tg::categorical_hinge{}, tg::softmax_cross_entropy{},
                         tg::softmax_focal_cross_entropy{.alpha = 0.5},
                         tg::smoothed<tg::softmax_cross_entropy>{.label_smoothing = 0.2});
    }
};
struct of_probabilities : of_numbers {
    constexpr auto operator()(const auto& v, const auto& w) const {
        return all_parts(
            v, w, tg::kl_divergence{}, tg::binary_cross_entropy{}, tg::binary_focal_cross_entropy{.gamma = 1.5},
            tg::binary_focal_cross_entropy{.apply_class_balancing = true, .alpha = 0.3},
            tg::smoothed<tg::binary_cross_entropy>{.label_smoothing = 0.2}, tg::dice{}, tg::dice_per_record{},
            tg::tversky{.alpha = 0.3, .beta = 0.7}, tg::tversky_per_record{.alpha = 0.3, .beta = 0.7});
    }
};
struct of_one_hot : of_numbers {
    constexpr auto operator()(const auto& v, const auto& w) const {
        return all_parts(v, w, tg::categorical_cross_entropy{}, tg::categorical_focal_cross_entropy{.gamma = 1.5},
                         tg::smoothed<tg::categorical_cross_entropy>{.label_smoothing = 0.2});
    }
};
struct of_class_numbers : of_classes {
    constexpr auto operator()(const auto& v, const auto& w) const {
        return all_parts(v, w, tg::sparse_categorical_cross_entropy{},
                         tg::smoothed<tg::sparse_categorical_cross_entropy>{.label_smoothing = 0.2});
    }
};
struct of_class_scores : of_classes {
    constexpr auto operator()(const auto& v, const auto& w) const {
        return all_parts(v, w, tg::smoothed<tg::sparse_softmax_cross_entropy>{.label_smoothing = 0.2},
                         tg::sparse_softmax_cross_entropy{});
    }
};

} // namespace

TEST_CASE("losses of numbers are Keras's") {
    check<true>(of_errors{}, x, z,
                {stored::mean_absolute_error, stored::mean_absolute_percentage_error, stored::huber, stored::log_cosh,
                 stored::pinball, stored::cosine_similarity, stored::mean_squared_error});
    check(of_positive{}, p, z, {stored::mean_squared_logarithmic_error, stored::poisson});
}

TEST_CASE("losses of scores and logits are Keras's") {
    check<true>(of_scores{}, x, b,
                {stored::hinge, stored::squared_hinge, stored::sigmoid_cross_entropy, stored::sigmoid_focal,
                 stored::smoothed_sigmoid, stored::smoothed_sigmoid_focal});
    check(of_one_hot_scores{}, x, h,
          {stored::categorical_hinge, stored::softmax_cross_entropy, stored::softmax_focal, stored::smoothed_softmax});
    check(of_class_scores{}, x, c, {stored::smoothed_softmax, stored::softmax_cross_entropy});
}

TEST_CASE("losses of probabilities are Keras's") {
    check(of_probabilities{}, p, b,
          {stored::kl_divergence, stored::binary_cross_entropy, stored::binary_focal, stored::binary_focal_balanced,
           stored::smoothed_binary, stored::dice, stored::dice_per_record, stored::tversky,
           stored::tversky_per_record});
    check<true>(of_one_hot{}, p, h,
                {stored::categorical_cross_entropy, stored::categorical_focal, stored::smoothed_categorical});
    check(of_class_numbers{}, p, c, {stored::sparse_categorical_cross_entropy, stored::smoothed_categorical});
}

} // namespace losses_stored_test
