#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/element_types.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

namespace tapegraph::runtime {

/// Position of the first element that is not finite, or -1.
std::int64_t first_not_finite(const buffer_view& v);

#if TG_DEFINES(runtime)

TG_DEFINITION std::int64_t first_not_finite(const buffer_view& v) {
    const std::int64_t count = v.elements();
    if (is_storage_type(v.type)) { // all exponent bits are set
        std::uint16_t exponent = 0;
        storage_types::visit(
            v.type, [&]<class T>(std::type_identity<T>) { exponent = std::numeric_limits<T>::infinity().bits; });
        for (std::int64_t i = 0; i < count; ++i)
            if ((v.as<const std::uint16_t>()[i] & exponent) == exponent) return i;
        return -1;
    }
    for (std::int64_t i = 0; i < count; ++i) {
        if (v.type == dtype::f32 ? !std::isfinite(v.as<const float>()[i])
                                 : v.type == dtype::f64 && !std::isfinite(v.as<const double>()[i]))
            return i;
    }
    return -1;
}

#endif

} // namespace tapegraph::runtime
