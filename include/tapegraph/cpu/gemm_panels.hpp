#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/vector.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

/// The layout in which tile kernels read a packed matrix, and how it is packed.

namespace tapegraph::cpu {

/// A matrix [k, n] cut into panels of 2 * lanes columns, the last of lanes columns where that
/// suffices; each panel is contiguous [k, width] and padded with zeros.
struct panel_layout {
    std::int64_t n;
    int lanes;

    std::int64_t count() const { return (n + 2 * lanes - 1) / (2 * lanes); }
    std::int64_t columns(std::int64_t panel) const {
        const std::int64_t left = n - panel * 2 * lanes;
        return left < 2 * lanes ? left : 2 * lanes;
    }
    int vectors(std::int64_t panel) const { return columns(panel) > lanes ? 2 : 1; }
    std::int64_t width(std::int64_t panel) const { return vectors(panel) * lanes; }
    std::int64_t offset(std::int64_t panel, std::int64_t k) const { return panel * 2 * lanes * k; }
    std::int64_t size(std::int64_t k) const { return padded(n, lanes) * k; }

    static std::int64_t padded(std::int64_t n, std::int64_t lanes) { return (n + lanes - 1) / lanes * lanes; }
};

namespace detail {

// to[n * to_row + k] = from[k * from_row + n] by blocks of one 16-byte vector squared.
template <class T>
void transpose(T* to, std::int64_t to_row, const T* from, std::int64_t from_row, std::int64_t rows,
               std::int64_t columns) {
    using v = vector<T, 16>;
    constexpr std::int64_t side = v::lanes;
    const std::int64_t whole_rows = rows / side * side;
    const std::int64_t whole_columns = columns / side * side;
    // Copies a cache line of each row at a time: rows a power of two apart would evict each other's
    // lines.
    constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t c0 = 0; c0 < whole_columns; c0 += line)
        for (std::int64_t r = 0; r < whole_rows; r += side)
            for (std::int64_t c = c0; c < whole_columns && c < c0 + line; c += side) {
                const T* p = from + r * from_row + c;
                T* q = to + c * to_row + r;
                typename v::type x, y, z, w;
                v::load(x, p);
                v::load(y, p + from_row);
                if constexpr (side == 4) {
                    v::load(z, p + 2 * from_row);
                    v::load(w, p + 3 * from_row);
                    const typename v::type low = __builtin_shufflevector(x, y, 0, 4, 1, 5);
                    const typename v::type low2 = __builtin_shufflevector(z, w, 0, 4, 1, 5);
                    const typename v::type high = __builtin_shufflevector(x, y, 2, 6, 3, 7);
                    const typename v::type high2 = __builtin_shufflevector(z, w, 2, 6, 3, 7);
                    v::store(q, __builtin_shufflevector(low, low2, 0, 1, 4, 5));
                    v::store(q + to_row, __builtin_shufflevector(low, low2, 2, 3, 6, 7));
                    v::store(q + 2 * to_row, __builtin_shufflevector(high, high2, 0, 1, 4, 5));
                    v::store(q + 3 * to_row, __builtin_shufflevector(high, high2, 2, 3, 6, 7));
                } else {
                    v::store(q, __builtin_shufflevector(x, y, 0, 2));
                    v::store(q + to_row, __builtin_shufflevector(x, y, 1, 3));
                }
            }
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c)
            to[c * to_row + r] = from[r * from_row + c];
}

// Rows of `Bytes` bytes, one after the other.
template <std::size_t Bytes, class T>
void copy_panel_rows(T* to, const T* from, std::int64_t from_row, std::int64_t k) {
    for (std::int64_t i = 0; i < k; ++i, to += Bytes / sizeof(T), from += from_row) {
        // The processor does not prefetch rows far apart by itself.
        __builtin_prefetch(from + 16 * from_row);
        if constexpr (Bytes > 64) __builtin_prefetch(from + 16 * from_row + 64 / sizeof(T));
        std::memcpy(to, from, Bytes);
    }
}

} // namespace detail

/// Rows [0, k) of one panel: to[k, n] = from[k * from_row + n], or from[n * from_row + k] when `transposed`.
template <class T>
void pack_panel(T* to, const panel_layout& layout, std::int64_t panel, const T* from, std::int64_t from_row,
                bool transposed, std::int64_t k) {
    const std::int64_t width = layout.width(panel);
    const std::int64_t columns = layout.columns(panel);
    const std::int64_t first = panel * 2 * layout.lanes;
    if (transposed) {
        detail::transpose(to, width, from + first * from_row, from_row, columns, k);
    } else {
        from += first;
        // A constant size keeps memcpy from being a call.
        const auto bytes = static_cast<std::size_t>(columns) * sizeof(T);
        if (bytes == 128)
            detail::copy_panel_rows<128>(to, from, from_row, k);
        else if (bytes == 64)
            detail::copy_panel_rows<64>(to, from, from_row, k);
        else
            for (std::int64_t i = 0; i < k; ++i) std::memcpy(to + i * width, from + i * from_row, bytes);
    }
    if (columns < width)
        for (std::int64_t i = 0; i < k; ++i)
            for (std::int64_t n = columns; n < width; ++n) to[i * width + n] = T(0);
}

/// Calls f(first, rows) for `n` rows cut into tiles of at most `most` rows, as equal as possible.
template <class F>
TG_INLINE void for_tiles(std::int64_t n, std::int64_t most, const F& f) {
    if (n <= 0) return;
    const std::int64_t tiles = (n + most - 1) / most, rows = n / tiles, longer = n % tiles;
    for (std::int64_t t = 0, first = 0; t < tiles; ++t) {
        const std::int64_t count = rows + (t < longer ? 1 : 0);
        f(first, count);
        first += count;
    }
}

} // namespace tapegraph::cpu
