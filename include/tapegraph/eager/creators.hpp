#pragma once

#include <tapegraph/core/number_text.hpp>
#include <tapegraph/eager/random.hpp>

/// Creates tensors from extents: zeros<float>(2, 3) in addition to zeros<float>({2, 3}); eye,
/// linspace.

namespace tapegraph {

template <class T, std::integral... Extents>
    requires(sizeof...(Extents) > 0)
tensor<T> zeros(Extents... extents) { return zeros<T>(shape{static_cast<std::int64_t>(extents)...}); }
template <class T, std::integral... Extents>
    requires(sizeof...(Extents) > 0)
tensor<T> ones(Extents... extents) { return ones<T>(shape{static_cast<std::int64_t>(extents)...}); }
/// A vector; braces give other shapes, full<T>({2, 3}, value).
template <class T, std::integral Extent>
tensor<T> full(Extent extent, T value) {
    return full<T>(shape{static_cast<std::int64_t>(extent)}, value);
}

/// Ones on diagonal `offset` (above the main one when positive), zeros elsewhere: [rows, columns].
template <class T, std::integral Rows, std::integral Columns>
tensor<T> eye(Rows rows, Columns columns, std::int64_t offset = 0) {
    tensor<T> result = zeros<T>(rows, columns);
    T* const to = static_cast<T*>(result.overwrite());
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(rows); ++i)
        if (i + offset >= 0 && i + offset < static_cast<std::int64_t>(columns))
            to[i * static_cast<std::int64_t>(columns) + i + offset] = T(1);
    return result;
}
template <class T, std::integral Rows>
tensor<T> eye(Rows rows) {
    return eye<T>(rows, rows);
}

/// `count` evenly spaced numbers from begin to end, both included; just begin for a count of one.
template <class T>
tensor<T> linspace(double begin, double end, std::int64_t count) {
    return linspace<T>(tensor<T>(T(0)), begin, end, count);
}

namespace random {

template <class T, std::integral... Extents>
    requires(sizeof...(Extents) > 0)
tensor<T> uniform(Extents... extents) { return uniform<T>(shape{static_cast<std::int64_t>(extents)...}); }
template <class T, std::integral... Extents>
    requires(sizeof...(Extents) > 0)
tensor<T> normal(Extents... extents) { return normal<T>(shape{static_cast<std::int64_t>(extents)...}); }

} // namespace random

/// When two numbers count as close: |a - b| <= atol + rtol |b|, as in NumPy's allclose.
struct closeness {
    double rtol = 1e-5, atol = 1e-8;
    bool equal_nan = false; ///< whether NaN counts as close to NaN
};

/// Whether |a - b| <= atol + rtol |b| everywhere, like NumPy's allclose. Shapes broadcast;
/// infinities are close to themselves, NaN to nothing unless `equal_nan`. Formulas are evaluated.
/// Throws argument_error for tolerances that are negative or NaN.
template <tensor_like A, tensor_like B>
    requires(std::is_same_v<mode_of_t<A, B>, eager>)
bool allclose(const A& a, const B& b, const closeness& options = {}) {
    if (!(options.rtol >= 0 && options.atol >= 0))
        throw argument_error("allclose: rtol " + number_text(options.rtol) + " and atol " + number_text(options.atol) +
                             " must not be negative");
    bool valid = true;
    const shape dims = broadcast(shape_of(a), shape_of(b), valid);
    if (!valid)
        throw shape_error("allclose: shapes do not broadcast: " + to_string(shape_of(a)) + ", " +
                          to_string(shape_of(b)));
    const auto x = broadcast_to(eval(a), dims), y = broadcast_to(eval(b), dims);
    const auto* const p = x.data();
    const auto* const q = y.data();
    for (std::int64_t i = 0; i < dims.elements(); ++i) {
        const auto u = static_cast<double>(p[i]), v = static_cast<double>(q[i]);
        const bool both_nan = u != u && v != v;
        const double distance = u < v ? v - u : u - v, size = v < 0 ? -v : v;
        const bool finite = distance - distance == 0 && size - size == 0;
        if (!(u == v || (finite && distance <= options.atol + options.rtol * size) || (both_nan && options.equal_nan)))
            return false;
    }
    return true;
}
/// Whether two tensors have one shape and equal elements; NaN equals nothing.
template <class T>
bool array_equal(const tensor<T>& a, const tensor<T>& b) {
    return a.shape() == b.shape() && std::equal(a.data(), a.data() + a.size(), b.data());
}

} // namespace tapegraph
