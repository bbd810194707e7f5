#pragma once

#include <tapegraph/tapegraph.hpp>

#include <tapegraph/nn/layers/activation.hpp>
#include <tapegraph/nn/layers/activity_regularization.hpp>
#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/layers/grouped_attention.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/masking.hpp>
#include <tapegraph/nn/layers/noise.hpp>
#include <tapegraph/nn/layers/positions.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>
#include <tapegraph/nn/scan.hpp>

#include <string_view>

/// Every layer that takes a mask. tools/check_lists.py compares the list with nn/layers/masking.hpp and with
/// what TG_KEEPS_MASK names.

namespace every_masked_layer {

namespace tg = tapegraph;

/// A custom cell: h <- tanh(x w + h r). The derivative by a weight is a product with the elements of x.
struct own_cell {
    constexpr auto operator()(auto h, auto x, auto w, auto r) const {
        const auto from_x = matmul(x, w); // named, so that graphs made at run time are the compiler's
        const auto from_state = matmul(h, r);
        const auto next = tg::eval(tanh(from_x + from_state));
        return std::pair{next, next};
    }
};

/// f(name, layer): layer(scope, x [batch, time, 4], mask [batch, time]) gives a value, masked or not.
template <class F>
constexpr void for_every_masked_layer(const F& f) {
#define TG_KEPT(word, ...)                                                                                             \
    f(#word,                                                                                                           \
      [](auto scope, auto x, auto mask) { return tg::word(scope / "layer", tg::with_mask(x, mask), __VA_ARGS__); })
    TG_KEPT(dense, {.units = 3});
    TG_KEPT(dropout, {.rate = 0.25});
    TG_KEPT(spatial_dropout1d, {.rate = 0.25});
    TG_KEPT(alpha_dropout, {.rate = 0.25});
    TG_KEPT(gaussian_dropout, {.rate = 0.25});
    TG_KEPT(gaussian_noise, {.stddev = 0.25});
    TG_KEPT(layer_normalization, {});
    TG_KEPT(group_normalization, {.groups = 2});
    TG_KEPT(rms_normalization, {});
    TG_KEPT(prelu, {});
    TG_KEPT(activity_regularization, (tg::regularizers::l1_l2{0.25, 0.5}));
    TG_KEPT(batch_normalization, {});
    TG_KEPT(lstm, tg::lstm_layer_options{.units = 3, .return_sequences = true});
    TG_KEPT(gru, tg::gru_layer_options{.units = 3, .return_sequences = true});
    TG_KEPT(simple_rnn, tg::simple_rnn_layer_options{.units = 3, .return_sequences = true});
#undef TG_KEPT
    f("lstm, the last step, backwards", [](auto scope, auto x, auto mask) {
        return tg::lstm(scope / "layer", tg::with_mask(x, mask),
                        tg::lstm_layer_options{.units = 3, .go_backwards = true});
    });
    f("lstm_with_state", [](auto scope, auto x, auto mask) {
        const auto all =
            tg::lstm_with_state(scope / "layer", tg::with_mask(x, mask), tg::lstm_layer_options{.units = 3});
        return tg::eval(all.hidden + all.cell);
    });
    f("gru_with_state", [](auto scope, auto x, auto mask) {
        return tg::gru_with_state(scope / "layer", tg::with_mask(x, mask), tg::gru_layer_options{.units = 3}).hidden;
    });
    f("simple_rnn_with_state", [](auto scope, auto x, auto mask) {
        return tg::simple_rnn_with_state(scope / "layer", tg::with_mask(x, mask),
                                         tg::simple_rnn_layer_options{.units = 3})
            .hidden;
    });
    f("bidirectional", [](auto scope, auto x, auto mask) {
        return tg::bidirectional(scope / "layer", tg::with_mask(x, mask),
                                 tg::lstm_layer_options{.units = 3, .return_sequences = true});
    });
    f("stacked", [](auto scope, auto x, auto mask) {
        const tg::gru_layer_options options{.units = 3, .return_sequences = true};
        return tg::stacked(scope / "layer", tg::with_mask(x, mask), std::tuple{options, options});
    });
    f("multi_head_attention", [](auto scope, auto x, auto mask) {
        const auto h = tg::with_mask(x, mask);
        return tg::multi_head_attention(scope / "layer", h, h,
                                        tg::multi_head_attention_options{.num_heads = 2, .key_dim = 3});
    });
    f("grouped_query_attention", [](auto scope, auto x, auto mask) {
        const auto h = tg::with_mask(x, mask);
        return tg::grouped_query_attention(
            scope / "layer", h, h,
            tg::grouped_query_attention_options{.head_dim = 2, .num_query_heads = 2, .use_causal_mask = true});
    });
    f("global_average_pooling1d",
      [](auto, auto x, auto mask) { return tg::global_average_pooling1d(tg::with_mask(x, mask)); });
    f("global_max_pooling1d", [](auto, auto x, auto mask) { return tg::global_max_pooling1d(tg::with_mask(x, mask)); });
    f("time_distributed", [](auto scope, auto x, auto mask) {
        return tg::time_distributed(scope / "layer", tg::with_mask(x, mask),
                                    [](auto inner, auto each) { return tg::dense(inner, each, {.units = 3}); });
    });
    f("layer", [](auto scope, auto x, auto mask) {
        return tg::layer(scope / "layer", "own", tg::with_mask(x, mask), [](auto inner, auto value) {
            return tg::eval(value * inner.variable_like(value, "scale", {4}, {.initializer = tg::init::ones{}}));
        });
    });
    f("position_embedding", [](auto scope, auto x, auto mask) {
        const auto h = tg::with_mask(x, mask);
        return h + tg::position_embedding(scope / "layer", h, tg::position_embedding_options{.sequence_length = 5});
    });
    f("sinusoidal_positions, rotary_positions", [](auto, auto x, auto mask) {
        const auto h = tg::with_mask(x, mask);
        return tg::rotary_positions(h + tg::sinusoidal_positions(h));
    });
    f("concat and formulas", [](auto scope, auto x, auto mask) {
        const auto h = tg::with_mask(x, mask);
        return tg::dense(scope / "layer", tg::concat(h, tanh(h) * h - h / (1 + h * h), -1), {.units = 3});
    });
    f("masking",
      [](auto scope, auto x, auto mask) { // NaN is not the value of padding, so that a step of it would count
          const auto h = tg::masking(scope / "mask", tg::eval(where(expand_dims(mask, -1), x, 0)));
          return tg::dense(scope / "layer", h, {.units = 3});
      });
    // Where masks are said beside the value.
    f("lstm, step_mask", [](auto scope, auto x, auto mask) {
        return tg::lstm(scope / "layer", x, {.units = 3, .recompute = true}, tg::step_mask{mask});
    });
    f("gru, step_mask", [](auto scope, auto x, auto mask) {
        return tg::gru(scope / "layer", x, {.units = 3, .go_backwards = true}, tg::step_mask{mask});
    });
    f("simple_rnn, step_mask", [](auto scope, auto x, auto mask) {
        return tg::simple_rnn(scope / "layer", x, {.units = 3}, tg::step_mask{mask});
    });
    f("scan, step_mask", [](auto scope, auto x, auto mask) {
        const auto w = scope.variable_like(x, "w", {4, 3}, {.initializer = tg::init::glorot_uniform{}});
        const auto r = scope.variable_like(x, "r", {3, 3}, {.initializer = tg::init::glorot_uniform{}});
        const auto start = tg::eval(matmul(take(where(expand_dims(mask, -1), x, 0), 0, 1), w) * 0);
        return tg::scan(own_cell{}, start, x, tg::scan_options{}, tg::step_mask{mask}, w, r).last;
    });
    f("multi_head_attention, attention_mask", [](auto scope, auto x, auto mask) {
        const auto rows = expand_dims(mask, -1);
        const auto seen = tg::eval(logical_and(rows, expand_dims(mask, -2)));
        return tg::with_mask(tg::multi_head_attention(scope / "layer", x, x,
                                                      tg::multi_head_attention_options{.num_heads = 2, .key_dim = 3},
                                                      tg::attention_mask{seen}),
                             mask);
    });
    f("grouped_query_attention, attention_mask", [](auto scope, auto x, auto mask) {
        const auto rows = expand_dims(mask, -1);
        const auto seen = tg::eval(logical_and(rows, expand_dims(mask, -2)));
        return tg::with_mask(
            tg::grouped_query_attention(scope / "layer", x, x,
                                        tg::grouped_query_attention_options{.head_dim = 2, .num_query_heads = 2},
                                        tg::attention_mask{seen}),
            mask);
    });
}

} // namespace every_masked_layer
