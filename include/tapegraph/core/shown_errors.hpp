#pragma once

#include <tapegraph/core/fixed_string.hpp>

/// What a mistake in a model or function looks like: a type that is never defined, whose arguments are the facts. Using it is the
/// error. The umbrella headers include this one first, because g++ prints the way from the user's file to it.

namespace tapegraph {

/// Shown when a model does not fit together: what, where, the operands, the scope.
template <fixed_string... Facts>
struct ill_formed_model;

/// Shown when a model, a loss or a function cannot be traced at all: what to do.
template <fixed_string... Advice>
struct cannot_be_compiled;

} // namespace tapegraph
