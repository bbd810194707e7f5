#pragma once

#include <tapegraph/nn/losses/loss.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/reduction/norm.hpp>

/// Triplet losses from labels: embeddings [batch, d] of records of one class should be nearer to
/// each other than to those of other classes, by a margin (Schroff et al. 2015; Hermans et al.
/// 2017; the formulas of TensorFlow Addons). Triplets are chosen inside the batch; the choice has
/// no derivative. Embeddings usually have length 1. Memory: [batch, batch].

namespace tapegraph {

namespace detail {

constexpr tensor_spec label_per_row(const shape& output) {
    shape dims;
    dims.attach(output.table());
    if (output.rank() > 0) dims.push_back(output[0]);
    return {dtype::i32, dims};
}
/// Refuses labels unless there is one for each row.
constexpr void check_rows(const auto& x, const auto& z) {
    if (!same_shape_or_required(label_per_row(shape_of(x)).dims, shape_of(z))) refuse_labels(2, x, z);
}
/// Distances between all rows, [batch, batch]; the derivative at 0 is 0.
constexpr auto distances(const auto& x, const auto& squared) {
    const auto rows = eval(expand_dims(x, 1));
    const auto columns = eval(expand_dims(x, 0));
    const auto lengths = norm(rows - columns, 2, -1);
    return eval(where(squared > 0, square(lengths), lengths));
}
/// The pairs [batch, batch] of one class.
constexpr auto of_one_class(const auto& z) {
    const auto rows = eval(expand_dims(z, 1));
    const auto columns = eval(expand_dims(z, 0));
    return eval(rows == columns);
}
/// The pairs of two different records.
constexpr auto of_two_records(const auto& z) {
    const auto place = arange<std::int32_t>(z, shape_of(z)[0]);
    const auto rows = eval(expand_dims(place, 1));
    return eval(rows != place);
}
template <class Loss>
constexpr std::array<double, 2> triplet_numbers(const Loss& loss) {
    return {number_within("triplet", "margin", loss.margin, 0), loss.squared ? 1.0 : 0.0};
}

} // namespace detail

/// Semi-hard triplets: for each pair (a, p) of records of one class, n is the negative nearest to a
/// among those farther than p, or the farthest negative if there is none. The loss is the mean over
/// pairs of max(margin + d(a, p) - d(a, n), 0). Pairs whose anchor has no negative are left out;
/// without any pair the loss is 0. As a mean over pairs it has no loss per record.
struct triplet_semi_hard {
    double margin = 1;
    bool squared = false; ///< squared distances

    static constexpr std::string_view name = "triplet_semi_hard";
    static constexpr int count = 2;
    constexpr std::array<double, count> numbers() const { return detail::triplet_numbers(*this); }
    constexpr auto operator()(const auto& x, const auto& z) const { return (*this)(x, z, numbers()); }
    constexpr auto operator()(const auto& x, const auto& z, const auto& n) const {
        return detail::in_floats([](const auto&... operands) { return of_pairs(operands...); }, x, z, n);
    }
    static constexpr tensor_spec labels(dtype, const shape& output) { return detail::label_per_row(output); }

private:
    static constexpr auto of_pairs(const auto& x, const auto& z, const auto& n) {
        detail::check_rows(x, z);
        const auto d = detail::distances(eval(x), n[1]);
        const auto same = detail::of_one_class(z);
        const auto pairs = detail::of_two_records(z);
        const auto fixed = eval(stop_gradient(d));
        // Negatives are ordered by distance; the number that are no farther than p is the index of
        // the first one that is.
        const auto order = argsort(where(same, std::numeric_limits<double>::infinity(), fixed));
        const auto negatives = sum(cast<std::int32_t>(logical_not(same)), -1, {.keepdims = true});
        const auto from_anchor = eval(expand_dims(fixed, 1)), to_positive = eval(expand_dims(fixed, 2));
        const auto others = eval(expand_dims(same, 1));
        const auto nearer = sum(cast<std::int32_t>(logical_and(logical_not(others), from_anchor <= to_positive)), -1);
        const auto place = eval(maximum(minimum(nearer, negatives - 1), 0));
        const auto chosen = take_along(order, place);
        const auto to_negative = take_along(d, chosen);
        const auto counts = eval(logical_and(logical_and(same, pairs), negatives > 0));
        const auto total = sum(where(counts, maximum(n[0] + d - to_negative, 0), 0));
        const auto number = sum(where(counts, ones_like(d), 0));
        return eval(total / maximum(number, 1));
    }
};

/// The hardest triplet of each record a: p is the farthest record of its class, n the nearest of
/// another, max(margin + d(a, p) - d(a, n), 0). A record without p or n contributes 0.
struct triplet_hard {
    double margin = 1;
    bool squared = false; ///< squared distances

    static constexpr std::string_view name = "triplet_hard";
    static constexpr int count = 2;
    constexpr std::array<double, count> numbers() const { return detail::triplet_numbers(*this); }
    constexpr auto operator()(const auto& x, const auto& z) const { return (*this)(x, z, numbers()); }
    constexpr auto operator()(const auto& x, const auto& z, const auto& n) const {
        return detail::mean_of_records<triplet_hard>(x, z, n);
    }
    static constexpr auto per_record(const auto& x, const auto& z, const auto& n) {
        return detail::in_floats([](const auto&... operands) { return of_rows(operands...); }, x, z, n);
    }
    static constexpr tensor_spec labels(dtype, const shape& output) { return detail::label_per_row(output); }

private:
    static constexpr auto of_rows(const auto& x, const auto& z, const auto& n) {
        detail::check_rows(x, z);
        const auto d = detail::distances(eval(x), n[1]);
        const auto same = detail::of_one_class(z);
        const auto pairs = detail::of_two_records(z);
        const auto fixed = eval(stop_gradient(d));
        const auto positive = eval(logical_and(same, pairs));
        const auto farthest = argmax(where(positive, fixed, -1), -1, {.keepdims = true});
        const auto nearest =
            argmin(where(same, std::numeric_limits<double>::infinity(), fixed), -1, {.keepdims = true});
        const auto to_positive = detail::without_last_axis(take_along(d, farthest));
        const auto to_negative = detail::without_last_axis(take_along(d, nearest));
        const auto has_positive = any(positive, -1);
        const auto has_negative = any(logical_not(same), -1);
        const auto counts = eval(logical_and(has_positive, has_negative));
        return eval(where(counts, maximum(n[0] + to_positive - to_negative, 0), 0));
    }
};

} // namespace tapegraph
