#include <tapegraph/tapegraph.hpp>

#include <tapegraph/fast_convolution.hpp>
#include <tapegraph/graph/explain.hpp>
#include <tapegraph/nn/layers/transposed_convolution.hpp>
#include <tapegraph/profile.hpp>
#include <tapegraph/runtime/kept_memory.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nn_fast_convolution_test {

namespace tg = tapegraph;

namespace {

/// Convolutions that become one kernel with bias, relu and pooling in graph mode, and one that a normalization follows.
struct network {
    constexpr auto operator()(auto scope, auto image) const {
        const auto first =
            relu(tg::conv2d(scope / "first", image, {.filters = 33, .kernel_size = 5, .padding = tg::padding::same()}));
        const auto second = relu(tg::conv2d(scope / "pooled", first, {.filters = 36, .kernel_size = 3}));
        const auto third = tg::conv2d(scope / "third", max_pooling2d(second, {.pool_size = 2}),
                                      {.filters = 32, .kernel_size = 3, .padding = tg::padding::same()});
        const auto h = max_pooling2d(relu(tg::batch_normalization(scope / "norm", third)), {.pool_size = 4});
        return tg::dense(scope / "score", flatten(h), {.units = 3});
    }
};
// 33 channels in, 18 by 18: the first is fast; 16 by 16 after the second, 8 by 8 (four tiles, whose gradients are
// fast from two images on) after pooling.
template <class T>
using spec = tg::spec<T, tg::dyn, 18, 18, 33>;

/// Outputs of 9 by 9, of which pooling sees 8 by 8: of one image those alone would be fast. And of 3 by 3, unfolded.
struct odd_network {
    constexpr auto operator()(auto scope, auto image) const {
        const auto first = relu(tg::conv2d(scope / "first", image, {.filters = 32, .kernel_size = 3}));
        const auto second = relu(
            tg::conv2d(scope / "second", max_pooling2d(first, {.pool_size = 2}), {.filters = 256, .kernel_size = 2}));
        return flatten(max_pooling2d(second, {.pool_size = 2}));
    }
};

template <class T>
tg::tensor<T> images(std::int64_t count) {
    return tg::eval(tg::cast<T>(tg::random::normal<float>({count, 18, 18, 33}, {.seed = 5})));
}
const tg::tensor<std::int32_t>& labels() {
    static const tg::tensor<std::int32_t> values{0, 1, 2, 1, 0};
    return values;
}

template <class Mode, class T>
auto compiled() {
    return tg::compile<Mode>(network{}, spec<T>{}, tg::sparse_softmax_cross_entropy{},
                             tg::momentum{.learning_rate = 0.02}, {.seed = 3});
}

/// The losses of six steps, then of an evaluation.
template <class T>
std::vector<double> train(auto& model) {
    std::vector<double> losses;
    const auto x = images<T>(5);
    for (int step = 0; step < 6; ++step) losses.push_back(model.train_on_batch(x, labels()).loss);
    losses.push_back(model.evaluate(x, labels()).loss);
    return losses;
}

} // namespace

TEST_CASE("fast convolutions: both modes have the same bits, and train as double does directly") {
    auto graph = compiled<tg::graph, float>();
    auto eager = compiled<tg::eager, float>();
    auto direct = compiled<tg::graph, double>();
    for (const auto& v : graph.variables())
        if (!v.optimizer_state())
            direct.variables()[v.path()].assign(tg::eval(tg::cast<double>(v.template value<float>())));
    const std::vector<double> losses = train<float>(graph), in_double = train<double>(direct);
    CHECK(losses == train<float>(eager));
    CHECK(graph.predict(images<float>(5)).to_vector() == eager.predict(images<float>(5)).to_vector());
    for (std::size_t step = 0; step < losses.size(); ++step) {
        // Rounding is 1e-6 of a loss of about 1, and steps at this rate multiply it by some ten.
        CHECK(std::abs(losses[step] - in_double[step]) < 1e-4);
        CHECK(losses[step] != in_double[step]);
    }
    CHECK(losses[5] < 0.5 * losses[0]);
}

namespace {

/// Long kernels along a line: one with bias and relu, followed by one with a stride.
struct line_network {
    constexpr auto operator()(auto scope, auto signal) const {
        const auto first = tg::relu(tg::conv1d(scope / "first", signal, {.filters = 33, .kernel_size = 12}));
        const auto second =
            tg::relu(tg::conv1d(scope / "second", first, {.filters = 32, .kernel_size = 40, .stride = 4}));
        return tg::dense(scope / "score", tg::flatten(second), {.units = 3});
    }
};

template <class Mode, class T>
auto compiled_line() {
    return tg::compile<Mode>(line_network{}, tg::spec<T, tg::dyn, 487, 32>{}, tg::sparse_softmax_cross_entropy{},
                             tg::momentum{.learning_rate = 0.002}, {.seed = 3});
}
template <class T>
std::vector<double> train_line(auto& model) {
    const auto x = tg::eval(tg::cast<T>(tg::random::normal<float>({5, 487, 32}, {.seed = 5})));
    std::vector<double> losses;
    for (int step = 0; step < 4; ++step) losses.push_back(model.train_on_batch(x, labels()).loss);
    return losses;
}

} // namespace

TEST_CASE("fast convolutions: of small images the batch decides, whatever ran before in the same memory") {
    // The third has four tiles an image: too few of one image for its gradients.
    auto graph = compiled<tg::graph, float>();
    auto eager = compiled<tg::eager, float>();
    for (const std::int64_t count : {12, 5, 12, 1, 8}) {
        const auto x = images<float>(count);
        const tg::tensor<std::int32_t> y = tg::zeros<std::int32_t>({count});
        CHECK(graph.train_on_batch(x, y).loss == eager.train_on_batch(x, y).loss);
        CHECK(graph.predict(x).to_vector() == eager.predict(x).to_vector());
    }
}

TEST_CASE("convolutions: the row and column that a pooling ignores take part in the choice of an algorithm") {
    auto graph = tg::compile<tg::graph>(odd_network{}, tg::spec<float, tg::dyn, 11, 11, 33>{}, {.seed = 3});
    auto eager = tg::compile<tg::eager>(odd_network{}, tg::spec<float, tg::dyn, 11, 11, 33>{}, {.seed = 3});
    for (const std::int64_t count : {1, 2, 1}) {
        const auto x = tg::eval(tg::random::normal<float>({count, 11, 11, 33}, {.seed = 5}));
        CHECK(graph.predict(x).to_vector() == eager.predict(x).to_vector());
    }
}

TEST_CASE("fast convolutions along a line: both modes have the same bits, and train as double does directly") {
    auto graph = compiled_line<tg::graph, float>();
    auto eager = compiled_line<tg::eager, float>();
    auto direct = compiled_line<tg::graph, double>();
    for (const auto& v : graph.variables())
        if (!v.optimizer_state())
            direct.variables()[v.path()].assign(tg::eval(tg::cast<double>(v.template value<float>())));
    const std::vector<double> losses = train_line<float>(graph), in_double = train_line<double>(direct);
    CHECK(losses == train_line<float>(eager));
    for (std::size_t step = 0; step < losses.size(); ++step) CHECK(std::abs(losses[step] - in_double[step]) < 1e-4);
}

TEST_CASE("fast convolutions are what a program computes that chose nothing") {
    CHECK(tg::current_convolution_algorithm() == tg::convolution_algorithm::automatic);
}

namespace {

/// The same layer by each algorithm, where the shape alone would choose winograd, winograd, nothing and fourier.
struct by_name {
    constexpr auto operator()(auto scope, auto image) const {
        using enum tg::convolution_algorithm;
        const tg::conv2d_layer_options same{.filters = 33, .kernel_size = 3, .padding = tg::padding::same()};
        auto chosen = same, summed = same, few = same;
        summed.algorithm = direct;
        few.filters = 4;
        few.algorithm = winograd;
        const auto first = relu(tg::conv2d(scope / "chosen", image, chosen));
        const auto second = max_pooling2d(relu(tg::conv2d(scope / "summed", first, summed)), {.pool_size = 2});
        const auto third = max_pooling2d(relu(tg::conv2d(scope / "few", second, few)), {.pool_size = 2});
        const auto back = tg::conv2d_transpose(scope / "back", third, {.filters = 2, .algorithm = winograd});
        const auto signal =
            tg::conv1d(scope / "line", sum(back, 1), {.filters = 3, .kernel_size = 5, .algorithm = fourier});
        return tg::dense(scope / "score", tg::flatten(signal), {.units = 3});
    }
};

} // namespace

TEST_CASE("convolutions: an algorithm of a layer's own, in both modes, and where it is shown") {
    const auto make = [](auto mode) {
        return tg::compile<decltype(mode)>(by_name{}, tg::spec<float, tg::dyn, 16, 16, 32>{},
                                           tg::sparse_softmax_cross_entropy{}, tg::sgd{.learning_rate = 0.01},
                                           {.seed = 3});
    };
    auto in_graph = make(tg::graph{});
    auto in_eager = make(tg::eager{});
    const auto x = tg::random::normal<float>({5, 16, 16, 32}, {.seed = 5});
    for (int step = 0; step < 3; ++step)
        CHECK(in_graph.train_on_batch(x, labels()).loss == in_eager.train_on_batch(x, labels()).loss);

    const std::string plan = tg::explain(in_graph, {.batch_size = 5, .details = true});
    INFO(plan);
    const auto named = [](const std::string& text, const std::string& layer) { // calls with its kernel that say by what
        int count = 0;
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);)
            if (line.find("convolution") != std::string::npos && line.find(layer + "/kernel") != std::string::npos &&
                (line.find(" by winograd") != std::string::npos || line.find(" by fourier") != std::string::npos))
                ++count;
        return count;
    };
    // Forward, and the input gradient of all but the first layer.
    CHECK(named(plan, "chosen") == 1);
    CHECK(named(plan, "summed") == 0);
    CHECK(named(plan, "few") == 2);
    CHECK(named(plan, "line") == 2);

    const auto profiled = tg::profile([&] { in_eager.train_on_batch(x, labels()); });
    int by_winograd = 0;
    for (const auto& call : profiled.calls) by_winograd += call.operation == "convolution by winograd" ? 1 : 0;
    CHECK(by_winograd == 3); // forward passes of "chosen" and "few", and a gradient of "back"
}

namespace {

/// A line by Fourier transforms, whose length depends on that of the input.
struct line {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::conv1d(scope / "long", x, {.filters = 33, .kernel_size = 40, .stride = 2});
    }
};

} // namespace

TEST_CASE("filters that predictions keep follow every change of the variables") {
    auto graph = compiled<tg::graph, float>();
    auto eager = compiled<tg::eager, float>();
    const auto same = [&](std::int64_t count) {
        const auto x = images<float>(count);
        return graph.predict(x).to_vector() == eager.predict(x).to_vector();
    };
    CHECK(same(1));
    CHECK(same(1));
    CHECK(same(3)); // another batch, the same filters
    graph.train_on_batch(images<float>(5), labels());
    eager.train_on_batch(images<float>(5), labels());
    CHECK(same(1));
    CHECK(graph.evaluate(images<float>(5), labels()).loss == eager.evaluate(images<float>(5), labels()).loss);
    for (const char* const path : {"first/kernel", "pooled/kernel"}) { // one number, the last
        auto changed = graph.variables()[path].value<float>();
        changed.mutable_data()[changed.size() - 1] += 1;
        const auto before = graph.predict(images<float>(1)).to_vector();
        graph.variables()[path].assign(changed);
        eager.variables()[path].assign(changed);
        CHECK(same(1));
        CHECK(graph.predict(images<float>(1)).to_vector() != before);
    }

    auto lines = tg::compile<tg::graph>(line{}, tg::spec<float, tg::dyn, tg::dyn, 40>{}, {.seed = 1});
    auto beside = tg::compile<tg::eager>(line{}, tg::spec<float, tg::dyn, tg::dyn, 40>{}, {.seed = 1});
    for (const std::int64_t length : {200, 900, 200, 45}) { // transforms of other lengths, and direct sums
        const auto x = tg::random::normal<float>({2, length, 40}, {.seed = 5});
        for (int again = 0; again < 2; ++again) CHECK(lines.predict(x).to_vector() == beside.predict(x).to_vector());
    }
}

TEST_CASE("kept memory: made again when the operand or the key has changed, and not before") {
    std::vector<float> values(200'000, 1.0f);
    tg::buffer_view operand{};
    operand.rank = 1;
    operand.data = values.data();
    operand.extents[0] = static_cast<std::int64_t>(values.size());
    tg::runtime::kept_memory memory;
    int made = 0;
    const auto first_and_last = [&](std::int64_t key) {
        const auto* const found = static_cast<const float*>(memory.made_of(operand, {key, 0, 0, 0}, 8, [&](void* to) {
            ++made;
            static_cast<float*>(to)[0] = values[0];
            static_cast<float*>(to)[1] =
                operand.extents[0] > 0 ? values[static_cast<std::size_t>(operand.extents[0]) - 1] : 0;
        }));
        return std::pair(found[0], found[1]);
    };
    CHECK(first_and_last(1) == std::pair(1.0f, 1.0f));
    CHECK(first_and_last(1) == std::pair(1.0f, 1.0f));
    CHECK(made == 1);
    values.back() = 2;
    CHECK(first_and_last(1) == std::pair(1.0f, 2.0f));
    CHECK(made == 2);
    first_and_last(2);
    CHECK(made == 3);
    operand.extents[0] = 7;
    CHECK(first_and_last(2) == std::pair(1.0f, 1.0f));
    CHECK(made == 4);
    CHECK_THROWS(memory.made_of(operand, {3, 0, 0, 0}, 8, [](void*) { throw 1; }));
    first_and_last(2); // what failed is not there
    CHECK(made == 5);
    operand.extents[0] = 0;
    first_and_last(2);
    CHECK(made == 6);
    first_and_last(2);
    CHECK(made == 6);
}

} // namespace nn_fast_convolution_test
