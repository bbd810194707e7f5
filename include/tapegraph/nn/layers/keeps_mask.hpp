#pragma once

#include <tapegraph/core/config.hpp>

#include <source_location>

/// What a layer says that treats each step by itself, and so keeps a mask. Programs without masks
/// compile the declaration alone.

namespace tapegraph {

/// A value with a mask, in nn/layers/masked.hpp.
template <class X, class M>
struct masked;

} // namespace tapegraph

/// Follows a layer `word(scope, x, options, where)`: its form for masked values, whose result has
/// their mask. Layers of other kinds have theirs in nn/layers/masking.hpp.
#define TG_KEEPS_MASK(word, options)                                                                                   \
    template <class Scope, class X, class M, class O = options>                                                        \
    constexpr auto word(const Scope& scope, const ::tapegraph::masked<X, M>& x, const O& o = {},                       \
                        std::source_location where = std::source_location::current()) {                                \
        return x.with(word(scope, x.value, o, where));                                                                 \
    }
