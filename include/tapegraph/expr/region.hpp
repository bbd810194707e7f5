#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/core/element_types.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

/// A region: elementwise nodes fused into one kernel, encoded as a canonical type. It is a straight
/// line of instructions over argument slots, so a shared subexpression is computed once, and equal
/// regions are one type and hence one kernel.

namespace tapegraph {

/// Registers 0.. are the slots, then one register per instruction. Unused arguments are -1.
template <class Op, dtype Result, int A = -1, int B = -1, int C = -1, int D = -1>
struct instruction {
    using operation = Op;
    static constexpr dtype result = Result;
};

/// The element types of a region's operands.
template <dtype... Types>
struct slots {
    static constexpr int count = sizeof...(Types);
    static constexpr dtype types[sizeof...(Types) + 1]{Types...};
};

/// Which of a region's values are its results.
template <int... Registers>
struct results {
    static constexpr int count = sizeof...(Registers);
    static constexpr int registers[sizeof...(Registers) + 1]{Registers...};
};

/// Elementwise operations that run as one loop: operands, results and instructions.
template <class Slots, class Results, class... Instructions>
struct region {
    static constexpr int instructions = sizeof...(Instructions);
};

} // namespace tapegraph
