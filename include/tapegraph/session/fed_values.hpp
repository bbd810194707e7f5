#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/half.hpp>
#include <tapegraph/eager/any_tensor.hpp>

/// Values for placeholders: their own element type, and types that NumPy converts implicitly.

namespace tapegraph::detail {

/// Whether values of a type may be fed to a placeholder of another: all to float and double, none
/// to types that would lose a fraction.
constexpr bool is_fed_as(dtype from, dtype to) { return from != to && (to == dtype::f32 || to == dtype::f64); }

template <class From, class To>
void convert_elements(const void* from, void* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
        static_cast<To*>(to)[i] = static_cast<To>(static_cast<const From*>(from)[i]);
}

/// Converts the value; requires is_fed_as.
any_tensor fed_as(const any_tensor& value, dtype to);

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION any_tensor fed_as(const any_tensor& value, dtype to) {
    any_tensor result(to, value.shape());
    common_types::visit(value.type(), [&]<class T>(std::type_identity<T>) {
        if (to == dtype::f32)
            convert_elements<T, float>(value.read(), result.write(), value.size());
        else
            convert_elements<T, double>(value.read(), result.write(), value.size());
    });
    return result;
}

#endif

} // namespace tapegraph::detail
