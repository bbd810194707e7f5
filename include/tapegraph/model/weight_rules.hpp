#pragma once

#include <tapegraph/core/shape.hpp>

#include <cstdint>

/// Restrictions of weights in training, as stored with variables: a penalty that is added to the
/// loss, and a set onto which new values are projected. nn/regularizer.hpp and nn/constraint.hpp
/// create and compute them; programs that use none do not compile them.

namespace tapegraph {

class any_tensor;

/// What a regularizer adds to the loss.
enum class regularizer_kind : int { none, l1_l2, orthogonal_rows, orthogonal_columns };
/// What a constraint does with weights after an update.
enum class constraint_kind : int { none, max_norm, non_negative, unit_norm, min_max_norm };

namespace detail {
constexpr bool finite_number(double x) { return x - x == 0; }
constexpr bool neither_negative_nor_infinite(double x) { return x >= 0 && finite_number(x); }
} // namespace detail

/// A penalty on a weight. Create it by the types in `regularizers`.
struct regularizer {
    regularizer_kind kind = regularizer_kind::none;
    double a = 0, b = 0;

    constexpr explicit operator bool() const { return kind != regularizer_kind::none; }
    /// Why it does not apply to a variable of this shape; null if it does.
    constexpr const char* refused(const shape& dims) const {
        if (!detail::neither_negative_nor_infinite(a) || !detail::neither_negative_nor_infinite(b))
            return "regularizer: factors must be finite and not negative";
        const bool orthogonal =
            kind == regularizer_kind::orthogonal_rows || kind == regularizer_kind::orthogonal_columns;
        return orthogonal && dims.rank() != 2 ? "orthogonal: the variable must be a matrix" : nullptr;
    }
};

/// A constraint onto which new values of a weight are projected. Create it by the types in
/// `constraints`.
struct constraint {
    constraint_kind kind = constraint_kind::none;
    double a = 0, b = 0, c = 0;
    std::int64_t along = 0; ///< bit k + 8 for axis k, negative ones counted from the end; bit 16 for an invalid one
    /// Projects an eager weight. It is stored with the constraint, because a program's files share
    /// the functions of an optimizer, and some files may not include nn/constraint.hpp.
    any_tensor (*project)(const constraint&, const any_tensor&) = nullptr;

    static constexpr std::int64_t outside = std::int64_t{1} << 62;

    constexpr explicit operator bool() const { return kind != constraint_kind::none; }
    /// Bit k for axis k of a tensor of this rank; `outside` for an axis outside the rank.
    constexpr std::int64_t mask(int rank) const {
        std::int64_t bits = along >> 16 != 0 ? outside : 0;
        for (int i = -8; i < 8; ++i) {
            const int axis = normalized_axis(i, rank);
            if ((along >> (i + 8) & 1) != 0) bits |= axis < 0 ? outside : std::int64_t{1} << axis;
        }
        return bits;
    }
    /// Why the constraint cannot hold for weights of the shape, or nullptr.
    constexpr const char* refused(const shape& dims) const {
        if (!detail::neither_negative_nor_infinite(a) || !detail::neither_negative_nor_infinite(b) ||
            !(c >= 0 && c <= 1))
            return "constraint: norms must be finite and not negative, the rate in [0, 1]";
        if (kind == constraint_kind::min_max_norm && a > b) return "min_max_norm: min_value must not exceed max_value";
        return (mask(dims.rank()) & outside) != 0 ? "constraint: axis outside the rank" : nullptr;
    }
};

namespace detail {
/// nn/regularizer.hpp and nn/constraint.hpp complete these; T is a model's type.
template <class T>
struct penalties;
template <class T>
struct projections;
} // namespace detail

} // namespace tapegraph
