#include <nn/models.hpp>

#include <tapegraph/nn/losses/all.hpp>
#include <tapegraph/nn/metrics/all.hpp>

namespace losses_model_test {

/// Losses and metrics in models: both modes alike, numbers that change between steps, the same metrics by hand.

using namespace nn_test;

namespace {

struct two_scores {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "score", x, {.units = 2}); }
};
struct symbols_per_step {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "symbol", x, {.units = 4}); }
};

template <class A, class B>
void check_alike(A& a, B& b) {
    REQUIRE(a.metrics().size() == b.metrics().size());
    for (std::size_t i = 0; i < a.metrics().size(); ++i) {
        CAPTURE(a.metrics()[i].name);
        CHECK(a.metrics()[i].name == b.metrics()[i].name);
        CHECK(a.metrics()[i].value == b.metrics()[i].value);
    }
}

} // namespace

TEST_CASE("losses: numbers that are left out are Keras's") {
    CHECK(tg::binary_focal_cross_entropy{}.alpha == 0.25);
    CHECK(tg::categorical_focal_cross_entropy{}.alpha == 0.25);
    CHECK(tg::triplet_semi_hard{}.margin == 1);
    CHECK_FALSE(tg::triplet_semi_hard{}.squared);
}

TEST_CASE("a model with a loss with numbers, weights and metrics: both modes, and the metrics by hand") {
    const auto metrics = tg::metrics{tg::precision{.threshold = 0.4, .from_logits = true}, tg::auc{.from_logits = true},
                                     tg::f1_score{.from_logits = true}, tg::loss_mean<tg::huber>{{.delta = 0.25}}};
    const auto loss =
        tg::weighted{tg::smoothed<tg::sigmoid_focal_cross_entropy>{.loss = {.gamma = 3}, .label_smoothing = 0.2}};
    auto a = tg::compile<tg::graph>(two_scores{}, tg::spec<float, tg::dyn, 3>{}, loss, tg::sgd{.learning_rate = 0.5},
                                    metrics);
    auto b = tg::compile<tg::eager>(two_scores{}, tg::spec<float, tg::dyn, 3>{}, loss, tg::sgd{.learning_rate = 0.5},
                                    metrics);
    tg::metric_accumulator<tg::precision> precision({.threshold = 0.4, .from_logits = true});
    tg::metric_accumulator<tg::auc> auc({.from_logits = true});
    tg::metric_accumulator<tg::f1_score> f1({.from_logits = true});
    tg::metric_accumulator<tg::loss_mean<tg::huber>> huber({{.delta = 0.25}});
    const int sizes[]{5, 2, 9};
    for (int step = 0; step < 3; ++step) {
        CAPTURE(step);
        if (step == 2) a.loss().loss.label_smoothing = b.loss().loss.label_smoothing = 0;
        const auto x = noise<float>({sizes[step], 3}, 10 + static_cast<std::uint64_t>(step));
        const tg::tensor<float> z =
            cast<float>(noise<float>({sizes[step], 2}, 20 + static_cast<std::uint64_t>(step)) > 0);
        const tg::tensor<float> w = noise<float>({sizes[step]}, 30 + static_cast<std::uint64_t>(step)) + 1;
        const auto y = a.predict(x);
        precision.update(y, z, w);
        auc.update(y, z, w);
        f1.update(y, z, w);
        huber.update(y, z, w);
        const auto left = a.train_on_batch(x, z, w), right = b.train_on_batch(x, z, w);
        CHECK(left.loss == right.loss);
        CHECK(first_difference(a, b) == "");
        // By hand numbers are of double until they meet a float: a rounding of floats.
        const double smoothing = step == 2 ? 0 : 0.2;
        const tg::smoothed<tg::sigmoid_focal_cross_entropy> same{.loss = {.gamma = 3}, .label_smoothing = smoothing};
        const tg::tensor<float> each = same.per_record(y, z, same.numbers());
        CHECK(left.loss == doctest::Approx(static_cast<double>(mean(each * w).item())).epsilon(1e-6));
    }
    check_alike(a, b);
    CHECK(a.metrics()[0].value == precision.result());
    CHECK(a.metrics()[1].value == auc.result());
    CHECK(a.metrics()[2].value == f1.result());
    CHECK(a.metrics()[3].value == doctest::Approx(huber.result()).epsilon(1e-6));
    CHECK_THROWS_WITH_AS((a.loss().loss.label_smoothing = 1.5,
                          a.train_on_batch(noise<float>({1, 3}, 1), tg::zeros<float>({1, 2}), tg::ones<float>({1}))),
                         "smoothed: label_smoothing 1.5 is outside [0, 1]", tg::argument_error);
}

TEST_CASE("a model learns sequences by ctc, of labels of any length") {
    auto a = tg::compile<tg::graph>(symbols_per_step{}, tg::spec<float, tg::dyn, tg::dim<"time">, 3>{}, tg::ctc{},
                                    tg::adam{.learning_rate = 0.1});
    auto b = tg::compile<tg::eager>(symbols_per_step{}, tg::spec<float, tg::dyn, tg::dim<"time">, 3>{}, tg::ctc{},
                                    tg::adam{.learning_rate = 0.1});
    double first = 0, last = 0;
    for (int step = 0; step < 12; ++step) {
        const bool longer = step % 2 != 0;
        const auto x = noise<float>({2, longer ? 7 : 5, 3}, longer);
        const tg::tensor<std::int32_t> z = longer ? tg::tensor<std::int32_t>{{1, 2, 2}, {3, -1, -1}}
                                                  : tg::from_range<std::int32_t>(std::vector{2, 1, 3, 3}, {2, 2});
        last = a.train_on_batch(x, z).loss;
        REQUIRE(last == b.train_on_batch(x, z).loss);
        if (step == 1) first = last;
    }
    CHECK(first_difference(a, b) == "");
    CHECK(last < 0.7 * first);
}

TEST_CASE("a model learns by triplets") {
    each_mode([](auto mode) {
        auto model = tg::compile<decltype(mode)>(two_scores{}, tg::spec<double, tg::dyn, 3>{},
                                                 tg::triplet_semi_hard{.margin = 0.5}, tg::adam{.learning_rate = 0.05});
        const auto x = noise<double>({8, 3}, 1);
        const tg::tensor<std::int32_t> z{0, 1, 0, 1, 2, 2, 0, 1};
        const double first = model.train_on_batch(x, z).loss;
        for (int step = 0; step < 30; ++step) model.train_on_batch(x, z);
        CHECK(model.evaluate(x, z).loss < 0.8 * first);
    });
}

} // namespace losses_model_test
