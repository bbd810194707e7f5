#pragma once

#include <tapegraph/core/shown_errors.hpp>

#include <concepts>
#include <string_view>

/// What layers take first.

namespace tapegraph {

/// A scope of any mode, or one around another. It tells a layer from the operation of that name.
template <class Scope>
concept layer_scope = requires(const Scope& scope) {
    scope.enter();
};

namespace detail {
/// The result of a layer whose first argument is no scope: the input, or a name alone.
using scope_missing = cannot_be_compiled<"a layer takes a scope first: ", "layer(scope / \"name\", x, ...)">;
/// A name where `scope / name` belongs. Layers that are named as an operation, which an input and wrong options look like,
/// have an overload for it.
template <class Name>
concept scope_name = std::convertible_to<const Name&, std::string_view>;
} // namespace detail

} // namespace tapegraph
