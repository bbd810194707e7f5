#pragma once

#include <support/finite_differences.hpp>

#include <tapegraph/ops/ops.hpp>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

/// The table of operations. A row says how an operation is called, what it should give, where its operands come from and
/// how exact it is; table_test.cpp makes of every row: values in double and float, first and second derivatives, at
/// awkward shapes and values.

namespace tapegraph::testing {

struct interval {
    double low = -2, high = 2;
};

inline constexpr double inf = INFINITY, nan = NAN;
inline constexpr interval positive{0.3, 3}, moderate{-2, 2};

inline real sigmoid_of(real x) { return 1 / (1 + std::exp(-x)); }

struct row {
    std::string name;
    tensor_function<double> run;
    tensor_function<float> run_float; ///< empty: double only
    std::function<array(const std::vector<array>&)> expected;
    std::vector<interval> domains;              ///< one per operand
    std::vector<std::vector<extents>> shapes{}; ///< each a list of one shape per operand
    /// Error allowed, in units of the type's epsilon times the larger of |expected| and `floor`.
    double ulps = 4;
    double floor = 0;
    int derivatives = 2;       ///< how many are checked
    bool forward_twice = true; ///< whether the tangent of a tangent exists
    int watched = -1;          ///< operands differentiated, from the first; -1: all
    bool elementwise = false;
    double away = 0;                            ///< operands keep this far from zero (kinks, poles)
    bool apart = false;                         ///< operands lie on grids that never meet (kinks where they are equal)
    bool whole = false;                         ///< operands are integers
    std::vector<std::vector<double>> awkward{}; ///< tuples of operands whose values are checked, not their derivatives
    std::string why{};                          ///< the reason for the tolerance, where it is not the default one

    std::size_t sources() const { return watched < 0 ? domains.size() : static_cast<std::size_t>(watched); }
};

namespace table_detail {
template <class T, class R>
tensor<T> as_element(const R& r) {
    if constexpr (std::is_same_v<R, tensor<T>>) {
        return r;
    } else { // answers and indices, as numbers
        auto result = tensor<T>::uninitialized(r.shape());
        for (std::int64_t i = 0; i < r.size(); ++i) result.mutable_data()[i] = static_cast<T>(r.data()[i]);
        return result;
    }
}
template <class T, class F, std::size_t... I>
tensor<T> call(std::index_sequence<I...>, const tensors<T>& x) {
    return as_element<T>(tapegraph::eval(F{}(x[I]...)));
}
} // namespace table_detail

/// A row of a generic function without captures. `Operands` is its arity.
template <std::size_t Operands, bool Float = true, class F>
row make_row(std::string name, F, std::vector<interval> domains,
             std::function<array(const std::vector<array>&)> expected) {
    row r;
    r.name = std::move(name);
    r.run = [](const tensors<double>& x) {
        return table_detail::call<double, F>(std::make_index_sequence<Operands>{}, x);
    };
    if constexpr (Float)
        r.run_float = [](const tensors<float>& x) {
            return table_detail::call<float, F>(std::make_index_sequence<Operands>{}, x);
        };
    r.expected = std::move(expected);
    r.domains = std::move(domains);
    r.domains.resize(Operands);
    return r;
}

/// Scalar, one, primes, none, more than a tile of 512 elements, more than the 32768 from which threads share the work.
inline std::vector<std::vector<extents>> unary_shapes() {
    return {{{}}, {{1}}, {{7}}, {{0}}, {{2, 0, 3}}, {{3, 5, 7}}, {{513}}, {{1, 2, 1, 2, 1, 2, 1, 3}}, {{32771}}};
}

/// Each operand full, broadcast along outer, inner and both kinds of axes, alone and together.
inline std::vector<std::vector<extents>> binary_shapes() {
    std::vector<std::vector<extents>> shapes{{{3, 1}, {1, 4}},
                                             {{2, 3, 5}, {3, 1}},
                                             {{3, 1}, {2, 3, 5}},
                                             {{2, 1, 5}, {1, 3, 1}},
                                             {{1}, {7}},
                                             {{1, 1, 3}, {2, 1, 1}},
                                             {{0}, {1}},
                                             {{2, 0}, {1, 1}},
                                             {{3, 1}, {1, 0}},
                                             {{513}, {513}},
                                             {{700, 3}, {3}},
                                             {{33, 1021}, {1021}},
                                             {{33, 1}, {33, 1021}},
                                             {{181, 1}, {1, 191}},
                                             {{}, {32771}},
                                             {{2, 1, 2, 1, 2, 1, 2, 1}, {1, 2, 1, 2, 1, 2, 1, 2}}};
    const extents whole{2, 3, 2, 5};
    for (std::ptrdiff_t a = 0; a <= 4; ++a) // every pair of ranks
        for (std::ptrdiff_t b = 0; b <= 4; ++b)
            shapes.push_back({extents(whole.end() - a, whole.end()), extents(whole.end() - b, whole.end())});
    return shapes;
}

template <bool Float = true, class F>
row unary(std::string name, F f, interval domain, real (*expected)(real)) {
    row r = make_row<1, Float>(std::move(name), f, {domain}, [expected](const std::vector<array>& x) {
        return map(x, [&](const real* v) { return expected(*v); });
    });
    r.elementwise = true;
    r.shapes = unary_shapes();
    return r;
}

template <bool Float = true, class F>
row binary(std::string name, F f, interval first, interval second, real (*expected)(real, real)) {
    row r = make_row<2, Float>(std::move(name), f, {first, second}, [expected](const std::vector<array>& x) {
        return map(x, [&](const real* v) { return expected(v[0], v[1]); });
    });
    r.elementwise = true;
    r.shapes = binary_shapes();
    return r;
}

/// A row of a recurrent operation: x, W, R, bias and more. Errors of some dozen sums pass through time; values are of order one.
inline row recurrent_row(row r, std::vector<std::vector<extents>> shapes) {
    r.shapes = std::move(shapes);
    for (std::size_t k : {0, 1, 2}) // x, W and R: functions this far from straight spoil finite differences otherwise
        r.domains[k] = k == 0 ? interval{-1, 1} : interval{-0.3, 0.3};
    r.forward_twice = false;
    r.ulps = 64;
    r.floor = 1;
    r.why = "sums of products, carried from step to step";
    return r;
}

/// The rows, by file.
std::vector<row> arithmetic_rows();
std::vector<row> function_rows();
std::vector<row> elementwise_rows();
std::vector<row> activation_rows();
std::vector<row> selection_rows();
std::vector<row> reduction_rows();
std::vector<row> contraction_rows();
std::vector<row> convolution_rows();
std::vector<row> einsum_rows();
std::vector<row> pooling_rows();
std::vector<row> transposed_rows();
std::vector<row> movement_rows();
std::vector<row> slicing_rows();
std::vector<row> padding_rows();
std::vector<row> indexing_rows();
std::vector<row> ordering_rows();
std::vector<row> recurrent_rows();
std::vector<row> gru_rows();

/// A row's operands at given shapes, drawn from its domains.
tensors<double> drawn_operands(const row& r, const std::vector<extents>& shapes, std::uint64_t seed);

} // namespace tapegraph::testing
