#pragma once

#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/positions.hpp>
#include <tapegraph/ops/gather/rows_kernel.hpp>
#ifdef TG_CUDA
#include <tapegraph/cuda/ops/gather/rows.cuh>
#endif

/// Attention whose heads share keys and values, and attention that continues step by step from a
/// cache of them. Not part of tapegraph.hpp: programs without them do not compile them.

namespace tapegraph {

/// Names and defaults are those of Keras. With equal numbers of heads its variables are those of
/// multi_head_attention.
struct grouped_query_attention_options {
    std::int64_t head_dim = 1;
    std::int64_t num_query_heads = 1;
    std::int64_t num_key_value_heads = 0; ///< must divide num_query_heads; 0: the same number
    double dropout = 0;                   ///< rate for attention weights, in training
    bool use_bias = true;
    bool use_causal_mask = false; ///< step t of the query attends to the steps of the value up to t
    double rotary_wavelength = 0; ///< if not 0, rotary_positions with this max_wavelength rotates queries and keys
    initializer kernel_initializer = init::glorot_uniform{};
    initializer bias_initializer = init::zeros{};
    regularizer kernel_regularizer{}, bias_regularizer{};
    constraint kernel_constraint{}, bias_constraint{};
};

/// Keys and values of the steps seen so far: [batch, capacity, num_key_value_heads, head_dim] each,
/// initially any numbers, such as zeros.
template <class H>
struct attention_cache {
    H keys, values;
};
template <class H>
attention_cache(H, H) -> attention_cache<H>;

/// The result of cached_attention: `const auto [y, next] = ...`.
template <class H>
struct attention_step {
    H output;
    attention_cache<H> cache;
};

/// Says that cached_attention writes into its cache: see there.
struct write_in_place_tag {};
inline constexpr write_in_place_tag write_in_place{};

namespace detail {

template <class Scope, handle H>
constexpr H attention_output(const Scope& scope, const H& query, const H& heads,
                             const grouped_query_attention_options& o, std::source_location where) {
    const Scope last = scope / "attention_output";
    const std::int64_t features = shape_of(query)[2].value;
    const H kernel = last.variable_like(query, "kernel", {o.num_query_heads, o.head_dim, features}, kernel_options(o));
    const H product = einsum("bthd,hdf->btf", heads, kernel, where);
    if (!o.use_bias) return product;
    return eval(product + last.variable_like(query, "bias", {features}, bias_options(o)), where);
}

template <class Scope>
constexpr bool sensible_heads(const Scope& scope, const shape& q, const shape& v, grouped_query_attention_options& o) {
    if (o.num_key_value_heads == 0) o.num_key_value_heads = o.num_query_heads;
    return scope.require(q.rank() == 3 && v.rank() == 3 && q[2].known() && v[2].known(),
                         "grouped_query_attention: query and value must be [batch, time, features], features known") &&
           scope.require(
               o.head_dim > 0 && o.num_query_heads > 0 && o.num_key_value_heads > 0 &&
                   o.num_query_heads % o.num_key_value_heads == 0,
               "grouped_query_attention: head_dim must be positive, num_key_value_heads divide num_query_heads") &&
           scope.require(o.dropout >= 0 && o.dropout < 1, "grouped_query_attention: dropout must lie in [0, 1)") &&
           scope.require(neither_negative_nor_infinite(o.rotary_wavelength) &&
                             (o.rotary_wavelength == 0 || o.head_dim % 2 == 0),
                         "grouped_query_attention: rotary_wavelength needs an even head_dim");
}

template <handle H, class... First>
constexpr H maybe_rotated(const H& x, double wavelength, std::source_location where, const First&... first) {
    return wavelength == 0 ? x : H(rotated(x, {wavelength}, where, first...));
}

/// Writes steps [batch, n, heads, dim] into [batch, capacity, heads, dim] where `offsets`, the place
/// of an entry minus that of the first step, i32 [batch, capacity], is in [0, n).
template <handle H, handle I>
constexpr H written(const H& cache, const H& steps, const I& offsets, std::source_location where) {
    const extent n = shape_of(steps)[1];
    const auto last = extent_number(offsets, n - extent(1));
    const auto fresh = eval(logical_and(offsets >= 0, offsets <= last), where);
    const auto chosen = expand_dims(fresh, {2, 3}, where);
    if (n.known() && n.value == 1) return eval(tapegraph::where(chosen, steps, cache), where);
    const auto index = eval(clip(offsets, 0, last), where);
    return eval(tapegraph::where(chosen, gather(steps, index, 1, 1, where), cache), where);
}
/// The rows of a table [batch * capacity, ...] for `n` steps from `first` on: [batch, n], -1, which is no
/// row, for a step beyond the capacity.
template <handle H, handle I>
constexpr auto rows_of_steps(const H& cache, const I& first, const extent& n, std::source_location where) {
    const shape dims = shape_of(cache);
    const auto record = arange<std::int32_t>(cache, dims[0], 0, 1, where);
    const auto place = eval(expand_dims(first, -1, where) + arange<std::int32_t>(cache, n, 0, 1, where), where);
    const auto capacity = extent_number(place, dims[1]);
    return eval(tapegraph::where(logical_and(place >= 0, place < capacity),
                                 expand_dims(record, -1, where) * capacity + place, -1),
                where);
}
/// The same as `written` row by row, at a cost of the steps alone where the result takes over the
/// cache's memory.
template <handle H, handle I>
constexpr H written_rows(const H& cache, const H& steps, const I& rows, std::source_location where) {
    const shape dims = shape_of(cache);
    shape table = no_axes(dims);
    for (const extent e : {dims.size(0, 2), dims[2], dims[3]}) table.push_back(e);
    const H flat = invoke<reshape_op>({}, &table, where, cache);
    return invoke<reshape_op>({}, &dims, where, assign_rows(flat, rows, steps, where));
}

template <bool InPlace, class Scope, tensor_like X, handle H, tensor_like P>
constexpr attention_step<H> attention_continued(const Scope& scope, const X& x, const attention_cache<H>& cache,
                                                const P& position, grouped_query_attention_options o,
                                                std::source_location where) {
    const H input = scope.operand(x, where);
    const auto mark = scope.enter();
    const shape dims = shape_of(input), kept = shape_of(cache.keys);
    if (!sensible_heads(scope, dims, dims, o) ||
        !scope.require(kept.rank() == 4 && kept == shape_of(cache.values) && kept[2].value == o.num_key_value_heads &&
                           kept[3].value == o.head_dim,
                       "cached_attention: keys and values must be [batch, capacity, num_key_value_heads, head_dim]"))
        return {scope.leave("cached_attention", mark, input), cache};
    const auto given = eval(position, where);
    shape each = no_axes(dims);
    each.push_back(shape_of(given).rank() == 0 ? extent(1) : shape_of(given)[0]);
    const auto first = reshape(given, each, where); // [batch] or [1]
    H queries = attention_heads(scope / "query", input, o.num_query_heads, o.head_dim, o, where);
    H keys = attention_heads(scope / "key", input, o.num_key_value_heads, o.head_dim, o, where);
    const H values = attention_heads(scope / "value", input, o.num_key_value_heads, o.head_dim, o, where);
    scope.enter(); // the following operations belong to this layer again
    queries = maybe_rotated(queries, o.rotary_wavelength, where, first);
    keys = maybe_rotated(keys, o.rotary_wavelength, where, first);

    const auto entries = arange<std::int32_t>(input, kept[1], 0, 1, where);
    shape both = no_axes(dims);
    for (const extent e : {dims[0], kept[1]}) both.push_back(e);
    const auto offsets = eval(broadcast_to(entries - expand_dims(first, -1, where), both), where);
    const auto next = [&] {
        if constexpr (InPlace) {
            const auto rows = rows_of_steps(cache.keys, first, dims[1], where);
            return attention_cache<H>{written_rows(cache.keys, keys, rows, where),
                                      written_rows(cache.values, values, rows, where)};
        } else {
            return attention_cache<H>{written(cache.keys, keys, offsets, where),
                                      written(cache.values, values, offsets, where)};
        }
    }();
    const auto steps = arange<std::int32_t>(input, dims[1], 0, 1, where);
    const auto places = expand_dims(offsets, 1, where);
    const auto seen = eval(places <= expand_dims(steps, -1, where), where); // [batch, n, capacity]
    const H heads =
        attended(scope, queries, next.keys, next.values, false, o.dropout, where, expand_dims(seen, 1, where));
    return {scope.leave("cached_attention", mark, attention_output(scope, input, heads, o, where)), next};
}

} // namespace detail

/// Zeros for the keys and values of `capacity` steps, with the batch and element type of x [batch,
/// time, features].
template <tensor_like X>
constexpr auto empty_attention_cache(const X& x, std::int64_t capacity, const grouped_query_attention_options& o,
                                     std::source_location where = std::source_location::current()) {
    const auto input = eval(x, where);
    const std::int64_t heads = o.num_key_value_heads > 0 ? o.num_key_value_heads : o.num_query_heads;
    shape dims = detail::no_axes(shape_of(input));
    dims.push_back(detail::last_extent(shape_of(input), 3));
    for (const std::int64_t e : {capacity, heads, o.head_dim}) dims.push_back(e);
    const auto zeros = detail::cast_like(input, fill<float>(input, dims, 0, where), where);
    return attention_cache{zeros, zeros};
}
no_such_option_in<grouped_query_attention_options> empty_attention_cache(any_argument, any_argument, ...) TG_MISTAKE;

/// Attention in which num_query_heads / num_key_value_heads neighbouring heads share keys and
/// values (Ainslie et al. 2023): query [batch, time, features] attends to value [batch, steps,
/// others], which is also the key. The result has query's shape. Variables are those of Keras:
/// "query", "key", "value" and "attention_output", each with "kernel" and "bias". An
/// `attention_mask{...}` may follow.
template <layer_scope Scope, tensor_like Q, tensor_like V, class... Masks>
    requires(sizeof...(Masks) <= 1)
constexpr auto grouped_query_attention(const Scope& scope, const Q& query, const V& value,
                                       grouped_query_attention_options o, const attention_mask<Masks>&... masks) {
    const auto where = std::source_location::current();
    const auto given = scope.operand(query, where);
    using H = std::remove_cvref_t<decltype(given)>;
    const H masked_query = detail::steps_in_use(given, -1, where, masks...);
    const H offered = detail::steps_in_use(H(scope.operand(value, where)), -2, where, masks...);
    const auto mark = scope.enter();
    const shape q = shape_of(masked_query), v = shape_of(offered);
    if (!detail::sensible_heads(scope, q, v, o)) return scope.leave("grouped_query_attention", mark, masked_query);
    H queries = detail::attention_heads(scope / "query", masked_query, o.num_query_heads, o.head_dim, o, where);
    H keys = detail::attention_heads(scope / "key", offered, o.num_key_value_heads, o.head_dim, o, where);
    const H values = detail::attention_heads(scope / "value", offered, o.num_key_value_heads, o.head_dim, o, where);
    scope.enter(); // the following operations belong to this layer again
    queries = detail::maybe_rotated(queries, o.rotary_wavelength, where);
    keys = detail::maybe_rotated(keys, o.rotary_wavelength, where);
    const H seen = detail::attended(scope, queries, keys, values, o.use_causal_mask, o.dropout, where,
                                    expand_dims(masks.seen, -3, where)...);
    return scope.leave("grouped_query_attention", mark, detail::attention_output(scope, masked_query, seen, o, where));
}
template <layer_scope Scope>
no_such_option_in<grouped_query_attention_options> grouped_query_attention(const Scope&, any_argument, any_argument,
                                                                           ...) TG_MISTAKE;
template <class First>
    requires(!layer_scope<First>)
detail::scope_missing grouped_query_attention(const First&, ...)
TG_MISTAKE;

/// Causal attention of n further steps x [batch, n, features] to those whose keys and values a
/// cache holds. The steps are at `position`, position + 1, ..., i32, a scalar or [batch], and
/// attend to places up to their own. Returns their output and the updated cache. The output is that
/// of grouped_query_attention with `use_causal_mask`, or of multi_head_attention with equal numbers
/// of heads, over the whole sequence with the same variables. n is 1 to generate, and the prompt's
/// length at the start. Steps beyond the capacity are not kept.
template <layer_scope Scope, tensor_like X, handle H, tensor_like P>
constexpr attention_step<H> cached_attention(const Scope& scope, const X& x, const attention_cache<H>& cache,
                                             const P& position, grouped_query_attention_options o,
                                             std::source_location where = std::source_location::current()) {
    return detail::attention_continued<false>(scope, x, cache, position, o, where);
}
/// The same, to the bit, without a derivative by the cache and the steps in it. Where the cache is a
/// session's variable to which the result is assigned, and nothing else reads it, only the n steps
/// are written, and no copy is made. A step beyond the capacity throws a range_error.
template <layer_scope Scope, tensor_like X, handle H, tensor_like P>
constexpr attention_step<H> cached_attention(const Scope& scope, const X& x, const attention_cache<H>& cache,
                                             const P& position, grouped_query_attention_options o, write_in_place_tag,
                                             std::source_location where = std::source_location::current()) {
    return detail::attention_continued<true>(scope, x, cache, position, o, where);
}
template <layer_scope Scope>
no_such_option_in<grouped_query_attention_options> cached_attention(const Scope&, any_argument, any_argument,
                                                                    any_argument, ...) TG_MISTAKE;
template <class First>
    requires(!layer_scope<First>)
detail::scope_missing cached_attention(const First&, ...)
TG_MISTAKE;

} // namespace tapegraph
