#pragma once

#include <tapegraph/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// Element types as run-time values, as used by files, data sets and error messages.

namespace tapegraph {

enum class dtype : std::uint8_t { f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, boolean };

/// Bytes of one element.
constexpr std::size_t size_of(dtype type) {
    switch (type) {
    case dtype::f64:
    case dtype::i64:
    case dtype::u64: return 8;
    case dtype::f32:
    case dtype::i32:
    case dtype::u32: return 4;
    case dtype::f16:
    case dtype::bf16:
    case dtype::i16:
    case dtype::u16: return 2;
    case dtype::i8:
    case dtype::u8:
    case dtype::boolean: return 1;
    }
    return 0;
}

constexpr bool is_floating(dtype type) {
    return type == dtype::f32 || type == dtype::f64 || type == dtype::f16 || type == dtype::bf16;
}

/// The name used in messages: "f32", "i64", "bool", ...
constexpr const char* name_of(dtype type) {
    switch (type) {
    case dtype::f32: return "f32";
    case dtype::f64: return "f64";
    case dtype::f16: return "f16";
    case dtype::bf16: return "bf16";
    case dtype::i8: return "i8";
    case dtype::i16: return "i16";
    case dtype::i32: return "i32";
    case dtype::i64: return "i64";
    case dtype::u8: return "u8";
    case dtype::u16: return "u16";
    case dtype::u32: return "u32";
    case dtype::u64: return "u64";
    case dtype::boolean: return "bool";
    }
    return "?";
}

/// Maps a C++ type to its dtype. A half or bfloat16 type joins by specialising this where the type is defined.
template <class T>
struct dtype_traits;

template <>
struct dtype_traits<float> {
    static constexpr dtype value = dtype::f32;
};
template <>
struct dtype_traits<double> {
    static constexpr dtype value = dtype::f64;
};
template <>
struct dtype_traits<bool> {
    static constexpr dtype value = dtype::boolean;
};

// By size and sign rather than by name: std::int64_t is one of long and long long, and both must work.
template <class T>
    requires std::is_integral_v<T>
struct dtype_traits<T> {
    static constexpr dtype value = std::is_signed_v<T> ? (sizeof(T) == 1   ? dtype::i8
                                                          : sizeof(T) == 2 ? dtype::i16
                                                          : sizeof(T) == 4 ? dtype::i32
                                                                           : dtype::i64)
                                                       : (sizeof(T) == 1   ? dtype::u8
                                                          : sizeof(T) == 2 ? dtype::u16
                                                          : sizeof(T) == 4 ? dtype::u32
                                                                           : dtype::u64);
};

template <class T>
inline constexpr dtype dtype_of = dtype_traits<std::remove_cv_t<T>>::value;

} // namespace tapegraph
