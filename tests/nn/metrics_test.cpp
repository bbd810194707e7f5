#include <nn/models.hpp>

#include <support/graph_runner.hpp>
#include <support/messages.hpp>
#include <tapegraph/nn/metrics/all.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace metrics_test {

/// Metrics over three batches of 4, 1 and 6 records, with and without weights, against Keras 3.15.1 (JAX 0.10.2, float64):
///
///     for x, z, w in batches: m.update_state(z, x, sample_weight=w)
///     m.result()
///
/// with ops.mean as in stored_losses.hpp, and keras.config.set_epsilon(1e-30) for what it adds to denominators in F1 and IoU.

using namespace nn_test;
using support::contains;
using support::message_of;

namespace {

constexpr int sizes[]{4, 1, 6};
// rng = np.random.default_rng(3): uniform in [0.02, 0.98], < 0.4, uniform in [0.25, 2], integers below 3, normal; in 64ths.
const std::vector<double> all_p{
    0.109375, 0.25,     0.796875, 0.578125, 0.109375, 0.4375,   0.484375, 0.171875, 0.71875,  0.125,    0.390625,
    0.515625, 0.4375,   0.578125, 0.734375, 0.9375,   0.296875, 0.640625, 0.6875,   0.296875, 0.015625, 0.953125,
    0.3125,   0.328125, 0.875,    0.578125, 0.46875,  0.765625, 0.046875, 0.703125, 0.375,    0.109375, 0.65625};
const std::vector<double> all_y{0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1,
                                0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0, 1};
const std::vector<double> all_w{1.734375, 0.546875, 1.9375,  1.34375,  1.3125, 1.953125,
                                1.625,    1.625,    0.34375, 0.890625, 0.40625};
const std::vector<double> all_c{0, 0, 2, 0, 1, 2, 1, 0, 0, 0, 1};
const std::vector<double> all_v{
    1.6875,    0.75,    0.75,      1.140625, 0.34375,   -0.640625, -0.796875, -0.796875, 1.375,   -1.453125, -0.59375,
    -0.328125, 0.21875, 0.578125,  -1.25,    -1.734375, 0,         1.21875,   0.75,      0.21875, -0.3125,   0.296875,
    -0.25,     0.8125,  -0.796875, 0.140625, -0.109375, 0.546875,  0.21875,   2.546875,  1.5,     1.5,       -2.046875};

/// Batch number i of numbers with `width` per record; a vector where that is 0.
template <class T = double>
tg::tensor<T> batch(const std::vector<double>& all, int i, int width) {
    int first = 0;
    for (int k = 0; k < i; ++k) first += sizes[k];
    const int per = std::max(width, 1);
    const std::vector<double> part(all.begin() + first * per, all.begin() + (first + sizes[i]) * per);
    return width == 0 ? tg::from_range<T>(part, {sizes[i]}) : tg::from_range<T>(part, {sizes[i], width});
}
auto numbers(const std::vector<double>& all) {
    return [&all](int i) { return batch(all, i, 3); };
}
tg::tensor<std::int32_t> classes_of(int i) { return batch<std::int32_t>(all_c, i, 0); }
tg::tensor<double> one_hot_of(int i) { return tg::one_hot<double>(classes_of(i), 3); }

struct metric_results {
    double plain, weighted, after_reset, at_first;
};
void check_results(std::string_view metric, const metric_results& got, double plain, double weighted,
                   double tolerance) {
    INFO(metric);
    CHECK(std::abs(got.plain - plain) <= tolerance * std::max(1.0, std::abs(plain)));
    CHECK(std::abs(got.weighted - weighted) <= tolerance * std::max(1.0, std::abs(weighted)));
    CHECK(got.after_reset == got.at_first);
}
template <class Metric, class X, class Z>
void check(const Metric& metric, const X& x, const Z& z, double plain, double weighted, double tolerance = 1e-13) {
    tg::metric_accumulator<Metric> without(metric), with(metric);
    const double at_first = with.result();
    for (int i = 0; i < 3; ++i) {
        without.update(x(i), z(i));
        with.update(x(i), z(i), batch(all_w, i, 0));
    }
    const double with_weights = with.result();
    with.reset();
    check_results(Metric::name, {without.result(), with_weights, with.result(), at_first}, plain, weighted, tolerance);
}

/// The state of a metric in a graph: the concatenation of everything that was added.
template <class Handle>
struct collected {
    Handle* all;
    constexpr void add(std::string_view, const tg::shape& dims, const auto& value) const {
        *all = tg::concat(*all, reshape(tg::eval(tg::cast<double>(value)), {dims.elements()}));
    }
};
template <class Metric>
struct update_of {
    constexpr auto operator()(const auto& x, const auto& z, const auto& w) const {
        const auto n = [] {
            if constexpr (requires { Metric::count; })
                return Metric{}.numbers();
            else
                return 0;
        }();
        const auto start = tg::eval(tg::fill<double>(x, {1}, 0));
        auto weighted = start, plain = start;
        Metric::update(collected<decltype(weighted)>{&weighted}, x, z, w, n);
        Metric::update(collected<decltype(weighted)>{&plain}, x, z, 0, n);
        return std::tuple{weighted, plain};
    }
};
template <class Metric, class Z>
void check_modes(const tg::tensor<Z>& z) {
    using labels =
        std::conditional_t<std::is_same_v<Z, double>, tg::spec<double, tg::dyn, 3>, tg::spec<std::int32_t, tg::dyn>>;
    tg::testing::both_modes run(update_of<Metric>{}, tg::spec<double, tg::dyn, 3>{}, labels{},
                                tg::spec<double, tg::dyn>{});
    const std::string difference = run.compare(batch<double>(all_p, 2, 3), z, batch<double>(all_w, 2, 0));
    CHECK_MESSAGE(difference.empty(), Metric::name << ": " << difference);
}

} // namespace

TEST_CASE("accuracies are Keras's") {
    check(tg::binary_accuracy{.threshold = 0.3}, numbers(all_p), numbers(all_y), 0.48484848484848475,
          0.4255884586180714);
    check(tg::categorical_accuracy{}, numbers(all_p), one_hot_of, 0.45454545454545453, 0.3895216400911162);
    check(tg::sparse_categorical_accuracy{}, numbers(all_p), classes_of, 0.45454545454545453, 0.3895216400911162);
    check(tg::top_k_categorical_accuracy<2>{}, numbers(all_p), one_hot_of, 0.7272727272727273, 0.7460136674259681);
    check(tg::sparse_top_k_categorical_accuracy<2>{}, numbers(all_p), classes_of, 0.7272727272727273,
          0.7460136674259681);
}

TEST_CASE("precision, recall and their like are Keras's") {
    const auto p = numbers(all_p), y = numbers(all_y);
    check(tg::precision{.threshold = 0.4}, p, y, 0.42105263157894735, 0.3312368972746331);
    check(tg::recall{.threshold = 0.4}, p, y, 0.6666666666666666, 0.5163398692810458);
    check(tg::f1_score{.threshold = 0.4, .average = tg::averaging::micro}, p, y, 0.5161290322580646,
          0.40357598978288634);
    check(tg::f1_score{.threshold = 0.4}, p, y, 0.4102564102564103, 0.32581630100013065);
    check(tg::f1_score{.threshold = 0.4, .average = tg::averaging::weighted}, p, y, 0.47435897435897434,
          0.3305012065442168);
    check(tg::fbeta_score{.beta = 2, .threshold = 0.4}, p, y, 0.4976190476190476, 0.4180670737571215);
    check(tg::f1_score{.largest = true}, p, one_hot_of, 0.31746031746031744, 0.29016878213002134);
    // Specificity is recall of what is not.
    const auto opposite = [](const std::vector<double>& of) {
        return [&of](int i) { return tg::tensor<double>(1 - batch(of, i, 3)); };
    };
    check(tg::specificity{.threshold = 0.6}, opposite(all_p), opposite(all_y), 0.6666666666666666, 0.5163398692810458);
}

TEST_CASE("areas under curves are Keras's") {
    const auto p = numbers(all_p), y = numbers(all_y);
    using enum tg::auc_curve;
    using enum tg::auc_summation;
    check(tg::auc{}, p, y, 0.5734126984126983, 0.45225952333795466);
    check(tg::auc{.summation = minoring}, p, y, 0.5674603174603173, 0.4469557312694567);
    check(tg::auc{.summation = majoring}, p, y, 0.5793650793650792, 0.4575633154064526);
    check(tg::auc{.curve = pr}, p, y, 0.39249480579432794, 0.3035749585830997);
    check(tg::auc{.curve = pr, .summation = minoring}, p, y, 0.35285054870652693, 0.27252643337302856);
    check(tg::auc{.curve = pr, .summation = majoring}, p, y, 0.4265357585130603, 0.33222116972507626);
    check(tg::auc{.from_logits = true}, numbers(all_v), y, 0.3373015873015873, 0.369129644864939);
}

TEST_CASE("means of losses and what is made of them are Keras's") {
    const auto v = numbers(all_v), p = numbers(all_p);
    check(tg::loss_mean<tg::mean_squared_error>{}, v, p, 1.254808830492424, 1.1499134663297266);
    check(tg::loss_mean<tg::mean_absolute_error>{}, v, p, 0.8598484848484848, 0.8091424639331813);
    check(tg::loss_mean<tg::mean_absolute_percentage_error>{}, v, p, 338.2591892397445, 344.7666031920545);
    check(tg::loss_mean<tg::log_cosh>{}, v, p, 0.43902295090406457, 0.40389500487450175);
    check(tg::root_mean_squared_error{}, v, p, 1.1201824987440323, 1.0723401821855445);
    check(tg::mean_cosine_similarity{}, v, p, 0.1185363765091831, 0.19077255467158252);
    check(tg::loss_mean<tg::sparse_softmax_cross_entropy>{}, v, classes_of, 1.0042106782251055, 0.8936472732859078);
    check(tg::perplexity{}, v, classes_of, std::exp(1.0042106782251055), std::exp(0.8936472732859078));
    check(tg::r2_score{}, v, p, -22.429860378355674, -18.784183614766256);
    check(tg::r2_score{.aggregation = tg::r2_aggregation::variance_weighted_average}, v, p, -22.828931235312155,
          -19.181250094686195);
}

TEST_CASE("intersections over unions are Keras's, the confusion matrix counts") {
    const double in_float = 2e-7; // as Keras divides
    check(tg::mean_io_u<3>{}, numbers(all_p), classes_of, 0.2222222238779068, 0.18717695772647858, in_float);
    check(tg::io_u<3>{.target_class_id = 2}, numbers(all_p), one_hot_of, 0.1666666716337204, 0.22302158176898956,
          in_float);
    tg::metric_accumulator<tg::confusion_matrix<3>> matrix;
    std::vector<double> expected(9);
    double right = 0;
    for (int i = 0; i < 3; ++i) {
        const auto x = batch(all_p, i, 3);
        const auto z = classes_of(i);
        matrix.update(x, z);
        for (int k = 0; k < sizes[i]; ++k) {
            int best = 0;
            for (int j = 1; j < 3; ++j)
                if (x(k, j) > x(k, best)) best = j;
            expected[static_cast<std::size_t>(3 * z(k) + best)] += 1;
            right += z(k) == best;
        }
    }
    CHECK(matrix.all("confusion_matrix") == expected);
    CHECK(matrix.result() == right / 11);
}

TEST_CASE("metrics accumulate the same bits in graphs") {
    const auto z = batch(all_y, 2, 3);
    check_modes<tg::auc>(z);
    check_modes<tg::f1_score>(z);
    check_modes<tg::mean_cosine_similarity>(z);
    check_modes<tg::sparse_top_k_categorical_accuracy<2>>(classes_of(2));
    check_modes<tg::mean_io_u<3>>(classes_of(2));
    check_modes<tg::perplexity>(classes_of(2));
}

TEST_CASE("metrics at their ends") {
    const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
    // Nothing seen, nothing positive, no records.
    CHECK(tg::metric_accumulator<tg::precision>().result() == 0);
    tg::metric_accumulator<tg::precision> precision;
    precision.update(tg::zeros<double>({2, 1}), tg::zeros<double>({2, 1}));
    precision.update(tg::zeros<double>({0, 1}), tg::zeros<double>({0, 1}));
    CHECK(precision.result() == 0);
    // Answers that are at a threshold are not above it; 0, 1, NaN and what lies outside have a place.
    tg::metric_accumulator<tg::auc> auc;
    auc.update(tg::tensor<double>{0, 1, nan, -3, 7, infinity}, tg::tensor<double>{0, 1, 0, 0, 1, 1});
    CHECK(auc.result() == 1);
    // Equal outputs: the class counts as the first of them, as in Keras; NaN is wrong.
    tg::metric_accumulator<tg::sparse_top_k_categorical_accuracy<1>> first;
    first.update(tg::tensor<double>{{1, 1, 0}, {nan, 2, 1}}, tg::tensor<std::int32_t>{1, 0});
    CHECK(first.result() == 0.5);
    // A class that is neither label nor prediction is not one of the mean.
    tg::metric_accumulator<tg::mean_io_u<3>> overlaps;
    overlaps.update(tg::tensor<double>{{1, 0, 0}, {0, 1, 0}}, tg::tensor<std::int32_t>{0, 1});
    CHECK(overlaps.result() == 1);
    // No output above the threshold is no prediction, though one of them is the largest.
    tg::metric_accumulator<tg::fbeta_score> none;
    none.update(tg::tensor<double>{{0.4, 0.3}}, tg::tensor<double>{{1, 0}});
    CHECK(none.result() == 0);
    // A sequence [batch, time, classes] with padding, and weights of its records.
    tg::metric_accumulator<tg::perplexity> perplexity;
    perplexity.update(tg::zeros<double>({2, 2, 4}), tg::tensor<std::int32_t>{{1, -1}, {2, 3}},
                      tg::tensor<double>{2, 1});
    CHECK(perplexity.result() == doctest::Approx(4));
}

TEST_CASE("what metrics are by default, and at a threshold") {
    const std::array<double, 2> half{0.5, 0};
    CHECK(tg::binary_accuracy{}.numbers() == half);
    CHECK(tg::precision{}.numbers() == half);
    CHECK(tg::recall{}.numbers() == half);
    CHECK(tg::specificity{}.numbers() == half);
    CHECK(tg::fbeta_score{}.numbers() == std::array<double, 3>{0.5, 0, 0});
    CHECK(tg::fbeta_score{}.beta == 1);
    CHECK(tg::io_u<3>{}.target_class_id == 1);
    // An output of the threshold answers 0, and so is a label of 0.5 read.
    const auto result = [](auto metric, const tg::tensor<double>& x, const tg::tensor<double>& z) {
        tg::metric_accumulator<decltype(metric)> m(metric);
        m.update(x, z);
        return m.result();
    };
    CHECK(result(tg::binary_accuracy{}, {0.5, 0.5}, {0, 0}) == 1);
    CHECK(result(tg::binary_accuracy{}, {0, 0}, {0.5, 0.5}) == 1);
    CHECK(result(tg::precision{}, {0.5, 0.75}, {0, 1}) == 1);
    CHECK(result(tg::recall{}, {0.25, 0.75}, {0.5, 1}) == 1);
    // So does the area: of 1/4 and 7/8, which are negative, 3/4 is above one.
    CHECK(result(tg::auc{}, {0.25, 0.75, 0.875}, {0, 1, 0.5}) == 0.5);
}

TEST_CASE("r2_score of labels that are all equal is 1 or 0") {
    const auto result = [](const tg::tensor<double>& x) {
        tg::metric_accumulator<tg::r2_score> m;
        m.update(x, tg::tensor<double>{{2}, {2}, {2}});
        return m.result();
    };
    CHECK(result({{2}, {2}, {2}}) == 1);
    CHECK(result({{2}, {2}, {3}}) == 0);
}

TEST_CASE("what metrics refuse") {
    const auto x = tg::zeros<double>({2, 3});
    const tg::tensor<std::int32_t> c{0, 1};
    CHECK(message_of<tg::argument_error>([] { tg::metric_accumulator<tg::precision>({.threshold = 1.5}); }) ==
          "precision: threshold 1.5 is outside [0, 1]");
    CHECK(contains(message_of<tg::argument_error>([] { tg::metric_accumulator<tg::auc>().all("lift"); }), "'lift'"));
    CHECK(message_of<tg::argument_error>([] { tg::metric_accumulator<tg::io_u<3>>({.target_class_id = 3}); }) ==
          "io_u: target_class_id 3 is outside [0, 2]");
    CHECK(message_of<tg::argument_error>([] {
              tg::metric_accumulator<tg::fbeta_score>({.beta = -1});
          }).starts_with("fbeta_score: beta -1"));
    const auto shapes = [&](auto metric, const auto& z) {
        return message_of<tg::shape_error>([&] { tg::metric_accumulator<decltype(metric)>(metric).update(x, z); });
    };
    CHECK(contains(shapes(tg::top_k_categorical_accuracy<4>{}, c), "k is above the number of classes"));
    CHECK(contains(shapes(tg::confusion_matrix<4>{}, c), "must have as many elements as the metric has classes"));
    CHECK(contains(message_of<tg::shape_error>(
                       [&] { tg::metric_accumulator<tg::confusion_matrix<4>>().update(tg::zeros<double>({}), c); }),
                   "must have as many elements as the metric has classes"));
    CHECK(contains(shapes(tg::precision{}, tg::zeros<double>({2})), "output and labels differ in shape"));
    CHECK(contains(message_of<tg::shape_error>([&] {
                       tg::metric_accumulator<tg::precision>().update(x, x, tg::zeros<double>({2, 3, 1}));
                   }),
                   "one weight per record"));
    CHECK(message_of<tg::shape_error>(
              [&] { tg::metric_accumulator<tg::precision>().update(x, x, tg::zeros<double>({4})); }) != "");
    for (const std::int32_t wrong : {3, -1})
        CHECK(contains(message_of<tg::range_error>([&] {
                           tg::metric_accumulator<tg::mean_io_u<3>>().update(x, tg::tensor<std::int32_t>{0, wrong});
                       }),
                       "index " + std::to_string(wrong)));
}

} // namespace metrics_test
