#pragma once

#include <tapegraph/core/math/root.hpp>
#include <tapegraph/ops/attention/attention_formula.hpp>

/// attention: softmax(scale Q K^T + mask) V as one operation.

namespace tapegraph {

/// Options of `attention`.
struct attention_options {
    double scale = 0;    ///< of the scores; 0: 1 / sqrt(depth)
    bool causal = false; ///< query i sees the keys up to i + causal_offset
    std::int64_t causal_offset = 0;
    bool causal_at_end = false; ///< the offset counts from the last key: at 0, the last query sees all of them
    double dropout = 0;         ///< rate at which weights are set to zero; the others are scaled by 1 / (1 - rate)
};

namespace detail {

/// Whether this mode draws numbers; vmap's does not.
template <class H>
concept drawing = requires(const H& x) {
    mode_of_t<H>::template draw_like<random_address_op>({}, {}, {}, x);
};

/// The address of the next random numbers, in the element type of x.
template <handle H>
constexpr H random_address(const H& x, std::source_location where) {
    shape dims = no_axes(shape_of(x));
    dims.push_back(random_address_op<float>::words);
    return draw_like<random_address_op>({}, dims, where, x);
}

/// q, k, v and a bias, if there is one, of one element type, float or double.
template <handle Q, handle K, handle V, handle... Bias>
constexpr auto attention_of(attention_attributes a, const Q& q, const K& k, const V& v, std::source_location where,
                            const Bias&... bias) {
    a.biased = sizeof...(Bias);
    const auto none = filled_like(q, shape{1, 1, 1, 1}, 0, where);
    const auto run = [&](const auto& address) {
        const auto result = [&] {
            if constexpr (sizeof...(Bias) == 1)
                return invoke<attention_op>(a, nullptr, where, q, k, v, bias..., address);
            else
                return invoke<attention_op>(a, nullptr, where, q, k, v, none, address);
        }();
        const shape from = shape_of(q), values = shape_of(v);
        // Otherwise the error is that of the operation.
        const shape dims = from.rank() == 4 && values.rank() == 4 ? attention_result(from, values) : shape_of(result);
        return attention_part(result, extent(0, from.table()), dims, where);
    };
    if constexpr (drawing<Q>) {
        if (a.drops != 0) return run(random_address(q, where));
    } else if (a.drops != 0) {
        a.drops = attention_attributes::cannot_draw;
    }
    return run(none);
}

template <handle Q, handle M>
constexpr auto bias_where(const Q& q, const M& seen, std::source_location where) {
    const auto none = filled_like(q, shape{1, 1, 1, 1}, 0, where);
    return eval(tapegraph::where(seen, none, -std::numeric_limits<double>::infinity()), where);
}
/// A mask as a bias of four axes in the element type of q: 0 where a bool one is true, else -infinity.
template <handle Q, handle M>
constexpr auto attention_bias(const Q& q, const M& mask, std::source_location where) {
    const shape own = shape_of(mask);
    shape dims = no_axes(shape_of(q));
    for (int i = own.rank(); i < 4; ++i) dims.push_back(1);
    for (int i = 0; i < own.rank(); ++i) dims.push_back(own[i]);
    const auto wide = invoke<reshape_op>({}, &dims, where, mask);
    if constexpr (one_handle<mode_of_t<Q>>) {
        using H = typename mode_of_t<Q>::node;
        return type_of(mask) == dtype::boolean ? H(bias_where(q, wide, where)) : H(as_float(wide, where));
    } else if constexpr (static_type<M>::value == dtype::boolean) {
        return bias_where(q, wide, where);
    } else {
        return as_float(wide, where);
    }
}

template <handle Q>
constexpr attention_attributes attention_attributes_of(const attention_options& o, const Q& q) {
    const shape dims = shape_of(q);
    const double depth = dims.rank() == 4 && dims[3].known() ? static_cast<double>(dims[3].value) : 1;
    attention_attributes a;
    a.scale = o.scale != 0 ? o.scale : depth > 0 ? 1 / math::sqrt(depth) : 1;
    a.causal = o.causal;
    a.offset = o.causal_offset;
    a.ends = o.causal_at_end;
    a.drops = o.dropout != 0;
    a.rate = o.dropout;
    return a;
}

} // namespace detail

/// Attention: softmax(scale Q K^T) V for each head. Queries [batch, time, heads, depth], keys [batch,
/// steps, kv heads, depth] and values [batch, steps, kv heads, width] give [batch, time, heads,
/// width]; query head h uses head h kv heads / heads of keys and values. Memory is linear in the
/// lengths. 16-bit elements are computed in float and rounded once.
template <tensor_like Q, tensor_like K, tensor_like V>
constexpr auto attention(const Q& q, const K& k, const V& v, const attention_options& o = {},
                         std::source_location where = std::source_location::current()) {
    const auto queries = eval(q, where);
    const auto wide = detail::as_float(queries, where);
    const auto keys = detail::as_float(eval(k, where), where);
    const auto values = detail::as_float(eval(v, where), where);
    const auto y = detail::attention_of(detail::attention_attributes_of(o, wide), wide, keys, values, where);
    return detail::rounded_like(queries, y, where);
}
/// With a mask that broadcasts to [batch, heads, time, steps]: a bool one says which keys a query sees,
/// other numbers are added to the scores, and at -infinity a key is not seen. Keys and values that are
/// not seen do not count, even if they are infinite or NaN, and neither do they get a derivative. A
/// query that sees nothing gives zeros.
template <tensor_like Q, tensor_like K, tensor_like V, tensor_like M>
constexpr auto attention(const Q& q, const K& k, const V& v, const M& mask, const attention_options& o = {},
                         std::source_location where = std::source_location::current()) {
    const auto queries = eval(q, where);
    const auto wide = detail::as_float(queries, where);
    const auto keys = detail::as_float(eval(k, where), where);
    const auto values = detail::as_float(eval(v, where), where);
    const auto bias = detail::attention_bias(wide, eval(mask, where), where);
    const auto y = detail::attention_of(detail::attention_attributes_of(o, wide), wide, keys, values, where, bias);
    return detail::rounded_like(queries, y, where);
}
no_such_option_in<attention_options> attention(any_argument, any_argument, any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
