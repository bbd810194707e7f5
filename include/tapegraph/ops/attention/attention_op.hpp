#pragma once

#include <tapegraph/ops/elementwise/in_float.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/random/random.hpp>

#include <limits>

/// The operations of attention: softmax(scale Q K^T + mask) V, whose memory is linear in the lengths
/// (Vaswani et al. 2017; by tiles: Dao et al. 2022), and its derivative. The derivative by a bias and
/// derivatives of the derivative are formulas (attention_formula.hpp).

namespace tapegraph {

/// Operands: queries [batch, time, heads, depth], keys [batch, steps, kv heads, depth], values [batch,
/// steps, kv heads, width]; a bias, which broadcasts to [batch, heads, time, steps]; and an address of
/// random numbers (random_address_op). The last two are any numbers where they are not used.
struct attention_attributes {
    double scale = 1;
    std::int64_t causal = 0; ///< query i sees the keys up to i + offset, plus steps - time if `ends`
    std::int64_t offset = 0, ends = 0;
    std::int64_t biased = 0; ///< a bias is added to the scores; at -infinity a key is not seen
    std::int64_t equal = 0;  ///< a query that sees no key weighs all of them alike; otherwise it gives zeros
    std::int64_t drops = 0;  ///< weights are dropped
    double rate = 0;         ///< with this probability
    static constexpr std::int64_t cannot_draw = 2; ///< drops: in a mode without random numbers
};

/// Which of a step's random draws it is.
struct random_address_attributes {
    std::int64_t ordinal = 0;
};

/// Where a random operation's numbers come from, so that an operation can draw them itself: seed, step
/// and ordinal in numbers of 16 bits, from the lowest on, four, four and two of them. Extents before
/// the last are vmap's; all of them have the same.
template <class T>
struct random_address_op {
    static constexpr std::string_view name = "random_address";
    using result_element = T;
    static constexpr operation_kind kind = operation_kind::random;
    static constexpr int arity = 0;
    static constexpr std::int64_t words = 10;
    using attributes = random_address_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        io.type = dtype_of<T>;
        io.result = *io.target;
    }
};

namespace detail {

struct attention_extents {
    extent batch, time, heads, depth, steps, kv_heads, width;
};
constexpr attention_extents attention_extents_of(const shape& q, const shape& k, const shape& v) {
    return {q[0], q[1], q[2], q[3], k[1], k[2], v[3]};
}
/// [batch, time, heads, width], and its elements, which come first in the operation's result.
constexpr shape attention_result(const shape& q, const shape& v) {
    shape dims = q;
    dims.set(3, v[3]);
    return dims;
}

/// Whether operands from `first` on, queries, keys, values, a bias and an address, fit.
constexpr bool attention_fits(const attention_attributes& a, inference& io, int first) {
    const shape &q = io.in[first].dims, &k = io.in[first + 1].dims, &v = io.in[first + 2].dims,
                &bias = io.in[first + 3].dims;
    io.type = io.in[first].type;
    io.culprit = first + 1;
    for (int i = 0; i < io.count; ++i)
        if (!io.require(io.in[i].type == io.type, "attention: element types differ")) return false;
    if (!io.require(is_floating(io.type), "attention: the elements are not floating; cast<float>(x) first") ||
        !io.require(q.rank() == 4 && k.rank() == 4,
                    "attention: queries and keys must be [batch, length, heads, features]") ||
        !io.require(equal_or_required(q[0], k[0]), "attention: batches of queries and keys differ") ||
        !io.require(equal_or_required(q[3], k[3]), "attention: features of queries and keys differ") ||
        !io.require(q[2].known() && k[2].known() && (k[2].value > 0 ? q[2].value % k[2].value == 0 : q[2].value == 0),
                    "attention: the heads of keys must divide those of queries, and both be known"))
        return false;
    io.culprit = first + 2;
    bool same = v.rank() == 4;
    for (int i = 0; same && i < 3; ++i) same = equal_or_required(v[i], k[i]);
    if (!io.require(same, "attention: values must be [batch, length, heads, features], like keys but for features"))
        return false;
    io.culprit = first + 3;
    const extent wanted[4]{q[0], q[2], q[1], k[1]};
    bool fits = bias.rank() == 4;
    for (int i = 0; fits && a.biased != 0 && i < 4; ++i)
        fits = (bias[i].known() && bias[i].value == 1) || equal_or_required(bias[i], wanted[i]);
    return io.require(fits, "attention: the mask does not broadcast to [batch, heads, time, steps]") &&
           io.require(a.rate >= 0 && a.rate < 1, "attention: dropout must lie in [0, 1)") &&
           io.require(a.drops != attention_attributes::cannot_draw,
                      "attention: vmap has no random numbers for dropout");
}

template <handle H>
constexpr H attention_part(const H& flat, const extent& before, const shape& dims, std::source_location where) {
    const H part = part_of(flat, 0, before, dims.size(), where);
    return invoke<reshape_op>({}, &dims, where, part);
}

/// 2 (depth + width) for each score.
inline double attention_flops(const kernel_call& c, int first) {
    const buffer_view &q = c.in[first], &k = c.in[first + 1], &v = c.in[first + 2];
    return 2 * static_cast<double>(q.extents[0] * q.extents[2]) * static_cast<double>(q.extents[1] * k.extents[1]) *
           static_cast<double>(q.extents[3] + v.extents[3]);
}

} // namespace detail

/// Uniform numbers in [0, 1) of the operand's element type, at the address in it: those of a random
/// operation with this shape.
struct numbers_at_op {
    static constexpr std::string_view name = "numbers_at";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_nothing;
    static constexpr int arity = 1;
    using attributes = no_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
    }
};

/// (derivative by the result, q, k, v, bias, address, result) to the derivatives by q, k and v, one
/// after the other.
struct attention_gradient_op {
    static constexpr std::string_view name = "attention_gradient";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = 63;
    static constexpr int arity = 7;
    using attributes = attention_attributes;
    static constexpr void infer(const attributes& a, inference& io) {
        if (!detail::attention_fits(a, io, 1)) return;
        io.result.push_back(io.in[1].dims.size() + io.in[2].dims.size() + io.in[3].dims.size());
    }
    static constexpr auto shared(const attributes& a, const auto& u, const auto& dy, const auto& q, const auto& k,
                                 const auto& v, const auto& bias, const auto& address, const auto&, const auto&);
    template <int I>
        requires(I < 5)
    static constexpr auto flow(const attributes&, const auto& terms, const auto&, const auto& dy, const auto&...) {
        return terms.template flow<I>(shape_of(dy));
    }
    template <int I>
        requires(I < 5)
    static constexpr auto vjp(const attributes& a, auto u, auto... rest) {
        return flow<I>(a, shared(a, u, rest...), u, rest...);
    }
    static double flops(const kernel_call& c) { return 2.5 * detail::attention_flops(c, 1); }
};

/// (q, k, v, bias, address) to the result [batch, time, heads, width], flat, and behind it for each
/// query, [batch, heads, time, 2], its largest score and one by the sum of exponentials relative to
/// it, of which the derivative makes weights again.
struct attention_op {
    static constexpr std::string_view name = "attention";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr int arity = 5;
    using attributes = attention_attributes;
    static constexpr void infer(const attributes& a, inference& io) {
        if (!detail::attention_fits(a, io, 0)) return;
        const shape& q = io.in[0].dims;
        io.result.push_back(detail::attention_result(q, io.in[2].dims).size() + q[0] * q[1] * q[2] * 2);
    }
    static constexpr auto shared(const attributes& a, const auto& dy, const auto& q, const auto& k, const auto& v,
                                 const auto& bias, const auto& address, const auto& y) {
        return invoke<attention_gradient_op>(a, nullptr, std::source_location::current(), dy, q, k, v, bias, address,
                                             y);
    }
    template <int I>
        requires(I < 4)
    static constexpr auto flow(const attributes& a, const auto& slopes, const auto& dy, const auto& q, const auto& k,
                               const auto& v, const auto& bias, const auto& address, const auto&);
    template <int I>
        requires(I < 4)
    static constexpr auto vjp(const attributes& a, auto dy, auto... rest) {
        return flow<I>(a, shared(a, dy, rest...), dy, rest...);
    }
    static double flops(const kernel_call& c) { return detail::attention_flops(c, 0); }
};

} // namespace tapegraph
