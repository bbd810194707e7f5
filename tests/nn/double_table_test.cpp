#include <nn/models.hpp>

#include <tapegraph/compile/instance.hpp>
#include <tapegraph/compile/training_step.hpp>
#include <tapegraph/nn/constraint.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/regularizer.hpp>

#include <doctest/doctest.h>

#include <type_traits>
#include <vector>

/// Models whose inputs are integers alone compute in doubles where their variables are doubles.

namespace double_table_test {

using namespace nn_test;

namespace {

struct words {
    constexpr auto operator()(auto scope, auto ids) const {
        const auto h = tg::embedding<double>(
            scope / "words", ids,
            {.input_dim = 7, .output_dim = 4, .embeddings_regularizer = tg::regularizers::l2{0.01}});
        return tg::dense(scope / "out", mean(h, 1), {.units = 3, .bias_constraint = tg::constraints::max_norm{0.5}});
    }
};
struct learn_words {
    constexpr auto operator()(auto step, auto ids, auto classes) const {
        const auto loss = tg::eval(tg::sparse_softmax_cross_entropy{}(words{}(step / "net", ids), classes));
        step.minimize(loss);
        return loss;
    }
};
constexpr auto ids_spec = tg::spec<std::int32_t, tg::dyn, 3>{};

const tg::tensor<std::int32_t> ids{{0, 1, 2}, {3, 4, 5}, {6, 0, 2}, {1, 1, 4}, {5, 6, 3}};

/// The losses of some steps, followed by the model's predictions.
template <class Mode>
std::vector<double> trained(const auto& loss, const auto& labels) {
    auto model = tg::compile<Mode>(words{}, ids_spec, loss, tg::adam{.learning_rate = 0.1});
    std::vector<double> numbers;
    for (int i = 0; i < 5; ++i) numbers.push_back(model.train_on_batch(ids, labels).loss);
    numbers.push_back(model.evaluate(ids, labels).loss);
    const auto y = model.predict(ids);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(y)>, tg::tensor<double>>);
    for (const double v : y.to_vector()) numbers.push_back(v);
    return numbers;
}

} // namespace

TEST_CASE("a double model on integer inputs has the same numbers in both modes") {
    const auto goals = noise<double>({5, 3}, 3);
    const auto graph = trained<tg::graph>(tg::mean_squared_error{}, goals);
    CHECK(graph[4] < graph[0]);
    CHECK(graph == trained<tg::eager>(tg::mean_squared_error{}, goals));
    const tg::tensor<std::int32_t> classes{0, 1, 2, 1, 0};
    const auto of_classes = trained<tg::graph>(tg::sparse_softmax_cross_entropy{}, classes);
    CHECK(of_classes[4] < of_classes[0]);
    CHECK(of_classes == trained<tg::eager>(tg::sparse_softmax_cross_entropy{}, classes));
}

TEST_CASE("a double model on integer inputs: labels are doubles, in both modes") {
    each_mode([](auto mode) {
        auto model = tg::compile<decltype(mode)>(words{}, ids_spec, tg::mean_squared_error{}, tg::sgd{});
        CHECK_THROWS_WITH_AS(model.train_on_batch(ids, noise<float>({5, 3}, 3)),
                             "input 'labels of mean_squared_error' is f64, fed with f32", tg::dtype_error);
    });
}

TEST_CASE("a step and an instance compute in doubles where their variables do") {
    const tg::tensor<std::int32_t> classes{0, 1, 2, 1, 0};
    const auto specs = tg::inputs{tg::input<"ids">(ids_spec), tg::input<"classes">(tg::spec<std::int32_t, tg::dyn>{})};
    const auto losses_in = [&](auto mode) {
        auto step = tg::compile_step<decltype(mode)>(learn_words{}, specs, tg::adam{.learning_rate = 0.1});
        std::vector<double> losses;
        for (int i = 0; i < 4; ++i) losses.push_back(step(ids, classes).item());
        return losses;
    };
    const std::vector<double> losses = losses_in(tg::graph{});
    CHECK(losses[3] < losses[0]);
    CHECK(losses == losses_in(tg::eager{}));

    auto net = tg::instance(words{}, ids_spec);
    tg::gradient_tape tape;
    const auto y = net.in_training(ids);
    const tg::tensor<double> penalty = net.added_losses();
    CHECK(penalty.item() > 0);
    const auto gradients = net.gradients(tape, sum(y) + penalty);
    CHECK(gradients.size() == 3);
    for (const auto& g : gradients) CHECK(g.type() == tg::dtype::f64);
}

} // namespace double_table_test
