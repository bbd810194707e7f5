#pragma once

#include <tapegraph/core/shape.hpp>

#include <cstdint>
#include <initializer_list>

namespace tapegraph {

/// The axes to reduce; all of them by default. Negative axes count from the end.
struct axes {
    std::int8_t index[max_rank]{};
    std::int8_t count = 0;
    bool all = true;

    constexpr axes() = default;
    // NOLINTNEXTLINE: implicit, for sum(x, 0) and sum(x, {0, 1})
    constexpr axes(int axis) : count(1), all(false) { index[0] = static_cast<std::int8_t>(axis); }
    constexpr axes(std::initializer_list<int> several) : all(false) {
        for (int axis : several)
            if (count < max_rank) index[count++] = static_cast<std::int8_t>(axis);
    }
    /// Bit i for axis i; bit 62 when an axis lies outside a tensor of this rank.
    constexpr std::int64_t bits(int rank) const {
        if (all) return (std::int64_t{1} << rank) - 1;
        std::int64_t mask = 0;
        for (int i = 0; i < count; ++i) {
            const int axis = normalized_axis(index[i], rank);
            mask |= std::int64_t{1} << (axis < 0 ? 62 : axis);
        }
        return mask;
    }
};

} // namespace tapegraph
