#include <tapegraph/nn/constraint.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/nn/regularizer.hpp>

#include <nn/layer_bench.hpp>

#include <algorithm>
#include <cmath>

namespace sequence_layers_test {

using namespace nn_test;
using std::int64_t;

/// Layers over sequences, by themselves in eager mode against loops in double, and together in both modes.

namespace {

/// Floating indices below `count`, [batch, time].
tg::tensor<double> words(const tg::shape& dims, int count, std::uint64_t seed) {
    auto x = noise<double>(dims, seed);
    for (int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] = std::floor((x.data()[i] + 1) / 2 * count);
    return x;
}

/// Sums of at most a hundred products of numbers near one.
constexpr double tolerance = 1e-13;

/// h of every step of x [batch, time, features], which are read in the order `step(0)`, `step(1)`, ...; one number after
/// another in the order [batch, time of x, units]. Steps that do not count repeat what was before.
template <class Step>
std::vector<double> naive_lstm(const tg::tensor<double>& x, const tg::tensor<double>& w, const tg::tensor<double>& r,
                               const tg::tensor<double>& b, const tg::tensor<bool>& counts, const Step& step) {
    const int64_t batch = x.shape()[0].value, time = x.shape()[1].value, features = x.shape()[2].value;
    const int64_t units = r.shape()[0].value;
    std::vector<double> all(static_cast<std::size_t>(batch * time * units));
    for (int64_t n = 0; n < batch; ++n) {
        std::vector<double> h(static_cast<std::size_t>(units)), c = h;
        for (int64_t i = 0; i < time; ++i) {
            const int64_t t = step(i);
            std::vector<double> before = h;
            for (int64_t u = 0; u < units && counts(n, t); ++u) {
                double z[4];
                for (int64_t gate = 0; gate < 4; ++gate) {
                    const int64_t column = gate * units + u;
                    z[gate] = b(column);
                    for (int64_t k = 0; k < features; ++k) z[gate] += x(n, t, k) * w(k, column);
                    for (int64_t k = 0; k < units; ++k) z[gate] += before[static_cast<std::size_t>(k)] * r(k, column);
                }
                const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
                double& cell = c[static_cast<std::size_t>(u)];
                cell = sigmoid(z[1]) * cell + sigmoid(z[0]) * std::tanh(z[2]);
                h[static_cast<std::size_t>(u)] = sigmoid(z[3]) * std::tanh(cell);
            }
            for (int64_t u = 0; u < units; ++u)
                all[static_cast<std::size_t>((n * time + t) * units + u)] = h[static_cast<std::size_t>(u)];
        }
    }
    return all;
}

} // namespace

TEST_CASE("embedding: rows of its table, by indices of any type") {
    layer_bench b;
    const tg::embedding_options o{.input_dim = 7, .output_dim = 3};
    for (const tg::shape& dims : {tg::shape{2, 5}, tg::shape{1}, tg::shape{3, 0}, tg::shape{2, 3, 2}, tg::shape{}}) {
        const auto at = words(dims, 7, 3);
        const tg::tensor<double> y = tg::embedding(b.scope() / "e", at, o);
        const auto table = b["e/embeddings"];
        REQUIRE(table.shape() == tg::shape{7, 3});
        REQUIRE(y.rank() == dims.rank() + 1);
        REQUIRE(y.size() == at.size() * 3);
        for (int64_t i = 0; i < y.size(); ++i)
            CHECK(y.data()[i] == table(static_cast<int64_t>(at.data()[i / 3]), i % 3));
        const tg::tensor<std::int64_t> whole = tg::eval(tg::cast<std::int64_t>(at));
        const tg::tensor<double> same = tg::embedding<double>(b.scope() / "e", whole, o);
        CHECK(same.to_vector() == y.to_vector());
    }
    tg::embedding(b.scope() / "ruled", tg::zeros<double>({1}),
                  {.embeddings_regularizer = tg::regularizers::l2{0.5},
                   .embeddings_constraint = tg::constraints::non_negative{}});
    CHECK(static_cast<bool>(b.variables["ruled/embeddings"].regularizer()));
    CHECK(static_cast<bool>(b.variables["ruled/embeddings"].constraint()));
    // float without being asked for another type
    const tg::tensor<float> narrow = tg::embedding(b.scope() / "f", tg::zeros<std::int32_t>({2, 4}), o);
    CHECK(narrow.shape() == tg::shape{2, 4, 3});
    // Keras's uniform(-0.05, 0.05): 4,000 draws come closer to both ends than a fiftieth, except once in 10^17
    tg::embedding(b.scope() / "many", tg::zeros<double>({1}), {.input_dim = 1000, .output_dim = 4});
    double low = 0, high = 0;
    for (const double w : b["many/embeddings"].to_vector()) low = std::min(low, w), high = std::max(high, w);
    CHECK((low >= -0.05 && low < -0.049));
    CHECK((high <= 0.05 && high > 0.049));
}

TEST_CASE("embedding: errors") {
    layer_bench b;
    const auto run = [&](const auto& at, const tg::embedding_options& o) { tg::embedding(b.scope() / "e", at, o); };
    const auto one = [](std::int32_t index) { return tg::eval(tg::zeros<std::int32_t>({1, 2}) + index); };
    CHECK_THROWS_WITH_AS(run(one(0), {.input_dim = 0}), doctest::Contains("input_dim must be positive, in scope 'e'"),
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(run(one(0), {.input_dim = 4, .output_dim = -1}),
                         doctest::Contains("output_dim must be positive, in scope 'e'"), tg::argument_error);
    for (const tg::embedding_options& o :
         {tg::embedding_options{.input_dim = 4, .sparse = true, .embeddings_regularizer = tg::regularizers::l2{0.1}},
          tg::embedding_options{
              .input_dim = 4, .sparse = true, .embeddings_constraint = tg::constraints::non_negative{}}})
        CHECK_THROWS_WITH_AS(run(one(0), o), doctest::Contains("a sparse table has no regularizer and no constraint"),
                             tg::argument_error);
    CHECK_NOTHROW(run(one(3), {.input_dim = 4}));
    CHECK_THROWS_WITH_AS(run(one(4), {.input_dim = 4}), doctest::Contains("index 4 at position 0 is outside [0, 4)"),
                         tg::range_error);
    CHECK_THROWS_WITH_AS(run(one(-1), {.input_dim = 4}), doctest::Contains("index -1 at position 0 is outside [0, 4)"),
                         tg::range_error);
}

TEST_CASE("embedding: the gradient of a row is the sum over its uses") {
    layer_bench b;
    const auto at = words({5, 4}, 6, 8);
    const auto weights = noise<double>({5, 4, 2}, 9);
    tg::gradient_tape tape;
    const auto scope = b.scope();
    const tg::tensor<double> y = tg::embedding(scope / "e", at, {.input_dim = 7, .output_dim = 2});
    const tg::tensor<double> loss = sum(y * weights);
    const tg::tensor<double> gradient(tape.gradient(loss, std::vector{b.context.used.at(0).handle}).at(0));
    REQUIRE(gradient.shape() == tg::shape{7, 2});
    std::vector<double> expected(14, 0.0);
    for (int64_t i = 0; i < y.size(); ++i)
        expected[static_cast<std::size_t>(at.data()[i / 2]) * 2 + static_cast<std::size_t>(i % 2)] += weights.data()[i];
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(std::abs(gradient.data()[i] - expected[i]) < tolerance);
}

TEST_CASE("embedding_mask: steps that are not padding") {
    const auto at = words({3, 5}, 2, 4);
    const auto zeros = tg::embedding_mask(at), ones = tg::embedding_mask(tg::eval(tg::cast<std::int32_t>(at)), 1);
    const tg::tensor<bool> a = zeros.steps, b = ones.steps;
    REQUIRE(a.shape() == at.shape());
    for (int64_t i = 0; i < at.size(); ++i) {
        CHECK(a.data()[i] == (at.data()[i] != 0));
        CHECK(b.data()[i] == (at.data()[i] != 1));
    }
}

TEST_CASE("bidirectional: both directions, merged") {
    constexpr int64_t batch = 3, time = 5, features = 4, units = 2;
    const auto x = noise<double>({batch, time, features}, 1);
    const auto everywhere = tg::eval(noise<double>({batch, time}, 2) > -2),
               somewhere = tg::eval(noise<double>({batch, time}, 2) > -0.3);
    const tg::lstm_layer_options sequence{.units = units, .return_sequences = true}, last{.units = units};
    const tg::lstm_layer_options sequence_of_zeros{
        .units = units, .return_sequences = true, .zero_output_for_mask = true};
    const tg::lstm_layer_options from_the_end{.units = units, .return_sequences = true, .go_backwards = true};
    layer_bench b;
    tg::bidirectional(b.scope() / "l", x, last);
    b.fill();
    const auto both = [&](const tg::tensor<bool>& counts) {
        const auto one = [&](const std::string& path, const auto& step) {
            const auto weight = [&](const char* name) { return b[path + name]; };
            return naive_lstm(x, weight("kernel"), weight("recurrent_kernel"), weight("bias"), counts, step);
        };
        return std::pair{one("l/forward_lstm/", [](int64_t i) { return i; }),
                         one("l/backward_lstm/", [](int64_t i) { return time - 1 - i; })};
    };
    const auto at = [](const std::vector<double>& h, int64_t n, int64_t t, int64_t u) {
        return h[static_cast<std::size_t>((n * time + t) * units + u)];
    };
    for (const bool masked : {false, true}) {
        const tg::tensor<bool> counts = masked ? somewhere : everywhere;
        const auto [f, g] = both(counts);
        const auto run = [&](const tg::lstm_layer_options& o, tg::merge_mode mode) -> tg::tensor<double> {
            if (masked) return tg::bidirectional(b.scope() / "l", x, o, mode, tg::step_mask{counts});
            return tg::bidirectional(b.scope() / "l", x, o, mode);
        };
        const auto joined = run(sequence, tg::merge_mode::concat), ends = run(last, tg::merge_mode::concat);
        const auto added = run(sequence, tg::merge_mode::sum), times = run(sequence, tg::merge_mode::multiply);
        const auto middle = run(sequence, tg::merge_mode::average);
        const auto zeros = run(sequence_of_zeros, tg::merge_mode::concat);
        REQUIRE(joined.shape() == tg::shape{batch, time, 2 * units});
        REQUIRE(ends.shape() == tg::shape{batch, 2 * units});
        REQUIRE(added.shape() == tg::shape{batch, time, units});
        for (int64_t n = 0; n < batch; ++n)
            for (int64_t u = 0; u < units; ++u) {
                CHECK(std::abs(ends(n, u) - at(f, n, time - 1, u)) < tolerance);
                CHECK(std::abs(ends(n, units + u) - at(g, n, 0, u)) < tolerance);
                for (int64_t t = 0; t < time; ++t) {
                    const double p = at(f, n, t, u), q = at(g, n, t, u);
                    CHECK(std::abs(joined(n, t, u) - p) < tolerance);
                    CHECK(std::abs(joined(n, t, units + u) - q) < tolerance);
                    for (const int64_t v : {u, units + u})
                        CHECK(zeros(n, t, v) == (counts(n, t) ? joined(n, t, v) : 0));
                    CHECK(std::abs(added(n, t, u) - (p + q)) < tolerance);
                    CHECK(std::abs(times(n, t, u) - p * q) < tolerance);
                    CHECK(std::abs(middle(n, t, u) - (p + q) / 2) < tolerance);
                }
            }
    }
    const tg::lstm_layer_options zeros_from_the_end{
        .units = units, .return_sequences = true, .go_backwards = true, .zero_output_for_mask = true};
    const tg::tensor<double> turned_zeros =
        tg::bidirectional(b.scope() / "l", x, zeros_from_the_end, tg::merge_mode::concat, tg::step_mask{somewhere});
    for (int64_t n = 0; n < batch; ++n)
        for (int64_t t = 0; t < time; ++t)
            for (int64_t u = 0; u < 2 * units; ++u) CHECK((turned_zeros(n, t, u) != 0) == somewhere(n, time - 1 - t));
    const tg::tensor<double> joined = tg::bidirectional(b.scope() / "l", x, sequence);
    const auto [forward, backward] = tg::bidirectional_outputs(b.scope() / "l", x, sequence);
    CHECK(tg::tensor<double>(tg::concat(forward, backward)).to_vector() == joined.to_vector());
    // Keras: the backward layer turns a layer round that goes backwards already, and both sequences come out from the end.
    const auto [down, up] = tg::bidirectional_outputs(b.scope() / "l", x, from_the_end);
    REQUIRE(down.shape() == tg::shape{batch, time, units});
    b.variables["l/forward_lstm/kernel"].assign(b["l/backward_lstm/kernel"]);
    b.variables["l/forward_lstm/recurrent_kernel"].assign(b["l/backward_lstm/recurrent_kernel"]);
    b.variables["l/forward_lstm/bias"].assign(b["l/backward_lstm/bias"]);
    const auto reversed = [](const tg::tensor<double>& y) { return tg::tensor<double>(tg::reverse(y, 1)).to_vector(); };
    const auto turned = tg::bidirectional_outputs(b.scope() / "l", x, from_the_end).forward;
    CHECK(reversed(turned) == tg::tensor<double>(backward).to_vector());
    const auto onwards = tg::bidirectional_outputs(b.scope() / "l", x, sequence).forward;
    CHECK(reversed(up) == tg::tensor<double>(onwards).to_vector());
}

TEST_CASE("layer_normalization: over any axes") {
    const int64_t n = 2, t = 3, f = 5;
    const auto x = noise<double>({n, t, f}, 1);
    for (const std::vector<int>& over : {std::vector<int>{2}, {1}, {1, 2}, {0}, {0, 2}}) {
        CAPTURE(over.size());
        CAPTURE(over[0]);
        tg::axes axis = over.size() == 1 ? tg::axes(over[0] - 3) : tg::axes{over[1], over[0]};
        tg::shape extents;
        for (const int a : over) extents.push_back(x.shape()[a]);
        const auto among = [&](int a) { return std::find(over.begin(), over.end(), a) != over.end(); };
        layer_bench b;
        tg::layer_normalization(b.scope() / "n", x, {.axis = axis, .epsilon = 0.25});
        REQUIRE(b["n/gamma"].shape() == extents);
        REQUIRE(b["n/beta"].shape() == extents);
        CHECK(b["n/gamma"].to_vector() == std::vector<double>(static_cast<std::size_t>(extents.size().value), 1.0));
        CHECK(b["n/beta"].to_vector() == std::vector<double>(static_cast<std::size_t>(extents.size().value), 0.0));
        b.variables["n/gamma"].assign(noise<double>(extents, 2));
        b.variables["n/beta"].assign(noise<double>(extents, 3));
        const auto gamma = b["n/gamma"], beta = b["n/beta"];
        const auto run = [&](bool center, bool scale) -> tg::tensor<double> {
            return tg::layer_normalization(b.scope() / "n", x,
                                           {.axis = axis, .epsilon = 0.25, .center = center, .scale = scale});
        };
        const auto full = run(true, true), bare = run(false, false);
        for (int64_t i = 0; i < x.size(); ++i) {
            const int64_t at[3]{i / (t * f), i / f % t, i % f};
            double count = 0, sum = 0, squares = 0;
            const auto each = [&](const auto& with) {
                for (int64_t k = 0; k < x.size(); ++k) {
                    const int64_t other[3]{k / (t * f), k / f % t, k % f};
                    bool together = true;
                    for (int a = 0; a < 3; ++a) together = together && (among(a) || at[a] == other[a]);
                    if (together) with(x.data()[k]);
                }
            };
            each([&](double v) { sum += v, ++count; });
            each([&](double v) { squares += (v - sum / count) * (v - sum / count); });
            const double value = (x.data()[i] - sum / count) / std::sqrt(squares / count + 0.25);
            int64_t weight = 0;
            for (const int a : over) weight = weight * x.shape()[a].value + at[a];
            CHECK(std::abs(bare.data()[i] - value) < tolerance);
            CHECK(std::abs(full.data()[i] - (value * gamma.data()[weight] + beta.data()[weight])) < tolerance);
        }
    }
    layer_bench b;
    const auto refused = [&](const tg::axes& axis) { tg::layer_normalization(b.scope() / "n", x, {.axis = axis}); };
    for (const tg::axes& axis : {tg::axes(3), tg::axes(), tg::axes{1, -2}})
        CHECK_THROWS_WITH_AS(refused(axis), doctest::Contains("layer_normalization: axes must be given"),
                             tg::argument_error);
    const tg::tensor<double> standard = tg::layer_normalization(b.scope() / "n", tg::zeros<double>({2, 4}) + 3.0);
    CHECK(standard.to_vector() == std::vector<double>(8, 0.0)); // nothing to divide by but epsilon
    // As small as epsilon: deviations of 1/64 beside 0.001, Keras's default.
    const tg::tensor<double> small =
        tg::layer_normalization(b.scope() / "n", tg::tensor<double>{{3, 3.03125, 3, 3.03125}});
    CHECK(small(0, 1) == doctest::Approx(0.015625 / std::sqrt(0.015625 * 0.015625 + 1e-3)).epsilon(1e-13));
    CHECK(b.variables.size() == 2);
}

TEST_CASE("time_distributed: a layer on every step") {
    const auto dense = [](auto scope, auto step) { return tg::dense(scope, step, {.units = 4}); };
    for (const tg::shape& dims : {tg::shape{3, 2, 5}, tg::shape{1, 1, 5}, tg::shape{2, 0, 5}, tg::shape{2, 3, 7, 5}}) {
        const auto x = noise<double>(dims, 1);
        layer_bench b;
        const tg::tensor<double> y = tg::time_distributed(b.scope() / "d", x, dense);
        tg::shape expected;
        for (int a = 0; a + 1 < dims.rank(); ++a) expected.push_back(dims[a]);
        expected.push_back(4);
        REQUIRE(y.shape() == expected);
        const auto kernel = b["d/kernel"];
        for (int64_t i = 0; i < y.size(); ++i) {
            double sum = 0;
            for (int64_t k = 0; k < 5; ++k) sum += x.data()[i / 4 * 5 + k] * kernel(k, i % 4);
            CHECK(std::abs(y.data()[i] - sum) < tolerance);
        }
    }
    // The function sees one batch, [batch time, rest...], and may change the rest.
    layer_bench b;
    const tg::tensor<double> sums = tg::time_distributed(b.scope() / "s", noise<double>({3, 2, 5}, 1),
                                                         [](auto, auto step) { return tg::sum(step, -1); });
    CHECK(sums.shape() == tg::shape{3, 2});
    const auto keep = [](auto, auto step) { return step; };
    CHECK_THROWS_WITH_AS(tg::time_distributed(b.scope() / "t", tg::zeros<double>({3}), keep),
                         doctest::Contains("input must be [batch, time, ...], in scope 't'"), tg::argument_error);
    const auto total = [](auto, auto step) { return tg::sum(step); };
    const auto columns = [](auto, auto step) { return tg::sum(step, 0); };
    const auto x = noise<double>({3, 2, 5}, 1);
    CHECK_THROWS_WITH_AS(tg::time_distributed(b.scope() / "t", x, total), doctest::Contains("must keep the first axis"),
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(tg::time_distributed(b.scope() / "t", x, columns),
                         doctest::Contains("must keep the first axis"), tg::argument_error);
}

namespace {

/// [batch, time] word numbers to three classes.
struct text_classifier {
    constexpr auto operator()(auto scope, auto words) const {
        const auto h = tg::embedding(scope / "embedding", words, {.input_dim = 40691, .output_dim = 128});
        const auto last = tg::lstm(scope / "lstm", h, {.units = 128}, tg::embedding_mask(words));
        const auto wide = relu(tg::dense(scope / "dense", last, {.units = 100}));
        return tg::dense(scope / "classes", wide, {.units = 3});
    }
};

/// The layers together, small.
struct tagger {
    constexpr auto operator()(auto scope, auto words) const {
        auto h = tg::embedding(scope / "words", words,
                               {.input_dim = 7, .output_dim = 3, .embeddings_initializer = tg::init::normal{0, 1}});
        h = tg::bidirectional(scope / "lstm", h, {.units = 2, .return_sequences = true, .zero_output_for_mask = true},
                              tg::merge_mode::concat, tg::embedding_mask(words));
        h = tg::layer_normalization(scope / "norm", h, {.axis = -1});
        h = tg::time_distributed(scope / "step", h, [](auto inner, auto step) {
            return tanh(tg::dense(inner / "narrow", step, {.units = 3}));
        });
        return tg::dense(scope / "score", mean(h, 1), {.units = 2});
    }
};
using words_spec = tg::spec<double, tg::dyn, tg::dyn>;

template <class Mode>
auto make() {
    return tg::compile<Mode>(tagger{}, words_spec{}, tg::mean_squared_error{}, tg::sgd{.learning_rate = 0.5},
                             {.seed = 3});
}

} // namespace

TEST_CASE("sequence layers: Keras's numbers of parameters") {
    const auto model = tg::compile<tg::eager>(text_classifier{}, tg::spec<float, tg::dyn, tg::dyn>{});
    CHECK(model.parameter_count() == 5'353'235);
    const std::string summary = model.summary();
    const auto shows = [](const std::string& text, const std::string& line) {
        return text.find(line) != std::string::npos;
    };
    CHECK(shows(summary, "embedding (embedding)  [?, ?, 128]      5,208,448\n"));
    CHECK(shows(summary, "lstm (lstm)            [?, 128]           131,584\n"));
    // A layer made of layers is one row: 2 directions of 4 (2 (3 + 2) + 2).
    const std::string made = make<tg::eager>().summary();
    CHECK(shows(made, "lstm (bidirectional)        [?, ?, 4]               96\n"));
    CHECK(shows(made, "norm (layer_normalization)  [?, ?, 4]                8\n"));
    CHECK(shows(made, "step (time_distributed)     [?, ?, 3]               15\n"));
    for (const char* inner : {"forward_lstm", "narrow", "flatten"}) CHECK_FALSE(shows(made, inner));
}

TEST_CASE("sequence layers: both modes train alike, and gradients are central differences") {
    auto graph = make<tg::graph>();
    auto eager = make<tg::eager>();
    train_alike(graph, eager, {5, 4, 3}, [](int size, std::uint64_t seed) {
        return std::pair{words({size, 7 - size}, 7, seed), noise<double>({size, 2}, seed)};
    });
    const auto x = words({4, 6}, 7, 1);
    const auto y = noise<double>({4, 2}, 2);
    check_slopes(graph, eager, x, y);
    CHECK_THROWS_WITH_AS(graph.predict(tg::eval(x + 7)), doctest::Contains("is outside [0, 7)"), tg::range_error);
}

} // namespace sequence_layers_test
