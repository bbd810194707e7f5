#pragma once

#include <tapegraph/core/math/root.hpp>
#include <tapegraph/model/initializer.hpp>
#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/ops/attention/attention.hpp>
#include <tapegraph/ops/product/einsum.hpp>

/// Attention layers. Not part of tapegraph.hpp: programs without them do not compile them.

namespace tapegraph {

/// Defaults as in Keras.
struct multi_head_attention_options {
    std::int64_t num_heads = 1;
    std::int64_t key_dim = 1;    ///< per head
    std::int64_t value_dim = 0;  ///< per head; 0: key_dim
    std::int64_t output_dim = 0; ///< 0: the query's number of features
    double dropout = 0;          ///< rate for attention weights, in training
    bool use_bias = true;
    bool use_causal_mask = false; ///< step t of the query attends to the steps of the value up to t
    initializer kernel_initializer = init::glorot_uniform{};
    initializer bias_initializer = init::zeros{};
    regularizer kernel_regularizer{}, bias_regularizer{};
    constraint kernel_constraint{}, bias_constraint{};
};

/// Which steps of the value a step of the query attends to: bool [batch, query's time, value's
/// time], or a shape that broadcasts to that.
template <handle M>
struct attention_mask {
    M seen;
};
template <class M>
attention_mask(M) -> attention_mask<M>;

namespace detail {

/// x [batch, time, features] to [batch, time, heads, dim]: "kernel" [features, heads, dim], "bias" [heads, dim].
template <class Scope, handle H, class Options>
constexpr H attention_heads(const Scope& scope, const H& x, std::int64_t heads, std::int64_t dim, const Options& o,
                            std::source_location where) {
    const H kernel = scope.variable_like(x, "kernel", {shape_of(x)[2].value, heads, dim}, kernel_options(o));
    const H product = einsum("btf,fhd->bthd", x, kernel, where);
    if (!o.use_bias) return product;
    return eval(product + scope.variable_like(x, "bias", {heads, dim}, bias_options(o)), where);
}

/// Attention (ops/attention/attention.hpp) under a mask, bool [batch, heads, time, steps] or what
/// broadcasts to that, if there is one. As in Keras all weights are equal where a step attends to
/// nothing; steps that no step attends to are zeros (steps_in_use).
template <class Scope, handle H, handle... Seen>
constexpr H attended(const Scope& scope, const H& queries, const H& keys, const H& values, bool causal, double rate,
                     std::source_location where, const Seen&... seen) {
    attention_attributes a = attention_attributes_of({.causal = causal}, queries);
    a.equal = 1;
    a.drops = rate != 0 && scope.training();
    a.rate = rate;
    const auto q = as_float(queries, where);
    using Wide = std::remove_cvref_t<decltype(q)>;
    const Wide k = as_float(keys, where), v = as_float(values, where);
    const auto run = [&]() -> Wide { return attention_of(a, q, k, v, where, attention_bias(q, seen, where)...); };
    if (a.drops == 0) return rounded_like(queries, run(), where);
    return rounded_like(queries, Wide(scope.with_draws(run)), where);
}

/// The steps of a query or value [batch, time, features] that attend to another step, or are
/// attended to; the others are 0, so that their content does not matter. `across`: the axis of
/// `seen` along which the other steps lie.
template <handle H>
constexpr H steps_in_use(const H& x, int, std::source_location) {
    return x;
}
template <handle H, class M>
constexpr H steps_in_use(const H& x, int across, std::source_location where, const attention_mask<M>& mask) {
    const auto used = expand_dims(any(mask.seen, across, {}, where), -1, where);
    return eval(tapegraph::where(used, x, 0), where);
}

template <class Scope, handle H, class... Masks>
constexpr H attention(const Scope& scope, const H& query, const H& value, const multi_head_attention_options& o,
                      std::source_location where, const attention_mask<Masks>&... masks) {
    const shape q = shape_of(query), v = shape_of(value);
    const bool sensible =
        scope.require(q.rank() == 3 && v.rank() == 3 && q[2].known() && v[2].known(),
                      "multi_head_attention: query and value must be [batch, time, features], features known") &&
        scope.require(o.num_heads > 0 && o.key_dim > 0 && o.value_dim >= 0 && o.output_dim >= 0,
                      "multi_head_attention: num_heads and key_dim must be positive, other extents not negative") &&
        scope.require(o.dropout >= 0 && o.dropout < 1, "multi_head_attention: dropout must lie in [0, 1)");
    if (!sensible) return query;
    const std::int64_t width = o.value_dim > 0 ? o.value_dim : o.key_dim;
    const std::int64_t features = o.output_dim > 0 ? o.output_dim : q[2].value;
    const H queries = attention_heads(scope / "query", query, o.num_heads, o.key_dim, o, where);
    const H keys = attention_heads(scope / "key", value, o.num_heads, o.key_dim, o, where);
    const H values = attention_heads(scope / "value", value, o.num_heads, width, o, where);
    scope.enter(); // the following operations belong to this layer again

    const H heads = attended(scope, queries, keys, values, o.use_causal_mask, o.dropout, where,
                             expand_dims(masks.seen, -3, where)...);

    const Scope last = scope / "attention_output";
    const H kernel = last.variable_like(query, "kernel", {o.num_heads, width, features}, kernel_options(o));
    const H product = einsum("bthd,hdf->btf", heads, kernel, where);
    if (!o.use_bias) return product;
    return eval(product + last.variable_like(query, "bias", {features}, bias_options(o)), where);
}

} // namespace detail

/// Attention of num_heads heads (Vaswani et al. 2017): query [batch, time, features] attends to
/// value [batch, steps, others], which is also the key. Returns [batch, time, output_dim]:
///
///     softmax((query W_q + b_q) (value W_k + b_k)^T / sqrt(key_dim)) (value W_v + b_v) W_o + b_o
///
/// Variables as in Keras: "query", "key" and "value", each with "kernel" [features, heads, dim] and
/// "bias" [heads, dim], and "attention_output" with "kernel" [heads, value_dim, output_dim] and "bias"
/// [output_dim]. An `attention_mask{...}` may follow.
template <layer_scope Scope, tensor_like Q, tensor_like V, class... Masks>
    requires(sizeof...(Masks) <= 1)
constexpr auto multi_head_attention(const Scope& scope, const Q& query, const V& value,
                                    const multi_head_attention_options& o, const attention_mask<Masks>&... masks) {
    const auto where = std::source_location::current();
    const auto given = scope.operand(query, where);
    const decltype(given) offered = detail::steps_in_use(scope.operand(value, where), -2, where, masks...);
    const decltype(given) masked_query = detail::steps_in_use(given, -1, where, masks...);
    const auto mark = scope.enter();
    return scope.leave("multi_head_attention", mark,
                       detail::attention(scope, masked_query, offered, o, where, masks...));
}
template <layer_scope Scope>
no_such_option_in<multi_head_attention_options> multi_head_attention(const Scope&, any_argument, any_argument,
                                                                     ...) TG_MISTAKE;
template <class First>
    requires(!layer_scope<First>)
detail::scope_missing multi_head_attention(const First&, ...)
TG_MISTAKE;

} // namespace tapegraph
