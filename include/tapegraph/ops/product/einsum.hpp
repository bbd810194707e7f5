#pragma once

#include <tapegraph/ops/movement/slice.hpp>
#include <tapegraph/ops/product/axis_labels.hpp>
#include <tapegraph/ops/product/matmul.hpp>

/// einsum of one or two operands, lowered to sums, transposes, reshapes and one matrix product (or one fused
/// multiplication and sum where there is no matrix).

namespace tapegraph {

namespace detail {

/// x with its axes in the order of `wanted`, which names the same labels.
template <handle H>
constexpr H ordered(const H& x, const axis_labels& labels, const axis_labels& wanted, std::source_location where) {
    if (labels == wanted) return x;
    transpose_op::attributes p;
    p.rank = wanted.count;
    for (int i = 0; i < wanted.count; ++i) p.permutation[i] = labels.find(wanted.label[i]);
    return invoke<transpose_op>(p, nullptr, where, x);
}

template <handle H>
constexpr H shaped(const H& x, const shape& target, std::source_location where) {
    if (shape_of(x) == target) return x;
    return invoke<reshape_op>({}, &target, where, x);
}

/// Sums over the axes that `kept` does not name.
template <handle H>
constexpr H summed(const H& x, axis_labels& labels, const axis_labels& kept, std::source_location where) {
    std::int64_t mask = 0;
    axis_labels left;
    for (int i = 0; i < labels.count; ++i) {
        if (kept.has(labels.label[i]))
            left.push_back(labels.label[i]);
        else
            mask |= std::int64_t{1} << i;
    }
    labels = left;
    if (mask == 0) return x;
    return reduce<sum_op>({mask, 0}, where, x);
}

/// One axis instead of two of the same label: the elements where both have the same index.
template <handle H>
constexpr H diagonal(const H& x, axis_labels& labels, int first, int second, std::source_location where) {
    const char label = labels.label[first];
    const shape from = shape_of(x);
    if (!from[first].known() || !from[second].known())
        return refuse<misfit_texts>(misfit_texts::reason(misfit::diagonal, label), where, x);
    if (from[first].value != from[second].value)
        return refuse<misfit_texts>(misfit_texts::reason(misfit::extents, label), where, x);
    const std::int64_t n = from[first].value;
    transpose_op::attributes last; // both axes after the others, merged into one
    shape flat;
    flat.attach(from.table());
    axis_labels rest;
    for (int i = 0; i < labels.count; ++i) {
        if (i == first || i == second) continue;
        last.permutation[last.rank++] = i;
        flat.push_back(from[i]);
        rest.push_back(labels.label[i]);
    }
    last.permutation[last.rank++] = first;
    last.permutation[last.rank++] = second;
    rest.push_back(label);
    labels = rest;
    flat.push_back(n * n);
    slice_op::attributes step;
    for (int i = 0; i < max_rank; ++i) step.step[i] = 1;
    step.step[flat.rank() - 1] = n + 1;
    shape target = flat;
    target.set(flat.rank() - 1, n);
    const H moved = invoke<reshape_op>({}, &flat, where, H(invoke<transpose_op>(last, nullptr, where, x)));
    return invoke<slice_op>(step, &target, where, moved);
}

/// Reduces repeated labels, so that each occurs once.
template <handle H>
constexpr H without_repeats(H x, axis_labels& labels, std::source_location where) {
    for (int i = 0; i < labels.count; ++i)
        for (int k = i + 1; k < labels.count; ++k)
            if (labels.label[i] == labels.label[k]) {
                const int before = labels.count;
                x = diagonal(x, labels, i, k, where);
                if (labels.count == before) return x; // refused
                i = -1;
                break;
            }
    return x;
}

/// Whether `order` is `first` followed by the labels of `second` and `third`.
constexpr bool reads(const axis_labels& order, const axis_labels& first, const axis_labels& second,
                     const axis_labels& third) {
    axis_labels all = first;
    all.append(second);
    all.append(third);
    return order == all;
}

/// x as matrices: [shared..., rows, columns], or [shared..., columns, rows] with `transposed` where
/// its axes are in that order.
template <handle H>
constexpr H as_matrices(const H& x, const axis_labels& labels, const axis_labels& shared, const axis_labels& rows,
                        const axis_labels& columns, bool& transposed, std::source_location where) {
    transposed = !reads(labels, shared, rows, columns) && reads(labels, shared, columns, rows);
    axis_labels order = shared;
    order.append(transposed ? columns : rows);
    order.append(transposed ? rows : columns);
    const H moved = ordered(x, labels, order, where);
    const shape from = shape_of(moved);
    const int split = shared.count + (transposed ? columns.count : rows.count);
    shape target;
    target.attach(from.table());
    for (int i = 0; i < shared.count; ++i) target.push_back(from[i]);
    target.push_back(from.size(shared.count, split));
    target.push_back(from.size(split, from.rank()));
    return shaped(moved, target, where);
}

/// x with axes in the order of `all`, of extent 1 where it has none.
template <handle H>
constexpr H aligned(const H& x, const axis_labels& labels, const axis_labels& all, std::source_location where) {
    axis_labels own;
    for (int i = 0; i < all.count; ++i)
        if (labels.has(all.label[i])) own.push_back(all.label[i]);
    const H moved = ordered(x, labels, own, where);
    const shape from = shape_of(moved);
    shape target;
    target.attach(from.table());
    int next = 0;
    for (int i = 0; i < all.count; ++i) target.push_back(labels.has(all.label[i]) ? from[next++] : extent(1));
    return shaped(moved, target, where);
}

/// The result type of two operands: a handle of their type or, under vmap, of the type of the
/// operand that each example has for itself.
template <handle A, handle B>
using contracted = std::remove_cvref_t<decltype(eval(std::declval<const A&>() * std::declval<const B&>()))>;

/// Under vmap the operands' handles differ where all examples share one of them.
template <handle A, handle B>
inline constexpr bool same_elements = std::is_same_v<A, B> || !std::is_same_v<mode_of_t<A>, mode_of_t<B>>;

/// The contraction of a and b: sums over axes that both have and `out` does not name. Every label
/// of `out` is in a or b, and each label occurs once in `out`, a and b.
template <handle A, handle B>
constexpr contracted<A, B> contract(A a, axis_labels la, B b, axis_labels lb, const axis_labels& out,
                                    std::source_location where) {
    axis_labels kept = out;
    kept.append(lb);
    a = summed(a, la, kept, where);
    kept = out;
    kept.append(la);
    b = summed(b, lb, kept, where);

    axis_labels shared, left, right, inner;
    bool plain = true; // no summed axis may be of extent 1 in one operand only
    for (int i = 0; i < out.count; ++i) {
        const char c = out.label[i];
        (la.has(c) ? (lb.has(c) ? shared : left) : right).push_back(c);
    }
    for (int i = 0; i < la.count; ++i)
        if (!out.has(la.label[i])) {
            inner.push_back(la.label[i]);
            plain = plain && !of_ellipsis(la.label[i]);
        }
    const shape sa = shape_of(a), sb = shape_of(b);
    for (int i = 0; i < la.count; ++i) {
        const char c = la.label[i];
        const int k = lb.find(c);
        if (k < 0) continue;
        const bool ones = of_ellipsis(c) && (sa[i].value == 1 || sb[k].value == 1);
        if (!ones && !equal_or_required(sa[i], sb[k]))
            return refuse<misfit_texts>(misfit_texts::reason(misfit::extents, c), where, a, b);
    }

    if (inner.count == 0 || !plain || (left.count == 0 && right.count == 0)) {
        axis_labels all = out;
        all.append(inner);
        if (all.count > max_rank) return refuse<misfit_texts>(misfit_texts::reason(misfit::rank), where, a, b);
        const A x = aligned(a, la, all, where);
        const B y = aligned(b, lb, all, where);
        if (inner.count == 0) return eval(x * y, where);
        const std::int64_t mask = ((std::int64_t{1} << inner.count) - 1) << out.count;
        return reduce<sum_op>({mask, 0}, where, x * y);
    }

    // The factor whose own axes the result names first is the left one.
    if (left.count > 0 && right.count > 0 && out.find(right.label[0]) < out.find(left.label[0]))
        return contract(b, lb, a, la, out, where);
    // The summed axes take the order of the operand that would otherwise be copied.
    axis_labels other;
    for (int i = 0; i < lb.count; ++i)
        if (inner.has(lb.label[i])) other.push_back(lb.label[i]);
    const auto in_place = [&](const axis_labels& order) {
        return int{reads(la, shared, left, order) || reads(la, shared, order, left)} +
               int{reads(lb, shared, order, right) || reads(lb, shared, right, order)};
    };
    if (in_place(other) > in_place(inner)) inner = other;

    matmul_op::attributes t;
    bool turned_a = false, turned_b = false;
    const A x = as_matrices(a, la, shared, left, inner, turned_a, where);
    const B y = as_matrices(b, lb, shared, inner, right, turned_b, where);
    t.transpose_a = turned_a, t.transpose_b = turned_b;
    const contracted<A, B> z = invoke<matmul_op>(t, nullptr, where, x, y);
    const shape product = shape_of(z);
    shape target;
    target.attach(product.table());
    for (int i = 0; i < shared.count; ++i) target.push_back(product[i]);
    for (int i = 0; i < left.count; ++i) target.push_back(sa[la.find(left.label[i])]);
    for (int i = 0; i < right.count; ++i) target.push_back(sb[lb.find(right.label[i])]);
    axis_labels order = shared;
    order.append(left);
    order.append(right);
    return ordered(shaped(z, target, where), order, out, where);
}

/// The error in a notation whose axes are known, or -1.
constexpr std::int64_t problem_of(const einsum_notation& n) {
    if (n.out.count > max_rank) return misfit_texts::reason(misfit::rank);
    for (int i = 0; i < n.out.count; ++i) {
        const char c = n.out.label[i];
        if (!n.in[0].has(c) && !n.in[1].has(c)) return misfit_texts::reason(misfit::unknown_label, c);
        if (n.out.find(c) < i) return misfit_texts::reason(misfit::label_twice, c);
    }
    return -1;
}

} // namespace detail

/// Einstein summation with NumPy's notation, for two operands: einsum("bij,bjk->bik", a, b). Axes
/// of one letter are the same axis; letters that the result does not name are summed over. Without
/// "->" the result has every letter that occurs once, in alphabetical order. "..." stands for
/// further axes, which broadcast. Extents of one letter must be equal.
template <tensor_like A, tensor_like B>
constexpr auto einsum(std::string_view subscripts, const A& a, const B& b,
                      std::source_location where = std::source_location::current()) {
    using namespace detail;
    auto x = eval(a, where);
    auto y = eval(b, where);
    static_assert(same_elements<decltype(x), decltype(y)>,
                  "einsum: element types differ; cast<...>() makes them equal");
    einsum_notation n(subscripts);
    std::int64_t problem = -1;
    if (!n.well_formed)
        problem = misfit_texts::reason(misfit::notation);
    else if (n.operands != 2)
        problem = misfit_texts::reason(misfit::operands);
    else if (!n.expand(0, shape_of(x).rank()) || !n.expand(1, shape_of(y).rank()))
        problem = misfit_texts::reason(misfit::axes);
    if (problem < 0) {
        n.complete();
        problem = problem_of(n);
    }
    if (problem >= 0) return refuse<misfit_texts>(problem, where, x, y);
    x = without_repeats(x, n.in[0], where);
    y = without_repeats(y, n.in[1], where);
    if (shape_of(x).rank() != n.in[0].count || shape_of(y).rank() != n.in[1].count) // refused already
        return refuse<misfit_texts>(misfit_texts::reason(misfit::axes), where, x, y);
    return contract(x, n.in[0], y, n.in[1], n.out, where);
}

/// Einstein summation of one operand: "ij->ji" transposes, "ij->i" sums, "ii->i" is the diagonal,
/// "ii" its sum.
template <tensor_like A>
constexpr auto einsum(std::string_view subscripts, const A& a,
                      std::source_location where = std::source_location::current()) {
    using namespace detail;
    auto x = eval(a, where);
    einsum_notation n(subscripts);
    std::int64_t problem = -1;
    if (!n.well_formed)
        problem = misfit_texts::reason(misfit::notation);
    else if (n.operands != 1)
        problem = misfit_texts::reason(misfit::operands);
    else if (!n.expand(0, shape_of(x).rank()))
        problem = misfit_texts::reason(misfit::axes);
    if (problem < 0) {
        n.complete();
        problem = problem_of(n);
    }
    if (problem >= 0) return refuse<misfit_texts>(problem, where, x);
    x = without_repeats(x, n.in[0], where);
    if (shape_of(x).rank() != n.in[0].count) return x; // refused
    x = summed(x, n.in[0], n.out, where);
    return ordered(x, n.in[0], n.out, where);
}

} // namespace tapegraph
