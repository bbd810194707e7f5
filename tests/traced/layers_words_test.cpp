#include "words.hpp"

#include <nn/every_masked_layer.hpp>

#include <tapegraph/nn.hpp>

#include <string_view>
#include <tuple>

namespace layers_words_test {

/// Every layer, with its derivative: the graph made at run time is the compiler's, word for word. A layer whose call has two arguments
/// that both make nodes would fail here, because compilers evaluate these in different orders.

using namespace nn_test;
using words_test::total_of;
using words_test::with_derivative;

namespace {

using image_spec = tg::spec<float, tg::dyn, 6, 8, 4>;
using sequence_spec = tg::spec<float, tg::dyn, tg::dyn, 4>;
using short_spec = tg::spec<float, tg::dyn, 5, 4>;

/// An input times a variable, so that derivatives reach what stands first.
template <class Spec>
constexpr auto moved_input(tg::ir::model_trace& t) {
    const tg::graph_node x(&t, t.input("x", tg::dtype::f32, Spec::dims(t.extents)));
    const auto gain = tg::graph_scope(&t, 0).variable_like(x, "gain", {4}, {.initializer = tg::init::ones{}});
    return eval(x * gain);
}
/// The sum of what `Layers` gives of it.
template <class Layers, class Spec>
struct layers_trace {
    static constexpr void build(tg::ir::model_trace& t) {
        t.training = true;
        const auto x = moved_input<Spec>(t);
        total_of all(x);
        Layers::add_to(all, tg::graph_scope(&t, 0), x, t);
        t.scope = 0;
        t.outputs.push_back({"total", all.total().id()});
        t.assignments.clear();
    }
};

struct convolutions {
    static constexpr void add_to(total_of& all, const auto& scope, const auto& x, auto&) {
        all.add(tg::conv2d(scope / "conv2d", x, {.filters = 3, .kernel_size = {3, 2}}));
        all.add(tg::conv2d(scope / "grouped", x,
                           {.filters = 4,
                            .kernel_size = 3,
                            .stride = 2,
                            .padding = tg::padding::same(),
                            .groups = 2,
                            .use_bias = false}));
        all.add(tg::depthwise_conv2d(scope / "depthwise", x, {.kernel_size = 3, .depth_multiplier = 2}));
        all.add(tg::separable_conv2d(scope / "separable", x, {.filters = 3, .kernel_size = 3}));
        all.add(tg::conv2d_transpose(scope / "transposed", x, {.filters = 2, .kernel_size = 2, .stride = 2}));
        all.add(tg::conv2d(tg::weight_normalized(scope / "weights"), x, {.filters = 3, .kernel_size = 3}));
        all.add(tg::flatten(tg::dense(scope / "dense", x, {.units = 3})));
    }
};
struct image_normalizations {
    static constexpr void add_to(total_of& all, const auto& scope, const auto& x, auto&) {
        all.add(tg::batch_normalization(scope / "batch", x));
        all.add(tg::layer_normalization(scope / "layer", x));
        all.add(tg::group_normalization(scope / "group", x, {.groups = 2}));
        all.add(tg::rms_normalization(scope / "rms", x));
        all.add(tg::unit_normalization(x));
        all.add(tg::prelu(scope / "prelu", x, {.shared_axes = {1, 2}}));
        all.add(tg::thresholded_relu(x));
        all.add(tg::activity_regularization(scope / "activity", x, tg::regularizers::l1_l2{0.25, 0.5}));
        all.add(tg::layer(scope / "own", "scaled", x, [](auto s, auto y) {
            return y * s.variable_like(y, "factor", {4}, {.initializer = tg::init::ones{}});
        }));
    }
};
struct image_shapes {
    static constexpr void add_to(total_of& all, const auto&, const auto& x, auto&) {
        all.add(tg::max_pooling2d(x, {.pool_size = 2}));
        all.add(tg::average_pooling2d(x, {.pool_size = 3, .stride = 2}));
        all.add(tg::lp_pooling2d(x, 2, {.pool_size = 2}));
        all.add(tg::global_average_pooling2d(x));
        all.add(tg::global_max_pooling2d(x));
        all.add(tg::up_sampling2d(x));
        all.add(tg::up_sampling2d(x, {.interpolation = tg::interpolation::bilinear}));
        all.add(tg::zero_padding2d(x, {.height = {1, 2}, .width = 1}));
        all.add(tg::cropping2d(x, {.height = {1, 0}, .width = 1}));
    }
};
struct random_layers {
    static constexpr void add_to(total_of& all, const auto& scope, const auto& x, auto&) {
        all.add(tg::dropout(scope / "dropout", x, {.rate = 0.25}));
        all.add(tg::spatial_dropout2d(scope / "spatial", x, {.rate = 0.25}));
        all.add(tg::alpha_dropout(scope / "alpha", x, {.rate = 0.25}));
        all.add(tg::gaussian_dropout(scope / "gaussian", x, {.rate = 0.25}));
        all.add(tg::gaussian_noise(scope / "noise", x, {.stddev = 0.25}));
        all.add(tg::random_flip(scope / "flip", x));
        all.add(tg::random_crop(scope / "crop", x, {.height = 4, .width = 5}));
        all.add(tg::random_brightness(scope / "brightness", x, {.factor = 0.5}));
        all.add(tg::random_contrast(scope / "contrast", x, {.factor = 0.5}));
        all.add(tg::random_translation(scope / "translation", x, {.height_factor = 0.25, .width_factor = 0.25}));
        all.add(tg::random_rotation(scope / "rotation", x, {.factor = 0.125}));
        all.add(tg::random_zoom(scope / "zoom", x, {.height_factor = 0.25}));
    }
};
struct sequences {
    static constexpr void add_to(total_of& all, const auto& scope, const auto& x, auto& t) {
        all.add(tg::conv1d(scope / "conv1d", x, {.filters = 3, .kernel_size = 3, .padding = tg::padding::causal()}));
        all.add(tg::conv1d_transpose(scope / "transposed", x, {.filters = 3, .kernel_size = 2, .stride = 2}));
        all.add(tg::depthwise_conv1d(scope / "depthwise", x, {.kernel_size = 3}));
        all.add(tg::separable_conv1d(scope / "separable", x, {.filters = 3, .kernel_size = 3}));
        all.add(tg::max_pooling1d(x, {.pool_size = 2}));
        all.add(tg::average_pooling1d(x, {.pool_size = 2}));
        all.add(tg::global_average_pooling1d(x));
        all.add(tg::global_max_pooling1d(x));
        all.add(tg::up_sampling1d(x));
        all.add(tg::zero_padding1d(x, {1, 2}));
        all.add(tg::cropping1d(x, {1, 0}));
        all.add(tg::spatial_dropout1d(scope / "spatial", x, {.rate = 0.25}));
        all.add(tg::repeat_vector(tg::global_average_pooling1d(x), 3));
        all.add(tg::position_embedding(scope / "positions", x, {.sequence_length = 64}));
        all.add(tg::sinusoidal_positions(x));
        all.add(tg::rotary_positions(x));
        all.add(tg::time_distributed(scope / "each", x,
                                     [](auto inner, auto each) { return tg::dense(inner, each, {.units = 3}); }));
        const tg::graph_node words(
            &t, t.input("words", tg::dtype::i32, tg::spec<std::int32_t, tg::dyn, 7>::dims(t.extents)));
        const auto lengths = tg::eval(max(words, {1}));
        const auto counted = tg::sequence_mask(lengths, tg::shape_of(x)[1]);
        all.add(tg::lstm(scope / "counted", x, {.units = 2}, tg::step_mask{counted}));
        const auto summed = tg::vmap<1, 2>([](auto a, auto b) { return tg::eval(sum(a * b)); });
        all.add(summed(x, tg::eval(tg::transpose(x, {0, 2, 1}))));
        all.add(tg::embedding(scope / "embedding", words, {.input_dim = 9, .output_dim = 3}));
        all.add(tg::token_and_position_embedding(scope / "tokens", words,
                                                 {.vocabulary_size = 9, .sequence_length = 7, .embedding_dim = 3}));
    }
};
struct recurrences {
    static constexpr void add_to(total_of& all, const auto& scope, const auto& x, auto&) {
        all.add(tg::lstm(scope / "lstm", x, {.units = 3}));
        all.add(tg::gru(scope / "gru", x, {.units = 3, .return_sequences = true}));
        all.add(tg::gru(scope / "gru_before", x, {.units = 3, .reset_after = false}));
        all.add(tg::simple_rnn(scope / "rnn", x, {.units = 3, .go_backwards = true}));
        const auto state = tg::lstm_with_state(scope / "lstm_state", x, {.units = 3});
        all.add(state.hidden);
        all.add(state.cell);
        all.add(tg::bidirectional(scope / "both", x, tg::lstm_layer_options{.units = 3, .return_sequences = true}));
        const tg::gru_layer_options options{.units = 3, .return_sequences = true};
        all.add(tg::stacked(scope / "stacked", x, std::tuple{options, options}));
        all.add(tg::multi_head_attention(scope / "attention", x, x, {.num_heads = 2, .key_dim = 3}));
        all.add(tg::grouped_query_attention(scope / "grouped", x, x,
                                            {.head_dim = 2, .num_query_heads = 2, .use_causal_mask = true}));
    }
};
/// A quarter of the list: all of it is more than one constant evaluation may be.
template <int Part>
struct masked_layers {
    static constexpr void add_to(total_of& all, const auto& scope, const auto& x, auto&) {
        const auto mask = eval(not_equal(sum(x, {-1}), 0));
        int number = 0;
        every_masked_layer::for_every_masked_layer([&](const char* name, const auto& layer) {
            if (number++ % 4 == Part) all.add(layer(scope / std::string_view(name), x, mask));
        });
    }
};

} // namespace

#define TG_LAYERS(name, spec)                                                                                          \
    TEST_CASE("run-time graphs: " #name ", word for word") {                                                           \
        words_test::check_words<with_derivative<layers_trace<name, spec>>>();                                          \
    }
TG_LAYERS(convolutions, image_spec)
TG_LAYERS(image_normalizations, image_spec)
TG_LAYERS(image_shapes, image_spec)
TG_LAYERS(random_layers, image_spec)
TG_LAYERS(sequences, sequence_spec)
TG_LAYERS(recurrences, sequence_spec)
TG_LAYERS(masked_layers<0>, short_spec)
TG_LAYERS(masked_layers<1>, short_spec)
TG_LAYERS(masked_layers<2>, short_spec)
TG_LAYERS(masked_layers<3>, short_spec)
#undef TG_LAYERS

} // namespace layers_words_test
