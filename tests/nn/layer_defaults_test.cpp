#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>

#include <nn/layer_bench.hpp>

namespace layer_defaults_test {

/// Layers with their default options, as docs/models.md and Keras have them; and initializers reach the variables.

using namespace nn_test;

namespace {

template <class Options>
void check_recurrent_defaults() {
    const Options o{};
    CHECK(o.units == 1);
    CHECK(o.activation == tg::cell_activation::tanh);
    CHECK_FALSE(o.return_sequences);
    CHECK_FALSE(o.go_backwards);
    CHECK(o.use_bias);
    CHECK(o.dropout == 0);
    CHECK(o.recurrent_dropout == 0);
    CHECK_FALSE(o.zero_output_for_mask);
    CHECK_FALSE(o.recompute); // memory is not traded for time unless asked
}

} // namespace

TEST_CASE("recurrent layers: defaults are Keras's") {
    check_recurrent_defaults<tg::lstm_layer_options>();
    check_recurrent_defaults<tg::gru_layer_options>();
    check_recurrent_defaults<tg::simple_rnn_layer_options>();
    CHECK(tg::lstm_layer_options{}.recurrent_activation == tg::gate_activation::sigmoid);
    CHECK(tg::lstm_layer_options{}.unit_forget_bias);
    CHECK(tg::gru_layer_options{}.recurrent_activation == tg::gate_activation::sigmoid);
    CHECK(tg::gru_layer_options{}.reset_after);
    CHECK_FALSE(tg::lstm_options{}.recompute);
    CHECK_FALSE(tg::gru_options{}.recompute);
    CHECK_FALSE(tg::simple_rnn_options{}.recompute);
}

TEST_CASE("recurrent layers: the operation has the options of the layer") {
    const auto gates = [](const auto& o) {
        return tg::detail::recurrent_layer_kind<std::remove_cvref_t<decltype(o)>>::operation(o);
    };
    for (const auto gate : {tg::gate_activation::sigmoid, tg::gate_activation::hard_sigmoid}) {
        CHECK(gates(tg::lstm_layer_options{.recurrent_activation = gate}).recurrent_activation == gate);
        CHECK(gates(tg::gru_layer_options{.recurrent_activation = gate}).recurrent_activation == gate);
    }
    for (const bool after : {false, true})
        CHECK(gates(tg::gru_layer_options{.reset_after = after}).reset_after == after);
}

TEST_CASE("defaults of layers are Keras's") {
    const tg::embedding_options table{};
    CHECK(table.input_dim == 1);
    CHECK(table.output_dim == 1);
    CHECK_FALSE(table.sparse);

    const tg::batch_normalization_options norm{};
    CHECK(norm.momentum == 0.99);
    CHECK(norm.epsilon == 1e-3);
    CHECK(tg::dropout_options{}.rate == 0.5);
    CHECK(tg::dense_options{}.units == 1);
    const tg::conv2d_layer_options image{};
    CHECK(image.filters == 1);
    const tg::conv1d_layer_options line{};
    CHECK(line.filters == 1);
    CHECK(line.stride == 1);
    CHECK(line.dilation == 1);
    CHECK(line.groups == 1);

    layer_bench b;
    const auto pixels = noise<double>({1, 6, 7, 2}, 1);
    CHECK(tg::conv2d(b.scope() / "image", pixels, {}).shape() == tg::shape{1, 4, 5, 1}); // 3 x 3, stride 1
    CHECK(tg::conv1d(b.scope() / "line", noise<double>({1, 6, 2}, 2), {}).shape() == tg::shape{1, 4, 1});
}

TEST_CASE("numbers and switches of normalization reach what they are for") {
    layer_bench b;
    const tg::tensor<double> x{{{1, 3}, {5, 7}}}; // mean 4, variance 5
    const auto values = [](const auto& y) { return tg::tensor<double>(y).to_vector(); };
    const auto near = [](const std::vector<double>& got, const std::vector<double>& expected) {
        REQUIRE(got.size() == expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]));
    };
    const auto initial = tg::init::constant{2};
    near(values(tg::group_normalization(
             b.scope() / "g", x,
             {.groups = 1, .epsilon = 4, .center = false, .beta_initializer = initial, .gamma_initializer = initial})),
         {-2, -2.0 / 3, 2.0 / 3, 2});
    near(values(tg::group_normalization(b.scope() / "h", x,
                                        {.groups = 1, .epsilon = 4, .scale = false, .beta_initializer = initial})),
         {1, 5.0 / 3, 7.0 / 3, 3});
    near(values(
             tg::group_normalization(b.scope() / "i", x, {.groups = 1, .epsilon = 4, .center = false, .scale = false})),
         {-1, -1.0 / 3, 1.0 / 3, 1});
    // -1: each channel of a record by itself
    near(values(tg::group_normalization(b.scope() / "c", x,
                                        {.groups = -1, .epsilon = 1, .center = false, .scale = false})),
         {-2 / std::sqrt(5.0), -2 / std::sqrt(5.0), 2 / std::sqrt(5.0), 2 / std::sqrt(5.0)});
    near(values(tg::rms_normalization(b.scope() / "r", tg::tensor<double>{{3, 4}},
                                      {.epsilon = 12.5, .scale_initializer = initial})),
         {1.2, 1.6});
    CHECK(b.variables.size() == 3);
}

TEST_CASE("initializers reach the variables") {
    layer_bench b;
    const auto all = [&](const char* path, double value) {
        for (const double v : b[path].to_vector()) CHECK(v == value);
    };
    tg::dense(b.scope() / "d", noise<double>({2, 3}, 1),
              {.units = 2, .kernel_initializer = tg::init::constant{0.25}, .bias_initializer = tg::init::constant{3}});
    all("d/kernel", 0.25);
    all("d/bias", 3);
    tg::conv2d(b.scope() / "c", noise<double>({1, 4, 4, 1}, 2), {.kernel_initializer = tg::init::constant{0.5}});
    all("c/kernel", 0.5);
    tg::conv1d(b.scope() / "e", noise<double>({1, 4, 1}, 3), {.kernel_initializer = tg::init::constant{0.75}});
    all("e/kernel", 0.75);
}

} // namespace layer_defaults_test
