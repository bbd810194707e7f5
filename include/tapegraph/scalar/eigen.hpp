#pragma once

#include <tapegraph/scalar/limits.hpp>
#include <tapegraph/scalar/number.hpp>
#include <tapegraph/scalar/rounding.hpp>
#include <tapegraph/scalar/structures.hpp>

#include <Eigen/Core>

#include <type_traits>
#include <vector>

/// Eigen's matrices of numbers that record, and of jets: `Eigen::Matrix<tg::real<>, 3, 3>`. Needs Eigen 3.3 or newer;
/// nothing else of the library includes it. Column vectors are arguments and results of gradient, jacobian, minimize and so
/// on, as std::vector is.

namespace tapegraph::scalars {

/// The traits that Eigen requires of a number; Number is real<T> or a jet of T.
template <class Number, class T>
struct eigen_traits : Eigen::NumTraits<T> {
    using Real = Number;
    using NonInteger = Number;
    using Nested = Number;
    using Literal = Number;
    // Costs are in multiplications of plain numbers.
    enum {
        IsComplex = 0,
        IsInteger = 0,
        IsSigned = 1,
        RequireInitialization = 1,
        ReadCost = 2,
        AddCost = 4,
        MulCost = 6
    };
    static Number epsilon() { return Number(Eigen::NumTraits<T>::epsilon()); }
    static Number dummy_precision() { return Number(Eigen::NumTraits<T>::dummy_precision()); }
    static Number highest() { return Number(Eigen::NumTraits<T>::highest()); }
    static Number lowest() { return Number(Eigen::NumTraits<T>::lowest()); }
    static Number infinity() { return Number(Eigen::NumTraits<T>::infinity()); }
    static Number quiet_NaN() { return Number(Eigen::NumTraits<T>::quiet_NaN()); }
};

/// Eigen's column vectors are sequences; of rows that are no numbers (a Jacobian's) a std::vector is made.
template <class T, int Rows, int Options, int MaxRows>
struct sequence_of<Eigen::Matrix<T, Rows, 1, Options, MaxRows, 1>> {
    using element = T;
    template <class V>
    using with = std::conditional_t<arithmetic<V> || is_jet<V> || recording<V>,
                                    Eigen::Matrix<V, Rows, 1, Options, MaxRows, 1>, std::vector<V>>;
};

} // namespace tapegraph::scalars

namespace Eigen {

template <class T>
struct NumTraits<tapegraph::real<T>> : tapegraph::scalars::eigen_traits<tapegraph::real<T>, T> {};
template <class T, int N>
struct NumTraits<tapegraph::jet<T, N>> : tapegraph::scalars::eigen_traits<tapegraph::jet<T, N>, T> {};

// A matrix of numbers that record with plain numbers, and with matrices of these.
template <class T, class BinaryOp>
struct ScalarBinaryOpTraits<tapegraph::real<T>, T, BinaryOp> {
    using ReturnType = tapegraph::real<T>;
};
template <class T, class BinaryOp>
struct ScalarBinaryOpTraits<T, tapegraph::real<T>, BinaryOp> {
    using ReturnType = tapegraph::real<T>;
};
template <class T, int N, class BinaryOp>
struct ScalarBinaryOpTraits<tapegraph::jet<T, N>, T, BinaryOp> {
    using ReturnType = tapegraph::jet<T, N>;
};
template <class T, int N, class BinaryOp>
struct ScalarBinaryOpTraits<T, tapegraph::jet<T, N>, BinaryOp> {
    using ReturnType = tapegraph::jet<T, N>;
};

} // namespace Eigen
