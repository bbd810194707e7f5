#pragma once

#include <tapegraph/core/half.hpp>

#include <type_traits>

/// From element types as values to C++ types: `element_t`, lists of types, and visitors.

namespace tapegraph {

/// The C++ type of a dtype.
template <dtype Type>
struct element;
#define TG_ROW(name, T, bytes, text)                                                                                   \
    template <>                                                                                                        \
    struct element<dtype::name> {                                                                                      \
        using type = T;                                                                                                \
        static_assert(sizeof(T) == bytes);                                                                             \
    };
TG_ELEMENT_TYPES(TG_ROW)
#undef TG_ROW
template <dtype Type>
using element_t = typename element<Type>::type;

/// Calls f(std::type_identity<T>{}) with the C++ type of an element type, and returns its result.
template <class F>
constexpr auto visit_type(dtype type, const F& f) {
    switch (type) {
#define TG_ROW(name, T, bytes, text)                                                                                   \
    case dtype::name: return f(std::type_identity<T>{});
        TG_ELEMENT_TYPES(TG_ROW)
#undef TG_ROW
    }
    return f(std::type_identity<float>{}); // a dtype has no other value
}

/// A list of element types.
template <class... T>
struct element_types {
    /// Calls f(std::type_identity<T>{}) with every type of the list.
    template <class F>
    static constexpr void each([[maybe_unused]] const F& f) {
        (f(std::type_identity<T>{}), ...);
    }
    /// Calls f(std::type_identity<T>{}) with the type of the list that `type` names. Returns whether
    /// the list has it.
    template <class F>
    static constexpr bool visit([[maybe_unused]] dtype type, [[maybe_unused]] const F& f) {
        return ((type == dtype_of<T> && (static_cast<void>(f(std::type_identity<T>{})), true)) || ...);
    }
};
using computed_types = element_types<float, double>;
using index_types = element_types<std::int32_t, std::int64_t>;
using storage_types = element_types<half, bfloat16>;
using floating_types = element_types<float, double, half, bfloat16>;
using number_types = element_types<float, double, half, bfloat16, std::int32_t, std::int64_t>;
/// What operations compute with; the other types are read, converted and written.
using common_types = element_types<float, double, half, bfloat16, std::int32_t, std::int64_t, std::uint8_t, bool>;

// ROW(dtype, C++ type, ...) of common_types; it receives what follows ROW, too.
#define TG_COMMON_TYPES(ROW, ...)                                                                                      \
    TG_FLOATING_TYPES(ROW, __VA_ARGS__)                                                                                \
    ROW(i32, std::int32_t, __VA_ARGS__)                                                                                \
    ROW(i64, std::int64_t, __VA_ARGS__)                                                                                \
    ROW(u8, std::uint8_t, __VA_ARGS__)                                                                                 \
    ROW(boolean, bool, __VA_ARGS__)

} // namespace tapegraph
