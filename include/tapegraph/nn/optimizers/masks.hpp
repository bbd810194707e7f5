#pragma once

#include <tapegraph/core/fixed_string.hpp>

/// Selections of variables by patterns of paths: a pattern is a path, or the path of an enclosing
/// scope, and "*" stands for any text, as in variable_list::set_trainable.

namespace tapegraph {

/// Every variable.
struct all_variables {
    static constexpr bool holds(const auto&) { return true; }
};
/// Variables whose path one of the patterns matches: `only<"encoder", "*/kernel">`.
template <fixed_string... Patterns>
struct only {
    static constexpr bool holds(const auto& slots) { return (slots.matches(Patterns.view()) || ...); }
};
/// All but these: `except<"*/bias", "*/gamma", "*/beta">`.
template <fixed_string... Patterns>
struct except {
    static constexpr bool holds(const auto& slots) { return !(slots.matches(Patterns.view()) || ...); }
};

} // namespace tapegraph
