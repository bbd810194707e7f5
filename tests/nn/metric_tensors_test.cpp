#include <tapegraph/data/pipeline.hpp>
#include <tapegraph/nn/metrics/all.hpp>

#include <nn/models.hpp>

#include <string>
#include <vector>

/// What metrics have accumulated as tensors, and weights of classes for sets that make batches.

namespace metric_tensors_test {

using namespace nn_test;

namespace {

/// The scores are the inputs.
struct given_scores {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "same", x,
                         {.units = 3, .use_bias = false, .kernel_initializer = tg::init::identity{}});
    }
};
struct two_outputs {
    constexpr auto operator()(auto scope, auto x) const {
        const auto y = given_scores{}(scope, x);
        return tg::outputs{tg::output<"class">(y), tg::output<"value">(y)};
    }
};
using scores = tg::spec<float, tg::dyn, 3>;

const std::vector<float> outputs{2, 0, 1, 0, 3, 1, 0, 2, 1, 5, 4, 0, 1, 2, 3};
const std::vector<std::int32_t> classes{0, 1, 2, 1, 2};
tg::data::dataset records() {
    tg::data::dataset set;
    set.add("x", outputs, {3}).add("class", classes);
    return set;
}

} // namespace

TEST_CASE_TEMPLATE("evaluate gives a confusion matrix as a tensor", Mode, tg::graph, tg::eager) {
    auto model =
        tg::compile<Mode>(given_scores{}, scores{}, tg::weighted{tg::sparse_softmax_cross_entropy{}},
                          tg::sgd{.learning_rate = 0.5}, tg::metrics{tg::confusion_matrix<3>{}, tg::mean_io_u<3>{}});
    const auto set = records().add("sample_weight", std::vector<float>{1, 1, 1, 2, 1});
    const auto measured = model.evaluate(set, 2); // batches of 2, 2 and 1
    const tg::tensor<double> counts = measured.tensor("confusion_matrix");
    CHECK(counts.shape() == tg::shape{3, 3});
    CHECK(counts.to_vector() == std::vector<double>{1, 0, 0, 2, 1, 0, 0, 1, 1}); // rows are labels
    CHECK(measured["confusion_matrix"] == doctest::Approx(3. / 6));
    CHECK(measured.tensor("mean_io_u/confusion_matrix").to_vector() == counts.to_vector());
    CHECK(tg::to_string(counts).find("2") != std::string::npos);
    CHECK_THROWS_WITH_AS(measured.tensor("auc"),
                         "no metric with a tensor 'auc', there are 'confusion_matrix/confusion_matrix', "
                         "'mean_io_u/confusion_matrix'",
                         tg::argument_error);
    CHECK(model.evaluate(set, 5).tensor("confusion_matrix").to_vector() == counts.to_vector()); // begins anew

    tg::metric_accumulator<tg::confusion_matrix<3>> by_hand;
    by_hand.update(model.predict(tg::tensor<float>(outputs, {5, 3})), tg::tensor<std::int32_t>(classes, {5}));
    CHECK(by_hand.tensor("confusion_matrix").shape() == tg::shape{3, 3});
    CHECK(by_hand.tensor("confusion_matrix").to_vector() == std::vector<double>{1, 0, 0, 1, 1, 0, 0, 1, 1});
    CHECK_THROWS_WITH_AS(by_hand.tensor("counts"), "metric: no state 'counts'", tg::argument_error);

    // Weights of classes: a pipeline's batches, records put together to batches, and records in memory give the same bits.
    const auto trained = [&](const tg::data::dataset& from) {
        auto fresh = tg::compile<Mode>(given_scores{}, scores{}, tg::weighted{tg::sparse_softmax_cross_entropy{}},
                                       tg::sgd{.learning_rate = 0.5},
                                       tg::metrics{tg::confusion_matrix<3>{}, tg::mean_io_u<3>{}});
        const auto history = fresh.fit(from, {.epochs = 2,
                                              .batch_size = 2,
                                              .validation_data = from,
                                              .class_weight = {1, 3, 0.5},
                                              .shuffle = false,
                                              .verbose = 0});
        CHECK(history["val_loss"].size() == 2);
        return std::pair(fresh.variables()["same/kernel"].template value<float>(), history["val_loss"][1]);
    };
    const auto right = trained(records()), weighed = trained(set);
    CHECK(!same_bits(right.first, weighed.first));
    const tg::tensor<float> x(outputs, {5, 3});
    const auto lazy = tg::data::slices(x, classes);
    CHECK(same_bits(right.first, trained(lazy).first));
    CHECK(right.second == trained(lazy.batch(2)).second);
    const auto with_weights = tg::data::slices(x, classes, std::vector<float>{1, 1, 1, 2, 1});
    CHECK(same_bits(weighed.first, trained(with_weights.as<"x", "class", "sample_weight">()).first));
    CHECK_THROWS_WITH_AS(model.fit(lazy, {.validation_split = 0.5, .verbose = 0}),
                         doctest::Contains("validation_split of a pipeline"), tg::argument_error);
    CHECK_THROWS_WITH_AS(model.fit(lazy, {.class_weight = {1, 2}, .verbose = 0}),
                         doctest::Contains("is of class 2, and there are weights of 2 classes"), tg::range_error);
}

TEST_CASE("tensors of metrics of named outputs, and of metrics with several") {
    auto model = tg::compile<tg::graph>(
        two_outputs{}, scores{},
        tg::losses{tg::on<"class">(tg::sparse_softmax_cross_entropy{}), tg::on<"value">(tg::mean_squared_error{})},
        tg::sgd{}, tg::metrics{tg::on<"class">(tg::confusion_matrix<3>{}), tg::on<"value">(tg::r2_score{})});
    const auto measured = model.evaluate(records().add("value", outputs, {3}));
    CHECK(sum(measured.tensor("class_confusion_matrix")).item() == 5);
    CHECK(measured.tensor("value_r2_score/residual").to_vector() == std::vector<double>{0, 0, 0});
    CHECK_THROWS_WITH_AS(measured.tensor("value_r2_score"),
                         doctest::Contains("several tensors of metric 'value_r2_score'"), tg::argument_error);
}

} // namespace metric_tensors_test
