#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/gemm_transpose.hpp>

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

namespace detail {

template <std::size_t Bytes, class T>
TG_INLINE void copy_to_panels(T* to, std::int64_t panel_size, const T* from, std::int64_t panels, std::int64_t ahead) {
    constexpr auto width = static_cast<std::int64_t>(Bytes / sizeof(T));
    for (; panels > 0; --panels, to += panel_size, from += width) {
        __builtin_prefetch(from + ahead);
        if constexpr (Bytes > 64) __builtin_prefetch(from + ahead + 64 / sizeof(T));
        std::memcpy(to, from, Bytes);
    }
}

} // namespace detail

/// Rows [first, end) of k of all panels. Whole rows are read before the next: panel by panel, each panel would touch every page,
/// and rows a power of two apart would evict each other's lines.
template <class T>
void pack_rows(T* to, const panel_layout& layout, const T* from, std::int64_t from_row, std::int64_t k,
               std::int64_t first, std::int64_t end) {
    const std::int64_t most = 2 * layout.lanes, whole = layout.n / most, left = layout.n % most;
    const std::int64_t width = left > 0 ? layout.width(whole) : 0;
    for (std::int64_t i = first; i < end; ++i) {
        const T* const row = from + i * from_row;
        const std::int64_t ahead = 4 * from_row;
        if (most * static_cast<std::int64_t>(sizeof(T)) == 128)
            detail::copy_to_panels<128>(to + i * most, most * k, row, whole, ahead);
        else if (most * static_cast<std::int64_t>(sizeof(T)) == 64)
            detail::copy_to_panels<64>(to + i * most, most * k, row, whole, ahead);
        else
            detail::copy_to_panels<32>(to + i * most, most * k, row, whole, ahead);
        T* const last = to + layout.offset(whole, k) + i * width;
        for (std::int64_t n = 0; n < width; ++n) last[n] = n < left ? row[whole * most + n] : T(0);
    }
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
