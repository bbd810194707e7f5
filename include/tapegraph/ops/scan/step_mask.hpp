#pragma once

#include <tapegraph/expr/expr.hpp>

namespace tapegraph {

/// Steps that count: bool [batch, time]. At others the state stays what it was, and so does the output.
template <handle M>
struct step_mask {
    M steps;
};
template <class M>
step_mask(M) -> step_mask<M>;

} // namespace tapegraph
