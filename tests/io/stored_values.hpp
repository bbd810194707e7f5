#pragma once

#include <tapegraph/tensor.hpp>

#include <cmath>
#include <vector>

/// Inputs that other libraries were given, and what they gave.

namespace io_test {

namespace tg = tapegraph;

inline tg::tensor<float> spread(tg::shape dims) { // linspace(-1, 1, n)
    std::vector<float> values(static_cast<std::size_t>(dims.elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(-1 + 2 * static_cast<double>(i) / static_cast<double>(values.size() - 1));
    return tg::tensor<float>(values, dims);
}

inline bool close(const tg::tensor<float>& a, const std::vector<float>& b) {
    const auto values = a.to_vector();
    if (values.size() != b.size()) return false;
    for (std::size_t i = 0; i < b.size(); ++i)
        if (!(std::fabs(values[i] - b[i]) <= 1e-5f)) return false; // a few operations of float
    return true;
}

} // namespace io_test
