#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/train/training_state.hpp>

#include <cmath>
#include <string>

namespace tapegraph::detail {

/// The value of this epoch that a callback monitors; null if the epoch was not validated. Throws
/// argument_error, with the available values, where no epoch of this run will have it.
const double* monitored(const training_state& s, std::string_view who, const std::string& name);

inline void check_not_negative(const char* who, const char* name, double value) {
    if (!std::isfinite(value) || value < 0)
        throw argument_error(std::string(who) + ": " + name + " is " + number_text(value));
}
/// Throws argument_error for a number below `least`.
inline void check_at_least(const char* who, const char* name, std::int64_t value, std::int64_t least) {
    if (value < least)
        throw argument_error(std::string(who) + ": " + name + " is " + std::to_string(value) + ", not at least " +
                             std::to_string(least));
}

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION const double* monitored(const training_state& s, std::string_view who, const std::string& name) {
    const double* const found = s.logs.find(name);
    if (found == nullptr && !(s.validates && name.starts_with("val_"))) s.logs.refuse(who, name);
    return found;
}

#endif

} // namespace tapegraph::detail
