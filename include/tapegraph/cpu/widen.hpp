#pragma once

#include <tapegraph/core/element_types.hpp>
#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>

#include <cstdint>

/// Conversions between the 16-bit types and float.

namespace tapegraph::cpu {

namespace detail {

template <storage_type T>
struct widen_body {
    template <class Isa>
    TG_INLINE static void run(float* to, std::int64_t to_row, const T* from, std::int64_t from_row, std::int64_t rows,
                              std::int64_t columns) {
        for (std::int64_t r = 0; r < rows; ++r) {
            float* const y = to + r * to_row;
            const T* const x = from + r * from_row;
            TG_SIMD
            for (std::int64_t i = 0; i < columns; ++i) y[i] = float_of<T>(x[i].bits);
        }
    }
};

template <storage_type T>
struct narrow_body {
    template <class Isa>
    TG_INLINE static void run(T* to, const float* from, std::int64_t count) {
        TG_SIMD
        for (std::int64_t i = 0; i < count; ++i) to[i].bits = storage_bits<T>(from[i]);
    }
};

/// Rounds relu(from + bias) to T, for rows of `columns` elements. Each operation rounds as it would
/// alone.
template <storage_type T, bool Relu>
struct narrow_biased_body {
    template <class Isa>
    TG_INLINE static void run(T* to, std::int64_t to_row, const float* from, std::int64_t from_row, const float* bias,
                              std::int64_t rows, std::int64_t columns) {
        for (std::int64_t r = 0; r < rows; ++r, to += to_row, from += from_row) {
            TG_SIMD
            for (std::int64_t i = 0; i < columns; ++i) {
                const float sum = rounded_to<T>(from[i]) + bias[i];
                const float rounded = rounded_to<T>(sum);
                to[i].bits = storage_bits<T>(Relu ? (rounded <= 0 ? 0.0f : rounded) : sum);
            }
        }
    }
};

inline constexpr std::int64_t widen_piece = 16384; // elements per task; threads share the work from four tasks on

} // namespace detail

/// to[rows, columns] = from[rows, columns]; rows lie `to_row` and `from_row` elements apart.
template <storage_type T>
void widen_rows(float* to, std::int64_t to_row, const T* from, std::int64_t from_row, std::int64_t rows,
                std::int64_t columns) {
    dispatch<detail::widen_body<T>>(to, to_row, from, from_row, rows, columns);
}

/// to = from, `count` elements, exactly.
template <storage_type T>
void widen(float* to, const T* from, std::int64_t count) {
    const std::int64_t piece = detail::widen_piece;
    parallel_for((count + piece - 1) / piece, count >= 4 * piece, [&](std::int64_t task) {
        const std::int64_t begin = task * piece, size = count - begin < piece ? count - begin : piece;
        dispatch<detail::widen_body<T>>(to + begin, std::int64_t{0}, from + begin, std::int64_t{0}, std::int64_t{1}, size);
    });
}

/// to = from, `count` elements, each rounded to nearest even.
template <storage_type T>
void narrow(T* to, const float* from, std::int64_t count) {
    const std::int64_t piece = detail::widen_piece;
    parallel_for((count + piece - 1) / piece, count >= 4 * piece, [&](std::int64_t task) {
        const std::int64_t begin = task * piece, size = count - begin < piece ? count - begin : piece;
        dispatch<detail::narrow_body<T>>(to + begin, from + begin, size);
    });
}

/// Converts a tile of a type-erased element type; on the calling thread.
using widen_function = void (*)(const void* from, float* to, std::int64_t count);

template <storage_type T>
void widen_tile(const void* from, float* to, std::int64_t count) {
    dispatch<detail::widen_body<T>>(to, std::int64_t{0}, static_cast<const T*>(from), std::int64_t{0}, std::int64_t{1}, count);
}

// For code that every program contains, whatever its types: compiled for no instruction set in
// particular, so that it stays small.
inline void widen(dtype type, const void* from, float* to, std::int64_t count) {
    storage_types::visit(type, [&]<class T>(std::type_identity<T>) {
        detail::widen_body<T>::template run<baseline>(to, 0, static_cast<const T*>(from), 0, 1, count);
    });
}
inline widen_function widen_of(dtype type) {
    widen_function found = nullptr;
    storage_types::visit(type, [&]<class T>(std::type_identity<T>) {
        found = [](const void* from, float* to, std::int64_t count) { widen(dtype_of<T>, from, to, count); };
    });
    return found;
}
inline void narrow(dtype type, void* to, const float* from, std::int64_t count) {
    storage_types::visit(type, [&]<class T>(std::type_identity<T>) {
        detail::narrow_body<T>::template run<baseline>(static_cast<T*>(to), from, count);
    });
}

} // namespace tapegraph::cpu
