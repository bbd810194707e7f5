#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>
#include <tapegraph/io/onnx_import/rules_movement.hpp>

/// Matrix products, reductions, softmax, cumulative sums and products, losses.

namespace tapegraph::io::onnx_import {

namespace rules {

/// An operand of rank 2 or more for matmul, whose last two axes may be swapped (`transposed`).
inline node matrix(call& c, int i, bool& transposed) {
    std::vector<int> axes;
    const node x = as_it_lies(c, i, axes);
    transposed = false;
    const int last = static_cast<int>(axes.size()) - 1;
    if (last < 1) return c.plain(i);
    std::swap(axes[static_cast<std::size_t>(last)], axes[static_cast<std::size_t>(last) - 1]);
    for (int k = 0; k <= last; ++k)
        if (axes[static_cast<std::size_t>(k)] != k) return c.plain(i);
    transposed = true;
    return x;
}
/// A matrix product of integers, which is exact: elementwise products that are summed.
inline node integer_product(const node& x, const node& y) {
    const node a = x.rank() == 1 ? with_axis(x, 0) : x, b = y.rank() == 1 ? with_axis(y, 1) : y;
    const node products = eval(with_axis(a, a.rank()) * with_axis(b, b.rank() - 2));
    node z = sum(products, axes_of({products.rank() - 2}));
    if (y.rank() == 1) z = squeeze(z, axes_of({z.rank() - 1}));
    if (x.rank() == 1) z = squeeze(z, axes_of({z.rank() - (y.rank() == 1 ? 1 : 2)}));
    return z;
}
inline void matmul_rule(call& c) {
    if (c.type(0) != c.type(1)) refuse(std::string("of ") + name_of(c.type(0)) + " and " + name_of(c.type(1)));
    const dtype type = c.type(0);
    if (type == dtype::u64 || type == dtype::boolean) refuse(std::string("of ") + name_of(type));
    if (!is_floating(type)) {
        const node z =
            integer_product(converted(c.plain(0), type, dtype::i64), converted(c.plain(1), type, dtype::i64));
        return c.give(0, converted(z, dtype::i64, type), type);
    }
    matmul_options options;
    const node x = matrix(c, 0, options.transpose_a), y = matrix(c, 1, options.transpose_b);
    c.give(0, matmul(x, y, options), type);
}
inline void gemm_rule(call& c) {
    const dtype type = c.type(0);
    c.ignore("broadcast");
    const double alpha = c.number("alpha", 1), beta = c.number("beta", 1);
    const bool ta = c.integer("transA", 0) != 0, tb = c.integer("transB", 0) != 0;
    if (!is_floating(type)) refuse(std::string("of ") + name_of(type));
    if (c.rank(0) != 2 || c.rank(1) != 2) refuse("of operands that are not matrices");
    matmul_options options;
    const node x = matrix(c, 0, options.transpose_a), y = matrix(c, 1, options.transpose_b);
    options.transpose_a = options.transpose_a != ta;
    options.transpose_b = options.transpose_b != tb;
    node z = matmul(x, y, options);
    if (alpha != 1) z = eval(alpha * z);
    if (c.has(2) && beta != 0) {
        const node bias = c.plain(2);
        z = beta == 1 ? eval(z + bias) : eval(z + beta * bias);
    }
    c.give(0, z, type);
}
inline void einsum_rule(call& c) {
    std::string text = c.text("equation", "");
    std::erase(text, ' ');
    if (!is_floating(c.type(0))) refuse(std::string("of ") + name_of(c.type(0)));
    if (c.inputs() == 1) return c.give(0, einsum(text, c.plain(0)), c.type(0));
    if (c.inputs() != 2) refuse("of " + std::to_string(c.inputs()) + " operands");
    if (c.type(1) != c.type(0)) refuse("of several element types");
    c.give(0, einsum(text, c.plain(0), c.plain(1)), c.type(0));
}

using reducer = node (*)(const node& x, const axes& over, reduce_options options);

/// `by_order`: f chooses an element, by the order of elements. `of_none`: the result over no elements,
/// where f has none.
inline void reduction(call& c, reducer f, bool integers, bool plain_where_nothing, bool by_order = false,
                      const array* of_none = nullptr) {
    const dtype type = c.type(0);
    if (!integers && !is_floating(type)) refuse(std::string("of ") + name_of(type));
    const bool keep = c.integer("keepdims", 1) != 0, noop = c.integer("noop_with_empty_axes", 0) != 0;
    std::vector<int> axes, over;
    const node x = as_it_lies(c, 0, axes);
    std::set<int> named;
    for (const std::int64_t a : axes_input(c, 1)) named.insert(c.axis(a, c.rank(0)));
    if (named.empty() && noop && plain_where_nothing) return c.give(0, c.pointer(0));
    if (named.empty() && !noop)
        for (int i = 0; i < c.rank(0); ++i) named.insert(i);
    std::vector<int> left;
    for (std::size_t p = 0; p < axes.size(); ++p)
        if (named.contains(axes[p])) over.push_back(static_cast<int>(p));
    std::vector<int> kept;
    for (int i = 0; i < c.rank(0); ++i)
        if (!named.contains(i)) kept.push_back(i);
    for (const int a : axes)
        if (keep)
            left.push_back(a);
        else if (!named.contains(a))
            left.push_back(place_of(kept, a));
    if (of_none != nullptr)
        for (const int p : over)
            if (x.shape()[p].value == 0) {
                std::vector<std::int64_t> dims;
                for (int i = 0; i < c.rank(0); ++i)
                    if (keep || !named.contains(i)) dims.push_back(named.contains(i) ? 1 : c.dims(0)[i].value);
                return c.give(0, eval(broadcast_to(c.on.constant(*of_none), shape_of_items(c, dims))), type);
            }
    const dtype carrier = x.type() == dtype::u8 ? dtype::i32 : x.type();
    const node wide = carrier == x.type() ? x : eval(cast<std::int32_t>(x));
    const bool unsigned_order = by_order && type == dtype::u64;
    node y = in_float(unsigned_order ? in_signed_order(wide, type) : wide,
                      [&](const node& v) { return f(v, axes_of(over), {.keepdims = keep}); });
    if (unsigned_order) y = in_signed_order(y, type);
    if (type != dtype::boolean && is_integer(type)) y = call::wrapped(y, type);
    if (type == dtype::u8) y = eval(cast<std::uint8_t>(eval(y % 256)));
    c.give_laid(0, y, type, left);
}
/// The result of ReduceMax or ReduceMin over no elements: the lowest or highest number of the type.
inline array of_no_elements(dtype type, bool largest) {
    array a(type, {});
    visit_type(type, [&]<class T>(std::type_identity<T>) {
        T value;
        if constexpr (is_floating_type<T>)
            value = static_cast<T>(largest ? -std::numeric_limits<double>::infinity()
                                           : std::numeric_limits<double>::infinity());
        else
            value = largest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
        std::memcpy(a.data(), &value, sizeof value);
    });
    return a;
}
template <bool Largest>
void extreme(call& c) {
    const array of_none = of_no_elements(c.type(0), Largest);
    reduction(
        c,
        [](const node& x, const axes& over, reduce_options o) -> node {
            if (x.type() == dtype::boolean) return Largest ? any(x, over, o) : all_of(x, over, o);
            return Largest ? max(x, over, o) : min(x, over, o);
        },
        true, true, true, &of_none);
}

template <bool Largest>
void arg_extreme(call& c) {
    const int axis = c.axis(c.integer("axis", 0), c.rank(0));
    const bool keep = c.integer("keepdims", 1) != 0, last = c.integer("select_last_index", 0) != 0;
    node x = in_signed_order(c.plain(0), c.type(0));
    if (last) x = reverse(x, axes_of({axis}));
    node at = Largest ? argmax(x, axis, {.keepdims = keep}) : argmin(x, axis, {.keepdims = keep});
    at = eval(cast<std::int64_t>(at));
    if (last) at = eval(graph::extent_number(at, c.dims(0)[axis]) - 1 - at);
    c.give(0, at, dtype::i64);
}

inline void softmax_like(call& c, node (*f)(const node&, int)) {
    const dtype type = c.type(0);
    if (!is_floating(type)) refuse(std::string("of ") + name_of(type));
    const std::int64_t given = c.integer("axis", c.opset() < 13 ? 1 : -1);
    const auto computed = [&](const node& x, int axis) {
        return in_float(x, [&](const node& v) { return f(v, axis); });
    };
    if (c.opset() < 13) { // over this axis and all after it, as one
        const shape s = c.dims(0);
        const int axis = given == s.rank() ? s.rank() : c.axis(given, s.rank());
        const node flat = reshape(c.plain(0), shape_of_items(c, {s.size(0, axis).value, s.size(axis, s.rank()).value}));
        return c.give(0, reshape(computed(flat, 1), s), type);
    }
    std::vector<int> axes;
    const node x = as_it_lies(c, 0, axes);
    c.give_laid(0, computed(x, place_of(axes, c.axis(given, c.rank(0)))), type, axes);
}
inline node hardmax(const node& x, int axis) {
    const extent count = x.shape()[axis];
    shape along;
    along.attach(count.table);
    for (int i = 0; i < x.rank(); ++i) along.push_back(i == axis ? count : extent(1));
    const node places = reshape(arange<std::int32_t>(x, count), along), best = argmax(x, axis, {.keepdims = true});
    return eval(where(places == best, full_like(x, 1.0), full_like(x, 0.0)));
}

template <bool Sum>
void cumulative(call& c) {
    const int axis = c.axis(c.integers(1, "axes").at(0), c.rank(0));
    const cumulative_options options{.reverse = c.integer("reverse", 0) != 0,
                                     .exclusive = c.integer("exclusive", 0) != 0};
    const dtype type = c.type(0);
    if (!is_floating(type) && type != dtype::i32 && type != dtype::i64) refuse(std::string("of ") + name_of(type));
    const node x = c.plain(0);
    c.give(0, Sum ? cumulative_sum(x, axis, options) : cumulative_product(x, axis, options), type);
}

// Losses
inline void loss_of_logs(call& c, const node& logs, int target, int weights) {
    const std::string how = c.text("reduction", "mean");
    const attribute* const ignored = c.find("ignore_index");
    if (how != "none" && how != "sum" && how != "mean") refuse("reduction = '" + how + "'");
    const node labels = c.plain(target);
    node safe = labels, one = eval(cast<float>(zeros_like(labels)) + 1);
    one = converted(one, dtype::f32, logs.type());
    const bool leaves_out = ignored != nullptr;
    node skipped;
    if (leaves_out) {
        skipped = eval(labels == static_cast<double>(ignored->i));
        safe = eval(where(skipped, 0, labels));
    }
    node factor = c.has(weights) ? gather(c.plain(weights), safe, 0) : one;
    if (leaves_out) factor = eval(where(skipped, 0, factor));
    const node picked = squeeze(take_along(logs, with_axis(safe, 1), 1), axes_of({1}));
    const node each = eval(-picked * factor);
    if (how == "none") return c.give(0, each);
    const node total = sum(each);
    c.give(0, how == "sum" ? total : eval(total / sum(factor)));
}
inline void negative_log_likelihood(call& c) {
    const dtype type = c.type(0);
    loss_of_logs(c, converted(c.plain(0), type, type == dtype::f64 ? type : dtype::f32), 1, 2);
    if (c.type(0) != c.results()[0]->type) refuse(std::string("of ") + name_of(type));
}
inline void softmax_cross_entropy_rule(call& c) {
    const dtype type = c.type(0);
    if (type != dtype::f32 && type != dtype::f64) refuse(std::string("of ") + name_of(type));
    const node logs = log_softmax(c.plain(0), 1);
    loss_of_logs(c, logs, 1, 2);
    c.give(1, logs, type);
}

#define TG_ONNX_REDUCER(f, integers, none)                                                                             \
    [](call& c) {                                                                                                      \
        reduction(                                                                                                     \
            c, [](const node& x, const axes& over, reduce_options o) -> node { return eval(f); }, integers, none);     \
    }

inline void absolute_sum(call& c) {
    if (c.type(0) == dtype::u64) return TG_ONNX_REDUCER(sum(x, over, o), true, false)(c);
    TG_ONNX_REDUCER(sum(abs(x), over, o), true, false)(c);
}

inline std::span<const operator_rule> reductions() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"MatMul", &matmul_rule},
        {"Gemm", &gemm_rule},
        {"Einsum", &einsum_rule},
        {"ReduceSum", TG_ONNX_REDUCER(sum(x, over, o), true, true)},
        {"ReduceProd", TG_ONNX_REDUCER(prod(x, over, o), true, true)},
        {"ReduceMean", TG_ONNX_REDUCER(mean(x, over, o), false, true)},
        {"ReduceMax", &extreme<true>},
        {"ReduceMin", &extreme<false>},
        {"ReduceL1", &absolute_sum},
        {"ReduceL2", TG_ONNX_REDUCER(sqrt(sum(x * x, over, o)), false, false)},
        {"ReduceSumSquare", TG_ONNX_REDUCER(sum(x * x, over, o), true, false)},
        {"ReduceLogSum", TG_ONNX_REDUCER(log(sum(x, over, o)), false, false)},
        {"ReduceLogSumExp", TG_ONNX_REDUCER(logsumexp(x, over, o), false, false)},
        {"ArgMax", &arg_extreme<true>},
        {"ArgMin", &arg_extreme<false>},
        {"Softmax", [](call& c) { softmax_like(c, [](const node& x, int axis) -> node { return softmax(x, axis); }); }},
        {"LogSoftmax",
         [](call& c) { softmax_like(c, [](const node& x, int axis) -> node { return log_softmax(x, axis); }); }},
        {"Hardmax", [](call& c) { softmax_like(c, &hardmax); }},
        {"CumSum", &cumulative<true>},
        {"CumProd", &cumulative<false>},
        {"NegativeLogLikelihoodLoss", &negative_log_likelihood},
        {"SoftmaxCrossEntropyLoss", &softmax_cross_entropy_rule},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
