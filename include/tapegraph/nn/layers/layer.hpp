#pragma once

#include <tapegraph/expr/apply.hpp>

#include <string_view>

namespace tapegraph {

/// A custom layer, with a row in the summary: f(scope, input) builds it, possibly from other
/// layers, whose rows are merged into this one. The type is a literal:
///
///     h = tg::layer(scope / "scale", "scaled", h, [](auto s, auto x) {
///         return x * s.variable_like(x, "factor", {x.shape()[1].value}, {.initializer = tg::init::ones{}});
///     });
template <class Scope, tensor_like X, class F>
constexpr auto layer(const Scope& scope, std::string_view type, const X& x, const F& f,
                     std::source_location where = std::source_location::current()) {
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const auto value = eval(f(scope, input), where);
    scope.enter(); // the following operations belong to this layer again
    return scope.leave(type, mark, value);
}

} // namespace tapegraph
