#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/expr/apply.hpp>

/// Reports operations that are not possible with some rows of a variable.

namespace tapegraph::detail {

/// Whether slots refer to the rows that a step has gathered (scope.gather_rows) rather than a whole
/// variable.
template <class Slots>
inline constexpr bool by_rows = requires {
    Slots::sparse;
};

/// Throws argument_error, or in a trace fails, where `slots` are of rows.
template <class Slots>
constexpr void refuse_rows(const Slots&, [[maybe_unused]] const auto& w, [[maybe_unused]] const char* why) {
    if constexpr (by_rows<Slots>) {
        if constexpr (requires { w.owner(); })
            w.owner().fail(why);
        else
            throw argument_error(why);
    }
}

} // namespace tapegraph::detail
