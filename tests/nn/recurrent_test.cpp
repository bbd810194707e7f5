#include <tapegraph/nn/layers/recurrent.hpp>

#include <nn/models.hpp>

#include <cmath>

namespace recurrent_test {

using namespace nn_test;

/// The layers around the recurrent operations. What those compute is shown in tests/ops.

namespace {

struct two_layers {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::lstm(scope / "lower", x,
                                {.units = 4, .return_sequences = true, .dropout = 0.25, .recurrent_dropout = 0.5});
        const auto [y, hidden, cell] = tg::lstm_with_state(scope / "upper", h, {.units = 3, .go_backwards = true});
        return tg::dense(scope / "score", tg::concat(y, cell), {.units = 1});
    }
};
using sequence_spec = tg::spec<double, tg::dyn, tg::dyn, 5>;

template <class Mode>
auto make() {
    return tg::compile<Mode>(two_layers{}, sequence_spec{}, tg::sigmoid_cross_entropy{}, tg::sgd{.learning_rate = 0.5},
                             {.seed = 3});
}

tg::eager_scope scope_of(tg::eager_context& context, tg::variable_list& variables, bool training) {
    context.variables = &variables;
    context.begin(training, {});
    return tg::eager_scope(&context);
}

} // namespace

TEST_CASE("lstm layer: both modes train alike, with dropout") {
    auto graph = make<tg::graph>();
    auto eager = make<tg::eager>();
    train_alike(graph, eager, {6, 5, 4, 3}, [](int size, std::uint64_t seed) {
        return std::pair{noise<double>({size, 9 - size, 5}, seed), coin_flips<double>(size, seed)};
    });
    const auto x = noise<double>({3, 4, 5}, 1);
    CHECK(same_bits(graph.predict(x), graph.predict(x))); // nothing is dropped in prediction
}

TEST_CASE("lstm layer: Keras's variables and numbers of parameters") {
    auto model = make<tg::graph>();
    // 4 (units (features + units) + units)
    CHECK(model.variables()["lower/kernel"].shape() == tg::shape{5, 16});
    CHECK(model.variables()["lower/recurrent_kernel"].shape() == tg::shape{4, 16});
    CHECK(model.variables()["lower/bias"].shape() == tg::shape{16});
    const std::string summary = model.summary();
    const auto shows = [&](const std::string& line) { return summary.find(line) != std::string::npos; };
    CHECK(shows("lower (lstm)      [?, ?, 4]              160\n"));
    CHECK(shows("upper (lstm)      [?, 3]                  96\n"));
    CHECK_FALSE(shows("flatten"));
    CHECK(model.variables()["upper/bias"].value<double>().to_vector() ==
          std::vector<double>{0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("lstm layer: options") {
    const auto x = noise<double>({2, 3, 5}, 1);
    const auto run = [&](const tg::lstm_layer_options& o, bool training, const auto& check) {
        tg::variable_list variables;
        tg::eager_context context;
        const auto scope = scope_of(context, variables, training);
        check(tg::tensor<double>(tg::lstm(scope / "l", x, o)), variables);
    };
    run({.units = 2, .use_bias = false}, true, [&](const auto& y, auto& variables) {
        CHECK(variables.size() == 2);
        const auto expected = lstm(x, variables["l/kernel"].template value<double>(),
                                   variables["l/recurrent_kernel"].template value<double>(), tg::zeros<double>({8}));
        for (std::int64_t i = 0; i < y.size(); ++i)
            CHECK(y.data()[i] == doctest::Approx(expected.data()[i]).epsilon(1e-14));
    });
    run({.units = 1, .unit_forget_bias = false, .bias_initializer = tg::init::constant{0.5}}, true,
        [](const auto&, auto& variables) {
            CHECK(variables["l/bias"].template value<double>().to_vector() == std::vector<double>(4, 0.5));
        });
    run({.units = 1, .bias_initializer = tg::init::constant{0.5}}, true, [](const auto&, auto& variables) {
        CHECK(variables["l/bias"].template value<double>().to_vector() == std::vector<double>{0.5, 1, 0.5, 0.5});
    });
    run({.units = 1, .use_bias = false, .bias_initializer = tg::init::normal{}}, true,
        [](const auto&, auto& variables) { CHECK(variables.size() == 2); }); // no bias needs one that is constant
    const auto refused = [&](const tg::lstm_layer_options& o) { run(o, true, [](const auto&...) {}); };
    CHECK_THROWS_WITH_AS(refused({.units = 0}), doctest::Contains("units must be positive"), tg::argument_error);
    CHECK_THROWS_WITH_AS(refused({.dropout = 1}), doctest::Contains("dropout must lie in [0, 1)"), tg::argument_error);
    CHECK_THROWS_WITH_AS(refused({.bias_initializer = tg::init::normal{}}), doctest::Contains("unit_forget_bias"),
                         tg::argument_error);
}

TEST_CASE("recurrent dropout drops the same units in all steps, and in training alone") {
    // Without input and with h R = h the candidate sees h itself where it was not dropped.
    const auto x = tg::zeros<double>({200, 4, 1});
    tg::variable_list variables;
    tg::eager_context context;
    const tg::lstm_layer_options o{
        .units = 3, .recurrent_dropout = 0.5, .recurrent_initializer = tg::init::constant{1}};
    const auto h = noise<double>({200, 3}, 1), c = noise<double>({200, 3}, 2);
    const auto run = [&](bool training) {
        const auto scope = scope_of(context, variables, training);
        return tg::tensor<double>(tg::lstm(scope / "l", x, o, tg::initial_state{h, c}));
    };
    const auto plain = run(false), again = run(false), dropped = run(true);
    CHECK(plain.to_vector() == again.to_vector());
    int changed = 0;
    for (std::int64_t i = 0; i < plain.size(); ++i) changed += plain.data()[i] != dropped.data()[i];
    CHECK(changed == plain.size()); // every factor is 0 or 2, and each unit sees all three
}

TEST_CASE("recurrent dropout: what is not dropped grows by 1 / (1 - rate)") {
    constexpr int rows = 400;
    tg::variable_list variables;
    tg::eager_context context;
    const tg::lstm_layer_options o{.units = 2,
                                   .unit_forget_bias = false,
                                   .recurrent_dropout = 0.25,
                                   .recurrent_initializer = tg::init::constant{1}};
    auto h = tg::zeros<double>({rows, 2});
    for (int i = 0; i < rows; ++i) h.mutable_data()[2 * i] = 0.6;
    const tg::tensor<double> y = tg::lstm(scope_of(context, variables, true) / "l", tg::zeros<double>({rows, 1, 1}), o,
                                          tg::initial_state{h, tg::zeros<double>({rows, 2})});
    // All gates see the sum of h times the factors, 0.6 / 0.75, where its one number has not been dropped.
    const double gate = 1 / (1 + std::exp(-0.8)), kept = gate * std::tanh(gate * std::tanh(0.8));
    int dropped = 0;
    for (std::int64_t i = 0; i < y.size(); ++i) {
        if (y.data()[i] == 0)
            ++dropped;
        else
            CHECK(std::abs(y.data()[i] - kept) < 1e-14);
    }
    CHECK(std::abs(dropped / 2 - 100) < 35); // four standard deviations
}

TEST_CASE_TEMPLATE("orthogonal initializer", T, float, double) {
    for (const tg::shape& dims :
         {tg::shape{5, 20}, tg::shape{20, 5}, tg::shape{7, 7}, tg::shape{1, 3}, tg::shape{2, 3, 4}}) {
        auto w = tg::tensor<T>::uninitialized(dims);
        tg::detail::initialize(w.mutable_data(), dims, tg::init::orthogonal{.gain = 2}, 1, "w");
        const std::int64_t columns = dims[dims.rank() - 1].value, rows = w.size() / columns;
        const bool across = rows > columns;
        const std::int64_t vectors = across ? columns : rows, length = across ? rows : columns;
        const auto at = [&](std::int64_t v, std::int64_t i) {
            return static_cast<double>(w.data()[across ? i * columns + v : v * columns + i]);
        };
        double apart = 0;
        for (std::int64_t a = 0; a < vectors; ++a)
            for (std::int64_t b = 0; b < vectors; ++b) {
                double dot = 0;
                for (std::int64_t i = 0; i < length; ++i) dot += at(a, i) * at(b, i);
                apart = std::max(apart, std::abs(dot - (a == b ? 4 : 0)));
            }
        // Rounding of up to 20 products of order 4 / 20.
        CHECK(apart < 20 * static_cast<double>(std::numeric_limits<T>::epsilon()));
    }
}

TEST_CASE("orthogonal matrices are spread over all of them") {
    // The first element of a random unit vector of length n has mean 0 and variance 1 / n: 2,000 draws of n = 4 deviate by
    // 0.011 from the mean and 3 % from the variance.
    double mean = 0, square = 0;
    constexpr int draws = 2000;
    for (int seed = 0; seed < draws; ++seed) {
        double w[16];
        tg::detail::initialize(w, tg::shape{4, 4}, tg::init::orthogonal{}, static_cast<std::uint64_t>(seed), "w");
        mean += w[15] / draws;
        square += w[15] * w[15] / draws;
    }
    CHECK(std::abs(mean) < 0.05);
    CHECK(std::abs(square * 4 - 1) < 0.15);
}

} // namespace recurrent_test
