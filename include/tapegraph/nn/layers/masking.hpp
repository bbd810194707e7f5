#pragma once

#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/convolution.hpp>
#include <tapegraph/nn/layers/dense.hpp>
#include <tapegraph/nn/layers/dropout.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/layer.hpp>
#include <tapegraph/nn/layers/masked.hpp>
#include <tapegraph/nn/layers/normalization.hpp>
#include <tapegraph/nn/layers/synchronized_normalization.hpp>
#include <tapegraph/ops/movement/slice.hpp>
#include <tapegraph/ops/movement/view.hpp>
#include <tapegraph/ops/pooling/pooling.hpp>

#include <limits>
#include <tuple>

/// Masks that flow from an embedding to the loss, as in Keras. Not part of tapegraph.hpp: programs
/// without them do not compile them.
///
///     auto h = tg::embedding(scope / "words", words, {.input_dim = 1000, .output_dim = 64}, tg::mask_zero);
///     h = tg::dropout(scope / "drop", h, {.rate = 0.1});                                   // keeps the mask
///     auto y = tg::lstm(scope / "lstm", h, {.units = 64, .return_sequences = true});       // uses it and keeps it
///     return tg::dense(scope / "tag", y, {.units = 10});                                   // loss and metrics use it
///
/// docs/layers.md lists how each layer treats masks.

namespace tapegraph {

// Layers of other headers, declared for programs that include those, too.
struct lstm_layer_options;
struct gru_layer_options;
struct simple_rnn_layer_options;
struct multi_head_attention_options;
struct grouped_query_attention_options;
struct position_embedding_options;
struct token_and_position_embedding_options;
struct wavelength_options;
template <handle M>
struct attention_mask;
enum class merge_mode;

/// Follows the options of an embedding: index 0 is padding, and values computed from it do not
/// count (Keras's mask_zero=True).
struct mask_zero_t {};
inline constexpr mask_zero_t mask_zero{};

/// Like `embedding`, with a mask of the indices [batch, time] that are not 0. Row 0 of the table
/// still exists.
template <class T = void, layer_scope Scope, tensor_like X>
constexpr auto embedding(const Scope& scope, const X& indices, const embedding_options& o, mask_zero_t,
                         std::source_location where = std::source_location::current()) {
    const auto given = eval(indices, where);
    return detail::finite_with_mask(embedding<T>(scope, given, o, where), embedding_mask(given, 0, where).steps, where);
}
template <class T = void, layer_scope Scope, tensor_like X>
constexpr auto token_and_position_embedding(const Scope& scope, const X& indices,
                                            const token_and_position_embedding_options& o, mask_zero_t) {
    const auto given = eval(indices);
    return detail::finite_with_mask(token_and_position_embedding<T>(scope, given, o), embedding_mask(given).steps,
                                    std::source_location::current());
}

/// Options of `masking`: a step all of whose features are `mask_value` is masked.
struct masking_options {
    double mask_value = 0;
};
/// x [batch, time, ..., features] with a mask: steps with a feature other than `mask_value` count, and
/// the features of the others become 0.
template <layer_scope Scope, tensor_like X>
constexpr auto masking(const Scope& scope, const X& x, const masking_options& o = {},
                       std::source_location where = std::source_location::current()) {
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const auto counts = any(eval(input != o.mask_value, where), -1, {}, where);
    return detail::finite_with_mask(
        scope.leave("masking", mark, eval(tapegraph::where(expand_dims(counts, -1, where), input, 0), where)), counts,
        where);
}
template <layer_scope Scope>
no_such_option_in<masking_options> masking(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing masking(any_argument, ...) TG_MISTAKE;

/// Statistics cover the steps that count, as in Keras: sums over these, divided by their number +
/// 1e-7.
template <class Scope, class X, class M>
constexpr auto batch_normalization(const Scope& scope, const masked<X, M>& x, const batch_normalization_options& o = {},
                                   std::source_location where = std::source_location::current()) {
    if (!x.has_mask) return x.with(batch_normalization(scope, x.value, o, where));
    return x.with(detail::normalized_batch(
        scope, x.value, o, where, [&](const auto& values, const auto& input, const axes& leading) {
            const auto counts = detail::mask_over(x.mask, shape_of(input).rank());
            const auto steps = sum(tapegraph::where(counts, ones_like(input), 0), leading, {}, where);
            return sum(tapegraph::where(counts, values, 0), leading, {}, where) / (steps + 1e-7);
        }));
}

/// The same over the counted steps of all shards.
template <class Scope, class X, class M>
constexpr auto batch_normalization(const Scope& scope, const masked<X, M>& x, const batch_normalization_options& o,
                                   synchronized_t, std::source_location where = std::source_location::current()) {
    if (!x.has_mask) return x.with(batch_normalization(scope, x.value, o, synchronized, where));
    const auto added = [&](const auto& values) { return sum_over_shards(values, where); };
    return x.with(detail::normalized_batch(
        scope, x.value, o, where, [&](const auto& values, const auto& input, const axes& leading) {
            const auto counts = detail::mask_over(x.mask, shape_of(input).rank());
            const auto steps = added(sum(tapegraph::where(counts, ones_like(input), 0), leading, {}, where));
            const auto total = added(sum(tapegraph::where(counts, values, 0), leading, {}, where));
            return total / (steps + 1e-7);
        }));
}

template <class Scope, class X, class M, class F>
constexpr auto time_distributed(const Scope& scope, const masked<X, M>& x, const F& f) {
    return x.with(time_distributed(scope, x.value, f));
}
template <class Scope, class X, class M, class F>
constexpr auto layer(const Scope& scope, std::string_view type, const masked<X, M>& x, const F& f,
                     std::source_location where = std::source_location::current()) {
    return x.with(layer(scope, type, x.value, f, where));
}
/// Positions do not belong to the batch, and have no mask: `x + tg::position_embedding(scope, x,
/// ...)`.
template <class Scope, class X, class M, class O = position_embedding_options, class... P>
constexpr auto position_embedding(const Scope& scope, const masked<X, M>& x, const O& o, const P&... first) {
    return position_embedding(scope, x.value, o, first...);
}
template <class X, class M, class O = wavelength_options>
constexpr auto sinusoidal_positions(const masked<X, M>& x, const O& o = {}) {
    return sinusoidal_positions(x.value, o);
}
template <class X, class M, class O = wavelength_options>
constexpr auto rotary_positions(const masked<X, M>& x, const O& o = {}) {
    return x.with(rotary_positions(x.value, o));
}

/// The mean over the steps that count, [batch, features]; 0 where none does.
template <class X, class M>
constexpr auto global_average_pooling1d(const masked<X, M>& x, reduce_options options = {},
                                        std::source_location where = std::source_location::current()) {
    const auto input = eval(x.value, where);
    if (!x.has_mask) return global_average_pooling1d(input, options, where);
    const auto counts = expand_dims(x.mask, -1, where);
    const auto wide = detail::as_float(input, where); // because a sum may leave half's range where the mean does not
    const auto total = sum(tapegraph::where(counts, wide, 0), 1, options, where);
    const auto steps = sum(tapegraph::where(counts, ones_like(wide), 0), 1, options, where);
    return detail::rounded_like(input, eval(total / maximum(steps, 1), where), where);
}
/// The maximum over the steps that count; -infinity where none does.
template <class X, class M>
constexpr auto global_max_pooling1d(const masked<X, M>& x, reduce_options options = {},
                                    std::source_location where = std::source_location::current()) {
    const auto input = eval(x.value, where);
    if (!x.has_mask) return global_max_pooling1d(input, options, where);
    constexpr double least = -std::numeric_limits<double>::infinity();
    return global_max_pooling1d(eval(tapegraph::where(expand_dims(x.mask, -1, where), input, least), where), options,
                                where);
}

/// The result of recurrent layers with states for a value with a mask: the output has the mask if
/// it is a sequence.
template <class Y, class H>
struct masked_recurrent_values {
    Y output;
    H hidden;
};
/// What a masked LSTM returns with its state: outputs, and the last hidden and cell state of each record.
template <class Y, class H>
struct masked_lstm_values {
    Y output;
    H hidden, cell;
};

namespace detail {

template <class Y, class Given>
constexpr auto masked_states(const Y& y, const Given& given) {
    if constexpr (requires { given.cell; })
        return masked_lstm_values<Y, std::remove_cvref_t<decltype(given.hidden)>>{y, given.hidden, given.cell};
    else
        return masked_recurrent_values<Y, std::remove_cvref_t<decltype(given.hidden)>>{y, given.hidden};
}

/// Calls f(value, mask or nothing) of a recurrent layer.
template <class F, class X, class M>
constexpr auto recurrent_under_mask(const masked<X, M>& x, bool sequences, bool backwards, const F& f) {
    const auto values = x.has_mask ? f(x.value, step_mask{x.mask}) : f(x.value);
    const bool kept = x.has_mask && sequences;
    const M mask = kept && backwards ? reverse(x.mask, 1) : x.mask; // outputs come in that order
    if constexpr (requires { values.output; }) {
        using H = std::remove_cvref_t<decltype(values.output)>;
        return masked_states(masked<H, M>{values.output, mask, kept}, values);
    } else {
        return masked<std::remove_cv_t<decltype(values)>, M>{values, mask, kept};
    }
}

} // namespace detail

// Recurrent layers skip masked steps. A sequence keeps the mask, the last step alone has none.
#define TG_STEPS_OVER_MASK(word, options)                                                                              \
    template <class Scope, class X, class M, class O = options, class... E>                                            \
    constexpr auto word(const Scope& scope, const masked<X, M>& x, const O& o, const E&... extras) {                   \
        const auto run = [&](const auto& value, const auto&... mask) {                                                 \
            return word(scope, value, o, mask..., extras...);                                                          \
        };                                                                                                             \
        return detail::recurrent_under_mask(x, o.return_sequences, o.go_backwards, run);                               \
    }
TG_STEPS_OVER_MASK(lstm, lstm_layer_options)
TG_STEPS_OVER_MASK(lstm_with_state, lstm_layer_options)
TG_STEPS_OVER_MASK(gru, gru_layer_options)
TG_STEPS_OVER_MASK(gru_with_state, gru_layer_options)
TG_STEPS_OVER_MASK(simple_rnn, simple_rnn_layer_options)
TG_STEPS_OVER_MASK(simple_rnn_with_state, simple_rnn_layer_options)
#undef TG_STEPS_OVER_MASK

/// As in Keras, a sequence is 0 at steps that do not count.
template <class Scope, class X, class M, class O = lstm_layer_options>
constexpr auto bidirectional(const Scope& scope, const masked<X, M>& x, O o, merge_mode mode = merge_mode{}) {
    o.zero_output_for_mask = o.return_sequences;
    return detail::recurrent_under_mask(x, o.return_sequences, false, [&](const auto& value, const auto&... mask) {
        return bidirectional(scope, value, o, mode, mask...);
    });
}
template <class Scope, class X, class M, class... O>
constexpr auto stacked(const Scope& scope, const masked<X, M>& x, const std::tuple<O...>& layers) {
    const auto& last = std::get<sizeof...(O) - 1>(layers);
    return detail::recurrent_under_mask(x, last.return_sequences, false, [&](const auto& value, const auto&... mask) {
        return stacked(scope, value, layers, mask...);
    });
}

namespace detail {

/// Calls f(query, value, mask or nothing) of attention: a step of the query that counts attends to
/// the steps of the value that do. The result has the query's mask.
template <class Q, class V, class F, class... Masks>
constexpr auto attention_under_masks(const Q& query, const V& value, const F& f, const Masks&... given) {
    const auto& q = without_mask(query);
    const auto& v = without_mask(value);
    const auto with = [&](const auto& seen) {
        if constexpr (sizeof...(Masks) == 0)
            return f(q, v, attention_mask{eval(seen)});
        else
            return f(q, v, attention_mask{eval(logical_and(seen, given.seen...))});
    };
    const auto by_value = [&](const auto&... before) {
        if constexpr (is_masked<V>)
            if (value.has_mask) {
                const auto sees = expand_dims(value.mask, -2);
                if constexpr (sizeof...(before) == 0)
                    return with(sees);
                else
                    return with(logical_and(before..., sees));
            }
        if constexpr (sizeof...(before) == 0)
            return f(q, v, given...);
        else
            return with(before...);
    };
    if constexpr (is_masked<Q>)
        return query.with(query.has_mask ? by_value(expand_dims(query.mask, -1)) : by_value());
    else
        return by_value();
}

template <class Q, class V>
concept one_masked = is_masked<Q> || is_masked<V>;

} // namespace detail

template <class Scope, class Q, class V, class O = multi_head_attention_options, class... Masks>
    requires detail::one_masked<Q, V>
constexpr auto multi_head_attention(const Scope& scope, const Q& query, const V& value, const O& o,
                                    const Masks&... masks) {
    return detail::attention_under_masks(
        query, value,
        [&](const auto& q, const auto& v, const auto&... seen) {
            return multi_head_attention(scope, q, v, o, seen...);
        },
        masks...);
}
template <class Scope, class Q, class V, class O = grouped_query_attention_options, class... Masks>
    requires detail::one_masked<Q, V>
constexpr auto grouped_query_attention(const Scope& scope, const Q& query, const V& value, const O& o,
                                       const Masks&... masks) {
    return detail::attention_under_masks(
        query, value,
        [&](const auto& q, const auto& v, const auto&... seen) {
            return grouped_query_attention(scope, q, v, o, seen...);
        },
        masks...);
}

namespace detail {
/// The mask of values [batch, time, ...] whose steps all count.
template <handle X>
constexpr auto mask_of_all(const X& x, int rank) {
    auto counts = eval(ones_like(x) == 1);
    while (shape_of(counts).rank() > rank) counts = all(counts, -1);
    return counts;
}
/// Combines masks [batch, time] of values that are concatenated along an axis: along one after the
/// steps, a step counts if it counts in all; along batch or time, the masks are concatenated, too.
template <class X, class Y, class M>
constexpr M mask_together(const masked<X, M>& a, const masked<Y, M>& b, int axis) {
    const int steps = shape_of(a.has_mask ? a.mask : b.mask).rank();
    if (axis >= steps) return both_masks(a, b).mask;
    return concat(a.has_mask ? a.mask : mask_of_all(a.value, steps), b.has_mask ? b.mask : mask_of_all(b.value, steps),
                  axis);
}
/// Gives a value without a mask a mask of another's type, in which all steps count.
template <class V, class Other>
constexpr auto as_masked(const V& value, const Other& other) {
    if constexpr (is_masked<V>) {
        return value.sealed();
    } else {
        const auto sealed = eval(value);
        return masked<std::remove_cv_t<decltype(sealed)>, decltype(other.mask)>{sealed, other.mask, false};
    }
}
} // namespace detail

/// Concatenates values of equal steps; on axes after the steps, a step counts if it counts in both.
/// On the axes of batch and time the masks are concatenated like the values, and all steps of a
/// value without a mask count.
template <class A, class B>
    requires detail::masked_operands<A, B>
constexpr auto concat(const A& x, const B& y, int axis = -1,
                      std::source_location where = std::source_location::current()) {
    const auto a = detail::as_masked(x, y);
    const auto b = detail::as_masked(y, a);
    auto result = a.with(concat(a.value, b.value, axis, where));
    const int place = axis < 0 ? axis + shape_of(a.value).rank() : axis;
    result.has_mask = a.has_mask || b.has_mask;
    if (result.has_mask) result.mask = detail::mask_together(a, b, place);
    return result;
}
/// Concatenates any number of them: concat({a, b, c}, -1).
template <class X, class M, std::size_t N>
constexpr auto concat(const masked<X, M> (&parts)[N], int axis = -1,
                      std::source_location where = std::source_location::current()) {
    auto result = parts[0].sealed();
    for (std::size_t i = 1; i < N; ++i) result = concat(result, parts[i], axis, where);
    return result;
}

// Layers that do not keep the steps report an error.
#define TG_ENDS_MASK(word)                                                                                             \
    template <class X, class M, class... More>                                                                         \
    constexpr X word(const masked<X, M>& x, const More&...) {                                                          \
        static_assert(always_false<X>, #word ": steps and their mask end here; say so, " #word "(x.value)");           \
        return x.value;                                                                                                \
    }
TG_ENDS_MASK(flatten)
TG_ENDS_MASK(reshape)
TG_ENDS_MASK(transpose)
#undef TG_ENDS_MASK
#define TG_HAS_NO_MASK(word, options)                                                                                  \
    template <class Scope, class X, class M, class O = options>                                                        \
    constexpr X word(const Scope&, const masked<X, M>& x, const O& = {}) {                                             \
        static_assert(always_false<X>, #word ": it has no mask, padding counts as any step; say so by x.value");       \
        return x.value;                                                                                                \
    }
TG_HAS_NO_MASK(conv1d, conv1d_layer_options)
#undef TG_HAS_NO_MASK

} // namespace tapegraph
