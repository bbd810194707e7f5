#pragma once

#include <tapegraph/core/shown_errors.hpp>

#include <concepts>
#include <string_view>

/// What layers take first.

namespace tapegraph {

/// A scope of any mode, or one that wraps another. It distinguishes a layer from the operation of the
/// same name.
template <class Scope>
concept layer_scope = requires(const Scope& scope) {
    scope.enter();
};

namespace detail {
/// The result of a layer whose first argument is no scope: the input, or a name alone.
using scope_missing = cannot_be_compiled<"a layer takes a scope first: ", "layer(scope / \"name\", x, ...)">;
/// A name passed in place of `scope / name`. Layers that share their name with an operation, which such
/// a call would resemble, have an overload for it.
template <class Name>
concept scope_name = std::convertible_to<const Name&, std::string_view>;
} // namespace detail

} // namespace tapegraph
