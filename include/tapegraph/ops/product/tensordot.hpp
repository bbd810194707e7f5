#pragma once

#include <tapegraph/ops/product/einsum.hpp>

/// Sums of products over chosen axes: tensordot, dot, inner, outer, vdot, with NumPy's meaning.

namespace tapegraph {

/// The axes that tensordot sums over: the last `count` of the first operand with the first `count`
/// of the second, or pairs of axes named for both. Negative axes count from the end.
struct tensordot_axes {
    std::int8_t first[max_rank]{}, second[max_rank]{};
    int count = 0;
    bool named = false, valid = true;

    // NOLINTNEXTLINE: implicit, for tensordot(a, b, 2)
    constexpr tensordot_axes(int several) : count(several), valid(several >= 0 && several <= max_rank) {}
    constexpr tensordot_axes(std::initializer_list<int> of_first, std::initializer_list<int> of_second)
        : named(true), valid(of_first.size() == of_second.size() && of_first.size() <= max_rank) {
        if (!valid) return;
        for (int axis : of_first) first[count++] = static_cast<std::int8_t>(axis);
        int i = 0;
        for (int axis : of_second) second[i++] = static_cast<std::int8_t>(axis);
    }
};

/// The sum of a * b over the selected axes; the result has the other axes of a, then those of b.
/// tensordot(a, b, {{0, 2}, {1, 3}}).
template <tensor_like A, tensor_like B>
constexpr auto tensordot(const A& a, const B& b, const tensordot_axes& axes = 2,
                         std::source_location where = std::source_location::current()) {
    using namespace detail;
    auto x = eval(a, where);
    auto y = eval(b, where);
    static_assert(same_elements<decltype(x), decltype(y)>,
                  "tensordot: element types differ; cast<...>() makes them equal");
    const shape sx = shape_of(x), sy = shape_of(y);
    axis_labels lx, ly, out;
    bool valid = axes.valid && axes.count <= sx.rank() && axes.count <= sy.rank();
    for (int i = 0; i < sx.rank(); ++i) lx.push_back(static_cast<char>('a' + i));
    for (int i = 0; i < sy.rank(); ++i) ly.push_back(static_cast<char>('A' + i));
    misfit problem = misfit::tensordot_axes;
    for (int k = 0; k < axes.count && valid; ++k) {
        const int i = axes.named ? normalized_axis(axes.first[k], sx.rank()) : sx.rank() - axes.count + k;
        const int j = axes.named ? normalized_axis(axes.second[k], sy.rank()) : k;
        valid = i >= 0 && j >= 0 && ly.label[j] < 'a' && !ly.has(lx.label[i]);
        if (!valid) break;
        ly.label[j] = lx.label[i];
        if (!equal_or_required(sx[i], sy[j])) valid = false, problem = misfit::tensordot_extents;
    }
    for (int i = 0; i < lx.count; ++i)
        if (!ly.has(lx.label[i])) out.push_back(lx.label[i]);
    for (int i = 0; i < ly.count; ++i)
        if (!lx.has(ly.label[i])) out.push_back(ly.label[i]);
    if (valid && out.count > max_rank) valid = false, problem = misfit::rank;
    if (!valid) return refuse<misfit_texts>(misfit_texts::reason(problem), where, x, y);
    return contract(x, lx, y, ly, out, where);
}

/// NumPy's dot: for vectors the sum of products; otherwise a sum over the last axis of a and the
/// second to last of b (its only one where it is a vector). A scalar multiplies.
template <tensor_like A, tensor_like B>
constexpr auto dot(const A& a, const B& b, std::source_location where = std::source_location::current()) {
    const auto x = eval(a, where);
    const auto y = eval(b, where);
    if (shape_of(x).rank() == 0 || shape_of(y).rank() == 0) return tensordot(x, y, 0, where);
    return tensordot(x, y, tensordot_axes({-1}, {shape_of(y).rank() == 1 ? -1 : -2}), where);
}

/// NumPy's inner: a sum over the last axis of both. A scalar multiplies.
template <tensor_like A, tensor_like B>
constexpr auto inner(const A& a, const B& b, std::source_location where = std::source_location::current()) {
    const auto x = eval(a, where);
    const auto y = eval(b, where);
    if (shape_of(x).rank() == 0 || shape_of(y).rank() == 0) return tensordot(x, y, 0, where);
    return tensordot(x, y, tensordot_axes({-1}, {-1}), where);
}

/// Every element of a times every element of b, [elements of a, elements of b]: NumPy's outer, which flattens.
template <tensor_like A, tensor_like B>
constexpr auto outer(const A& a, const B& b, std::source_location where = std::source_location::current()) {
    return eval(reshape(a, {-1, 1}, where) * reshape(b, {1, -1}, where), where);
}

/// The sum of products of all elements of two tensors of equal size: NumPy's vdot, which flattens.
template <tensor_like A, tensor_like B>
constexpr auto vdot(const A& a, const B& b, std::source_location where = std::source_location::current()) {
    return tensordot(reshape(a, {-1}, where), reshape(b, {-1}, where), 1, where);
}

} // namespace tapegraph
