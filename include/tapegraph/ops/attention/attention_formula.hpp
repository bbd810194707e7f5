#pragma once

#include <tapegraph/ops/attention/attention_op.hpp>
#include <tapegraph/ops/product/matmul.hpp>
#include <tapegraph/ops/reduction/softmax.hpp>

/// What attention is made of, [batch, kv heads, shared, time, steps]: for the derivative by a bias and
/// for derivatives of the derivative. Their memory is quadratic in the lengths.

namespace tapegraph::detail {

/// Weights P, their factors M by dropout, and products with them.
template <handle H>
struct attention_formula {
    attention_attributes a;
    std::source_location where = std::source_location::current();
    shape dims, key_dims, bias_dims;
    attention_extents e{};
    H q, k, v, bias, weights, kept; // heads apart

    constexpr attention_formula(const attention_attributes& attributes, const H& queries, const H& keys,
                                const H& values, const H& given, const H& address)
        : a(attributes), dims(shape_of(queries)), key_dims(shape_of(keys)), bias_dims(shape_of(given)) {
        e = attention_extents_of(dims, key_dims, shape_of(values));
        q = apart(queries), k = of_keys(keys), v = of_keys(values);
        bias = a.biased != 0 ? bias_apart(given) : given;
        H scores = eval(times(q, k, 0, 1) * a.scale, where);
        if (a.biased != 0) scores = eval(scores + bias, where);
        // Where a query sees nothing, softmax weighs all keys alike.
        weights = softmax(where_seen(scores, -1e30), -1, where);
        if (a.equal == 0) weights = where_seen(weights, 0);
        kept = weights;
        if (a.drops != 0) {
            shape all = no_axes(dims);
            for (const extent x : {e.batch, e.heads, e.time, e.steps}) all.push_back(x);
            const H drawn = invoke<numbers_at_op>({}, &all, where, address);
            const H factors =
                eval(tapegraph::where(drawn >= a.rate, filled_like(weights, all, 1 / (1 - a.rate), where), 0), where);
            const shape to = shape_of(weights);
            kept = invoke<reshape_op>({}, &to, where, factors);
        }
    }
    static constexpr H times(const H& x, const H& y, std::int64_t tx, std::int64_t ty) {
        return invoke<matmul_op>({tx, ty}, nullptr, std::source_location::current(), x, y);
    }
    constexpr shape of(std::initializer_list<extent> extents) const {
        shape made = no_axes(dims);
        for (const extent& x : extents) made.push_back(x);
        return made;
    }
    constexpr extent shared() const { return e.kv_heads.value > 0 ? e.heads / e.kv_heads.value : extent(1); }
    constexpr H shaped(const H& x, const shape& to) const { return invoke<reshape_op>({}, &to, where, x); }
    /// [batch, time, heads, n] to [batch, kv heads, shared, time, n].
    constexpr H apart(const H& x) const {
        const extent n = shape_of(x)[3];
        return transpose(shaped(x, of({e.batch, e.time, e.kv_heads, shared(), n})), {0, 2, 3, 1, 4}, where);
    }
    constexpr H together(const H& x) const {
        const extent n = shape_of(x)[4];
        return shaped(transpose(x, {0, 3, 1, 2, 4}, where), of({e.batch, e.time, e.heads, n}));
    }
    /// [batch, steps, kv heads, n] to [batch, kv heads, 1, steps, n].
    constexpr H of_keys(const H& x) const {
        const extent n = shape_of(x)[3];
        return shaped(transpose(x, {0, 2, 1, 3}, where), of({e.batch, e.kv_heads, 1, e.steps, n}));
    }
    /// [batch, kv heads, shared, steps, n] to [batch, steps, kv heads, n], added up over `shared`.
    constexpr H keys_together(const H& x) const { return transpose(H(sum(x, 2, {}, where)), {0, 2, 1, 3}, where); }
    constexpr shape bias_split() const {
        const bool one = bias_dims[1].known() && bias_dims[1].value == 1;
        return of({bias_dims[0], one ? extent(1) : e.kv_heads, one ? extent(1) : shared(), bias_dims[2], bias_dims[3]});
    }
    constexpr H bias_apart(const H& x) const { return shaped(x, bias_split()); }
    /// x where a key is seen, elsewhere a number.
    constexpr H where_seen(const H& x, double other) const {
        H y = x;
        if (a.biased != 0)
            y = eval(tapegraph::where(not_equal(bias, -std::numeric_limits<double>::infinity()), y, other), where);
        if (a.causal != 0) {
            const auto distance = eval(diagonal_number(x, e.time, e.steps, where), where);
            if (a.ends != 0) {
                const auto beyond = eval(distance - extent_number(distance, e.steps - e.time), where);
                y = eval(tapegraph::where(beyond <= static_cast<double>(a.offset), y, other), where);
            } else {
                y = eval(tapegraph::where(distance <= static_cast<double>(a.offset), y, other), where);
            }
        }
        return y;
    }
    constexpr H dropped(const H& x) const { return a.drops != 0 ? H(eval(x * kept, where)) : x; }
    constexpr H row_sums(const H& x) const { return sum(x, -1, {.keepdims = true}, where); }
    /// The derivative by the scores of <g, P>: P (g - rows(P g)).
    constexpr H by_scores(const H& g) const {
        const H along = row_sums(eval(weights * g, where));
        return where_seen(eval(weights * (g - along), where), 0);
    }
    constexpr H by_bias(const H& by_score) const { return shaped(sum_to(by_score, bias_split()), bias_dims); }
};

/// What derivatives of <u, gradient> have in common. With A = scale (u_q K^T + Q u_k^T), that is
/// <A, dS> + <M P, dY u_v^T> where dS = P (dP - rows(P dP)) and dP = M (dY V^T).
template <handle H>
struct attention_second {
    attention_formula<H> of;
    H dy, uq, uk, uv;
    H by_adjoint;     ///< P (A - rows(P A)), which is also the derivative by dP
    H scores, slopes; ///< the derivative by the scores, and dS

    constexpr attention_second(const attention_formula<H>& formula, const H& u, const H& adjoint, const shape& v_dims)
        : of(formula) {
        const auto here = of.where;
        const shape y_dims = attention_result(of.dims, v_dims);
        dy = of.apart(attention_part(adjoint, extent(0, of.dims.table()), y_dims, here));
        uq = of.apart(attention_part(u, extent(0, of.dims.table()), of.dims, here));
        uk = of.of_keys(attention_part(u, of.dims.size(), of.key_dims, here));
        uv = of.of_keys(attention_part(u, of.dims.size() + of.key_dims.size(), v_dims, here));
        const H first = of.times(uq, of.k, 0, 1), second = of.times(of.q, uk, 0, 1);
        const H both = eval((first + second) * of.a.scale, here);
        const H slope = of.dropped(of.times(dy, of.v, 0, 1)), more = of.dropped(of.times(dy, uv, 0, 1));
        const H delta = of.row_sums(eval(of.weights * slope, here)), along = of.row_sums(eval(of.weights * both, here));
        by_adjoint = of.by_scores(both);
        slopes = of.by_scores(slope);
        const H by_weights = eval(both * slope - both * delta - along * slope + more, here);
        scores = of.by_scores(by_weights);
    }
    /// scale (x a + y b), or of the transposed x and y.
    constexpr H scaled(const H& x, const H& a, const H& y, const H& b, std::int64_t transposed) const {
        const H first = of.times(x, a, transposed, 0), second = of.times(y, b, transposed, 0);
        return eval((first + second) * of.a.scale, of.where);
    }

    /// By operand I of the derivative: dy, q, k, v or the bias.
    template <int I>
    constexpr H flow(const shape& whole) const {
        const auto here = of.where;
        if constexpr (I == 0) {
            const H first = of.times(of.dropped(by_adjoint), of.v, 0, 0),
                    more = of.times(of.dropped(of.weights), uv, 0, 0);
            const H by_result = of.together(eval(first + more, here));
            shape flat = no_axes(of.dims);
            flat.push_back(shape_of(by_result).size());
            return invoke<pad_op>(whole_slice(), &whole, here, invoke<reshape_op>({}, &flat, here, by_result));
        } else if constexpr (I == 1) {
            return of.together(scaled(slopes, uk, scores, of.k, 0));
        } else if constexpr (I == 2) {
            return of.keys_together(scaled(slopes, uq, scores, of.q, 1));
        } else if constexpr (I == 3) {
            return of.keys_together(of.times(of.dropped(by_adjoint), dy, 1, 0));
        } else {
            return of.a.biased != 0 ? of.by_bias(scores) : of.bias;
        }
    }
};

} // namespace tapegraph::detail

namespace tapegraph {

template <int I>
    requires(I < 4)
constexpr auto attention_op::flow(const attributes& a, const auto& slopes, const auto& dy, const auto& q, const auto& k,
                                  const auto& v, const auto& bias, const auto& address, const auto&) {
    using H = std::remove_cvref_t<decltype(q)>;
    const auto here = std::source_location::current();
    const shape of_q = shape_of(q), of_k = shape_of(k), of_v = shape_of(v);
    if constexpr (I == 0) {
        return detail::attention_part(slopes, extent(0, of_q.table()), of_q, here);
    } else if constexpr (I == 1) {
        return detail::attention_part(slopes, of_q.size(), of_k, here);
    } else if constexpr (I == 2) {
        return detail::attention_part(slopes, of_q.size() + of_k.size(), of_v, here);
    } else {
        if (a.biased == 0) return bias; // zeros, which nobody reads: a tape asks all the same
        const detail::attention_formula<H> of(a, q, k, v, bias, address);
        const H adjoint =
            of.apart(detail::attention_part(dy, extent(0, of_q.table()), detail::attention_result(of_q, of_v), here));
        return of.by_bias(of.by_scores(of.dropped(of.times(adjoint, of.v, 0, 1))));
    }
}

constexpr auto attention_gradient_op::shared(const attributes& a, const auto& u, const auto& dy, const auto& q,
                                             const auto& k, const auto& v, const auto& bias, const auto& address,
                                             const auto&, const auto&) {
    using H = std::remove_cvref_t<decltype(q)>;
    return detail::attention_second<H>(detail::attention_formula<H>(a, q, k, v, bias, address), u, dy, shape_of(v));
}

} // namespace tapegraph
