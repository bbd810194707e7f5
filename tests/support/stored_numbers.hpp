#pragma once

#include <tapegraph/eager/tensor.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

/// Operands of tests whose results are stored, generated alike in C++ and in Python:
///
///     def numbers(*shape, seed, scale=1.0):  # reshaped, in double
///         [scale * ((i * 37 + seed * 11) % 23 - 11) / 11 for i in range(prod(shape))]

namespace stored_numbers {

namespace tg = tapegraph;
using tg::tensor;

inline tensor<double> numbers(const tg::shape& dims, std::int64_t seed, double scale = 1) {
    auto t = tensor<double>::uninitialized(dims);
    for (std::int64_t i = 0; i < t.size(); ++i)
        t.mutable_data()[i] = scale * static_cast<double>((i * 37 + seed * 11) % 23 - 11) / 11;
    return t;
}

inline bool near(const tensor<double>& got, const std::vector<double>& want) {
    if (got.size() != static_cast<std::int64_t>(want.size())) return false;
    for (std::int64_t i = 0; i < got.size(); ++i) // stored to ten digits
        if (!(std::abs(got.data()[i] - want[static_cast<std::size_t>(i)]) <= 1e-9)) return false;
    return true;
}

} // namespace stored_numbers
