#include <tapegraph/nn/constraint.hpp>
#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>
#include <tapegraph/nn/regularizer.hpp>

#include <nn/layer_bench.hpp>

namespace sequence_defaults_test {

/// What layers of sequences do when options are left out, as Keras has it, and that each option reaches what it is for. Those whose
/// loss no other test noticed when tools/mutate.py took them away.

using namespace nn_test;

namespace {

const auto x = noise<double>({2, 3, 5}, 1);

struct penalized_table {
    constexpr auto operator()(auto scope, auto words) const {
        const auto rows = tg::embedding(scope / "e", words,
                                        {.input_dim = 3,
                                         .output_dim = 2,
                                         .embeddings_initializer = tg::init::constant{0.5},
                                         .embeddings_regularizer = tg::regularizers::l2{0.25},
                                         .embeddings_constraint = tg::constraints::non_negative{}});
        return tg::eval(sum(rows, {1, 2}));
    }
};

} // namespace

TEST_CASE("recurrent layers: a layer without options has one unit and gives its last state") {
    layer_bench b;
    CHECK(tg::lstm(b.scope() / "l", x, {}).shape() == tg::shape{2, 1});
    CHECK(tg::gru(b.scope() / "g", x, {}).shape() == tg::shape{2, 1});
    CHECK(tg::simple_rnn(b.scope() / "s", x, {}).shape() == tg::shape{2, 1});
    CHECK(b["l/bias"].shape() == tg::shape{4});
    CHECK(b["g/bias"].shape() == tg::shape{2, 3});
    CHECK(b["s/bias"].shape() == tg::shape{1});
}

TEST_CASE("recurrent layers: the gates have the activation of the options") {
    layer_bench b;
    const tg::tensor<double> y =
        tg::lstm(b.scope() / "l", x, {.units = 2, .recurrent_activation = tg::gate_activation::hard_sigmoid});
    const tg::tensor<double> expected = lstm(x, b["l/kernel"], b["l/recurrent_kernel"], b["l/bias"],
                                             {.recurrent_activation = tg::gate_activation::hard_sigmoid});
    CHECK(same_bits(y, expected));
    const tg::tensor<double> other = lstm(x, b["l/kernel"], b["l/recurrent_kernel"], b["l/bias"]);
    CHECK_FALSE(same_bits(y, other));
}

TEST_CASE("recurrent layers: biases begin with the values of their initializer") {
    layer_bench b;
    tg::gru(b.scope() / "g", x, {.units = 2, .bias_initializer = tg::init::constant{0.5}});
    CHECK(b["g/bias"].to_vector() == std::vector<double>(12, 0.5));
    tg::simple_rnn(b.scope() / "s", x, {.units = 2, .bias_initializer = tg::init::constant{0.25}});
    CHECK(b["s/bias"].to_vector() == std::vector<double>(2, 0.25));
    // Only a forget gate that begins as 1 needs the others to be a constant.
    tg::lstm(b.scope() / "l", x, {.units = 2, .unit_forget_bias = false, .bias_initializer = tg::init::normal{}});
    CHECK(b["l/bias"].shape() == tg::shape{8});
    tg::lstm(b.scope() / "m", x, {.units = 2, .use_bias = false, .bias_initializer = tg::init::normal{}});
}

TEST_CASE("attention: defaults are Keras's, and what cannot be is refused") {
    const tg::multi_head_attention_options o{};
    CHECK(o.num_heads == 1);
    CHECK(o.key_dim == 1);
    CHECK(o.dropout == 0);
    CHECK(o.use_bias);
    layer_bench b;
    int number = 0;
    const auto refused = [&](const tg::multi_head_attention_options& wrong, const char* text) {
        const std::string name = "a" + std::to_string(number++);
        CHECK_THROWS_WITH_AS(tg::multi_head_attention(b.scope() / name.c_str(), x, x, wrong), doctest::Contains(text),
                             tg::argument_error);
    };
    const char* const extents = "num_heads and key_dim must be positive, other extents not negative";
    refused({.num_heads = 0}, extents);
    refused({.key_dim = 0}, extents);
    refused({.value_dim = -1}, extents);
    refused({.output_dim = -1}, extents);
    refused({.dropout = 1}, "dropout must lie in [0, 1)");
    refused({.dropout = -0.5}, "dropout must lie in [0, 1)");
}

TEST_CASE("embedding: options reach the table") {
    const tg::tensor<std::int32_t> indices{{0, 2}, {1, 1}};
    layer_bench b;
    tg::embedding<double>(b.scope() / "e", indices,
                          {.input_dim = 3, .output_dim = 2, .embeddings_initializer = tg::init::constant{0.5}});
    CHECK(b["e/embeddings"].to_vector() == std::vector<double>(6, 0.5));
}

TEST_CASE("embedding: a penalty of the whole table, and a constraint of what becomes of it") {
    auto model = tg::compile<tg::eager>(penalized_table{}, tg::spec<std::int32_t, tg::dyn, 2>{},
                                        tg::mean_squared_error{}, tg::sgd{.learning_rate = 1});
    const tg::tensor<std::int32_t> words{{0, 1}};
    // The model gives 4 halves, so 2^2, and a quarter of six squares of a half, also of the row that no word asks for
    CHECK(model.train_on_batch(words, tg::tensor<float>{0.0f}).loss ==
          doctest::Approx(4 + 0.25 * 6 * 0.25).epsilon(1e-6));
    // rows 0 and 1: 0.5 - (2 * 2 + 2 * 0.25 * 0.5), held at 0; row 2: 0.5 - 0.25
    CHECK(model.variables()["e/embeddings"].value<float>().to_vector() == std::vector<float>{0, 0, 0, 0, 0.25, 0.25});
}

} // namespace sequence_defaults_test
