#pragma once

#include <tapegraph/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace tapegraph::io::detail {

/// Copies an array of any strides, counted in elements of `width` bytes, to row-major order, for
/// column-major files and views. The caller has checked that every element is inside.
inline void copy_strided(std::byte* to, const std::byte* from, std::span<const std::int64_t> shape,
                         std::span<const std::int64_t> strides, std::size_t width) {
    std::int64_t rows = 1;
    for (const auto extent : shape) rows *= extent;
    if (rows == 0) return;
    const std::size_t rank = shape.size();
    const std::int64_t inner = rank == 0 ? 1 : shape[rank - 1], step = rank == 0 ? 1 : strides[rank - 1];
    rows /= inner;
    std::vector<std::int64_t> at(rank, 0);
    for (std::int64_t row = 0; row < rows; ++row) {
        std::int64_t offset = 0;
        for (std::size_t axis = 0; axis + 1 < rank; ++axis) offset += at[axis] * strides[axis];
        const std::byte* element = from + offset * static_cast<std::int64_t>(width);
        if (step == 1) {
            std::memcpy(to, element, static_cast<std::size_t>(inner) * width);
            to += static_cast<std::size_t>(inner) * width;
        } else {
            for (std::int64_t i = 0; i < inner; ++i, to += width, element += step * static_cast<std::int64_t>(width))
                std::memcpy(to, element, width);
        }
        for (std::size_t axis = rank; axis-- > 1;) {
            if (++at[axis - 1] < shape[axis - 1]) break;
            at[axis - 1] = 0;
        }
    }
}

/// Row-major strides, or column-major (Fortran) ones if `first_fastest`.
inline std::vector<std::int64_t> strides_of(std::span<const std::int64_t> shape, bool first_fastest = false) {
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t step = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const std::size_t axis = first_fastest ? i : shape.size() - 1 - i;
        strides[axis] = step;
        step *= shape[axis];
    }
    return strides;
}

} // namespace tapegraph::io::detail
