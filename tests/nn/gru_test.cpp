#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>

#include <nn/layer_bench.hpp>

namespace gru_test {

using namespace nn_test;

/// The layers around gru and simple_rnn. What those compute is shown in tests/ops.

namespace {

struct several_layers {
    constexpr auto operator()(auto scope, auto x) const {
        const auto seen = tg::eval(tg::take(x, 0, -1) > -0.5);
        const auto h = tg::gru(scope / "lower", x,
                               {.units = 4, .return_sequences = true, .dropout = 0.25, .recurrent_dropout = 0.5});
        const auto both = tg::bidirectional(
            scope / "both", h, tg::gru_layer_options{.units = 2, .reset_after = false, .return_sequences = true},
            tg::merge_mode::concat, tg::step_mask{seen});
        const auto [y, hidden] = tg::simple_rnn_with_state(scope / "upper", both, {.units = 3, .go_backwards = true});
        return tg::dense(scope / "score", tg::concat(y, hidden), {.units = 1});
    }
};

template <class Mode>
auto make() {
    return tg::compile<Mode>(several_layers{}, tg::spec<double, tg::dyn, tg::dyn, 5>{}, tg::sigmoid_cross_entropy{},
                             tg::sgd{.learning_rate = 0.5}, {.seed = 3});
}

} // namespace

TEST_CASE("gru and simple_rnn layers: both modes train alike, with dropout and in both directions") {
    auto graph = make<tg::graph>();
    auto eager = make<tg::eager>();
    train_alike(graph, eager, {6, 5, 4, 3}, [](int size, std::uint64_t seed) {
        return std::pair{noise<double>({size, 9 - size, 5}, seed), coin_flips<double>(size, seed)};
    });
    // 3 (units (features + units) + 2 units), without reset_after twice 3 (units (features + units) + units), and
    // units (features + units) + units
    const std::string summary = graph.summary();
    CAPTURE(summary);
    const auto shows = [&](const std::string& line) { return summary.find(line) != std::string::npos; };
    CHECK(shows("lower (gru)           [?, ?, 4]              132\n"));
    CHECK(shows("both (bidirectional)  [?, ?, 4]               84\n"));
    CHECK(shows("upper (simple_rnn)    [?, 3]                  24\n"));
    CHECK(graph.variables()["lower/kernel"].shape() == tg::shape{5, 12});
    CHECK(graph.variables()["lower/recurrent_kernel"].shape() == tg::shape{4, 12});
    CHECK(graph.variables()["lower/bias"].shape() == tg::shape{2, 12});
    CHECK(graph.variables()["both/forward_gru/bias"].shape() == tg::shape{6});
    CHECK(graph.variables()["both/backward_gru/kernel"].shape() == tg::shape{4, 6});
    CHECK(graph.variables()["upper/bias"].shape() == tg::shape{3});
}

TEST_CASE("gru and simple_rnn layers: the operations on their variables") {
    const auto x = noise<double>({2, 3, 5}, 1), h = noise<double>({2, 4}, 2);
    layer_bench b;
    const tg::gru_layer_options o{.units = 4,
                                  .activation = tg::cell_activation::relu,
                                  .recurrent_activation = tg::gate_activation::hard_sigmoid,
                                  .reset_after = false,
                                  .go_backwards = true};
    const tg::simple_rnn_layer_options plain{
        .units = 4, .activation = tg::cell_activation::relu, .return_sequences = true, .use_bias = false};
    const auto gated = [&] { return tg::gru_with_state(b.scope() / "g", x, o, tg::initial_state{h}).output; };
    const auto simple = [&]() -> tg::tensor<double> { return tg::simple_rnn(b.scope() / "s", x, plain); };
    gated();
    simple();
    CHECK(b["g/bias"].to_vector() == std::vector<double>(12, 0.0));
    b.fill();
    const tg::tensor<double> expected = gru(x, b["g/kernel"], b["g/recurrent_kernel"], b["g/bias"],
                                            {.activation = o.activation,
                                             .recurrent_activation = o.recurrent_activation,
                                             .reset_after = false,
                                             .go_backwards = true},
                                            tg::initial_state{h});
    CHECK(gated().to_vector() == expected.to_vector());
    const tg::tensor<double> rows = simple_rnn(x, b["s/kernel"], b["s/recurrent_kernel"], tg::no_bias,
                                               {.activation = plain.activation, .return_sequences = true});
    CHECK(simple().to_vector() == rows.to_vector());
    CHECK_THROWS_WITH_AS(tg::gru(b.scope() / "e", x, {.units = 0}),
                         doctest::Contains("units must be positive, in scope 'e'"), tg::argument_error);
    CHECK_THROWS_WITH_AS(tg::simple_rnn(b.scope() / "e", x, {.recurrent_dropout = 1}),
                         doctest::Contains("dropout must lie in [0, 1), in scope 'e'"), tg::argument_error);
}

} // namespace gru_test
