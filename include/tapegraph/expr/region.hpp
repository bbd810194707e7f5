#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/core/dtype.hpp>
#include <tapegraph/core/half.hpp>

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

template <dtype... Types>
struct slots {
    static constexpr int count = sizeof...(Types);
    static constexpr dtype types[sizeof...(Types) + 1]{Types...};
};

template <int... Registers>
struct results {
    static constexpr int count = sizeof...(Registers);
    static constexpr int registers[sizeof...(Registers) + 1]{Registers...};
};

template <class Slots, class Results, class... Instructions>
struct region {
    static constexpr int instructions = sizeof...(Instructions);
};

/// The C++ type of a dtype.
template <dtype Type>
struct element;
template <>
struct element<dtype::f32> {
    using type = float;
};
template <>
struct element<dtype::f64> {
    using type = double;
};
template <>
struct element<dtype::boolean> {
    using type = bool;
};
template <>
struct element<dtype::i32> {
    using type = std::int32_t;
};
template <>
struct element<dtype::i64> {
    using type = std::int64_t;
};
template <>
struct element<dtype::u8> {
    using type = std::uint8_t;
};
template <>
struct element<dtype::f16> {
    using type = half;
};
template <>
struct element<dtype::bf16> {
    using type = bfloat16;
};
template <dtype Type>
using element_t = typename element<Type>::type;

} // namespace tapegraph
