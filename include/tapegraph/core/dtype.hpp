#pragma once

#include <tapegraph/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// Element types as run-time values, as used by files, data sets and error messages.

namespace tapegraph {

struct half; // core/half.hpp
struct bfloat16;

// The table of element types. ROW(dtype, C++ type, bytes, name in messages); their order is that of
// their numbers. A new type is a row here, and a place in the lists of core/element_types.hpp.
#define TG_ELEMENT_TYPES(ROW)                                                                                          \
    ROW(f32, float, 4, "f32")                                                                                          \
    ROW(f64, double, 8, "f64")                                                                                         \
    ROW(f16, tapegraph::half, 2, "f16")                                                                                \
    ROW(bf16, tapegraph::bfloat16, 2, "bf16")                                                                          \
    ROW(i8, std::int8_t, 1, "i8")                                                                                      \
    ROW(i16, std::int16_t, 2, "i16")                                                                                   \
    ROW(i32, std::int32_t, 4, "i32")                                                                                   \
    ROW(i64, std::int64_t, 8, "i64")                                                                                   \
    ROW(u8, std::uint8_t, 1, "u8")                                                                                     \
    ROW(u16, std::uint16_t, 2, "u16")                                                                                  \
    ROW(u32, std::uint32_t, 4, "u32")                                                                                  \
    ROW(u64, std::uint64_t, 8, "u64")                                                                                  \
    ROW(boolean, bool, 1, "bool")

// The floating ones. ROW(dtype, C++ type, ...) receives what follows ROW, too.
#define TG_FLOATING_TYPES(ROW, ...)                                                                                    \
    ROW(f32, float, __VA_ARGS__)                                                                                       \
    ROW(f64, double, __VA_ARGS__)                                                                                      \
    ROW(f16, tapegraph::half, __VA_ARGS__)                                                                             \
    ROW(bf16, tapegraph::bfloat16, __VA_ARGS__)

/// The type of a tensor's elements when the program runs, a row for each type of TG_ELEMENT_TYPES.
enum class dtype : std::uint8_t {
#define TG_ROW(name, type, bytes, text) name,
    TG_ELEMENT_TYPES(TG_ROW)
#undef TG_ROW
};

/// Bytes of one element.
constexpr std::size_t size_of(dtype type) {
    switch (type) {
#define TG_ROW(name, type, bytes, text)                                                                                \
    case dtype::name: return bytes;
        TG_ELEMENT_TYPES(TG_ROW)
#undef TG_ROW
    }
    return 0;
}

/// Whether elements of the type have derivatives: float, double, half and bfloat16.
constexpr bool is_floating(dtype type) {
    return type == dtype::f32 || type == dtype::f64 || type == dtype::f16 || type == dtype::bf16;
}

/// The name used in messages: "f32", "i64", "bool", ...
constexpr const char* name_of(dtype type) {
    switch (type) {
#define TG_ROW(name, type, bytes, text)                                                                                \
    case dtype::name: return text;
        TG_ELEMENT_TYPES(TG_ROW)
#undef TG_ROW
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
