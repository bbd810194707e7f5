#pragma once

#include <tapegraph/core/call.hpp>

#include <cmath>

namespace tapegraph::runtime {

/// Position of the first element that is not finite, or -1.
inline std::int64_t first_not_finite(const buffer_view& v) {
    const std::int64_t count = v.elements();
    for (std::int64_t i = 0; i < count; ++i) {
        if (v.type == dtype::f32 ? !std::isfinite(v.as<const float>()[i])
                                 : v.type == dtype::f64 && !std::isfinite(v.as<const double>()[i]))
            return i;
    }
    return -1;
}

} // namespace tapegraph::runtime
