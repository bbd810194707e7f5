#pragma once

#include <nn/models.hpp>

#include <cmath>
#include <string>
#include <vector>

/// A layer by itself in eager mode, and the gradients of models whose two modes agree.

namespace nn_test {

/// What a layer needs to run by itself.
struct layer_bench {
    tg::variable_list variables{};
    tg::eager_context context{};
    layer_bench() { context.variables = &variables; }
    tg::eager_scope scope(bool training = true) {
        context.begin(training, {});
        return tg::eager_scope(&context);
    }
    tg::tensor<double> operator[](const std::string& path) { return variables[path].value<double>(); }
    /// Other values than zeros and ones for biases and the like.
    void fill() {
        for (int i = 0; i < variables.size(); ++i)
            variables.at(i).assign(noise<double>(variables.at(i).shape(), 500 + static_cast<std::uint64_t>(i)));
    }
};

/// The gradient of a step in graph mode, by every element of every variable, against central differences of the loss in eager
/// mode. The models' optimizers are sgd and their variables equal.
template <class Graph, class Eager, class X, class Y>
void check_slopes(Graph& graph, Eager& eager, const X& x, const Y& y) {
    CHECK(same_bits(graph.predict(x), eager.predict(x)));
    std::vector<tg::tensor<double>> before;
    for (const tg::variable& v : graph.variables()) before.push_back(v.value<double>());
    constexpr double rate = 4096; // a power of two: the gradient's digits stay
    graph.optimizer().learning_rate = rate;
    graph.train_on_batch(x, y);
    for (int i = 0; i < graph.variables().size(); ++i) {
        tg::variable& v = graph.variables().at(i);
        const tg::tensor<double>& start = before[static_cast<std::size_t>(i)];
        const tg::tensor<double> gradient = (start - v.value<double>()) / rate;
        v.assign(start);
        CAPTURE(v.path());
        tg::variable& moved = eager.variables().at(i);
        for (std::int64_t k = 0; k < v.size(); ++k) {
            constexpr double step = 1e-5; // error: step^2 times a third derivative, and 1e-16 / step
            double loss[2];
            for (const int side : {0, 1}) {
                auto values = start;
                values.mutable_data()[k] += side == 0 ? -step : step;
                moved.assign(values);
                loss[side] = eager.evaluate(x, y).loss;
            }
            CHECK(std::abs((loss[1] - loss[0]) / (2 * step) - gradient.data()[k]) < 1e-9);
        }
        moved.assign(start);
    }
}

} // namespace nn_test
