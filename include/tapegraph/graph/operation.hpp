#pragma once

#include <tapegraph/expr/operation.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tapegraph::ir {

class trace;

/// What a trace knows of an operation. A node names its operation by the address of one of these.
struct operation {
    std::string_view name;
    operation_kind kind;
    int arity;
    int conditions;
    int words;
    dtype (*result_type)(dtype common);
    void (*infer)(const std::int64_t* words, inference& io);
    /// Appends the vector-Jacobian product for operand `which` and returns its node, or -1 when there is none.
    /// `inputs` are the operands, `output` the value, `adjoint` what arrives from above.
    int (*vjp)(trace& t, const std::int64_t* words, int which, int adjoint, const int* inputs, int output);
    /// Elementwise operations: `count` elements of contiguous operands of element type `common`, one after another. What
    /// interpreters use (derivatives of derivatives in eager mode, the rerun that finds a differing node); null elsewhere.
    void (*evaluate)(dtype common, const void* const* in, void* out, std::int64_t count);
    bool from_integers; ///< whether `evaluate` takes integers and bool, too
};

/// From an operation's address back to its type: record_of<Op> is unique, so one friend function per operation, found
/// through its address, carries the type. Users' operations join by being used.
template <const operation* Record>
struct operation_key {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-template-friend"
#endif
    friend constexpr auto operation_behind(operation_key<Record>);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
};

namespace detail {
template <class Op>
constexpr dtype result_type(dtype common) {
    if constexpr (Op::kind == operation_kind::map)
        return Op::result_type(common);
    else
        return common;
}
template <class Op>
constexpr void infer(const std::int64_t* words, inference& io) {
    if constexpr (requires { Op::infer(typename Op::attributes{}, io); })
        Op::infer(attributes_from_words<Op>(words), io);
}
template <class Op>
constexpr int conditions() {
    if constexpr (Op::kind == operation_kind::map)
        return Op::condition_operands;
    else
        return 0;
}
template <class Op>
constexpr bool from_integers() {
    if constexpr (Op::kind == operation_kind::map)
        return Op::from_integers;
    else
        return false;
}
template <class Op, class T, std::size_t... I>
void evaluate_as(const void* const* in, void* out, std::int64_t count, std::index_sequence<I...>) {
    using result = decltype(Op::value(std::declval<std::conditional_t<(int(I) < Op::condition_operands), bool, T>>()...));
    for (std::int64_t i = 0; i < count; ++i)
        static_cast<result*>(out)[i] = Op::value(
            static_cast<const std::conditional_t<(int(I) < Op::condition_operands), bool, T>*>(in[I])[i]...);
}
template <class Op>
void evaluate(dtype common, const void* const* in, void* out, std::int64_t count) {
    constexpr auto operands = std::make_index_sequence<static_cast<std::size_t>(Op::arity)>{};
    if (common == dtype::f64)
        evaluate_as<Op, double>(in, out, count, operands);
    else if (common == dtype::f32)
        evaluate_as<Op, float>(in, out, count, operands);
    else if constexpr (Op::from_integers) {
        switch (common) {
        case dtype::boolean: return evaluate_as<Op, bool>(in, out, count, operands);
        case dtype::u8: return evaluate_as<Op, std::uint8_t>(in, out, count, operands);
        case dtype::i32: return evaluate_as<Op, std::int32_t>(in, out, count, operands);
        case dtype::i64: return evaluate_as<Op, std::int64_t>(in, out, count, operands);
        default: break;
        }
    }
}
template <class Op>
constexpr auto evaluate_pointer() -> void (*)(dtype, const void* const*, void*, std::int64_t) {
    if constexpr (Op::kind == operation_kind::map)
        return &evaluate<Op>;
    else
        return nullptr;
}
// Defined in graph/node.hpp, where handles are known.
template <class Op>
constexpr int trace_vjp(trace& t, const std::int64_t* words, int which, int adjoint, const int* inputs, int output);
template <class Op>
constexpr auto vjp_pointer() -> int (*)(trace&, const std::int64_t*, int, int, const int*, int) {
    if constexpr (Op::arity == 0)
        return nullptr;
    else
        return &trace_vjp<Op>;
}
} // namespace detail

template <class Op>
inline constexpr operation record_of{Op::name,
                                     Op::kind,
                                     Op::arity,
                                     detail::conditions<Op>(),
                                     attribute_words<Op>,
                                     &detail::result_type<Op>,
                                     &detail::infer<Op>,
                                     detail::vjp_pointer<Op>(),
                                     detail::evaluate_pointer<Op>(),
                                     detail::from_integers<Op>()};

template <class Op>
struct operation_binding {
    static constexpr bool bound = true; // first: derivatives in a circle ask for it while the line below is looked at
    friend constexpr auto operation_behind(operation_key<&record_of<Op>>) { return std::type_identity<Op>{}; }
};

/// The type of the operation at an address.
template <const operation* Record>
using operation_type = typename decltype(operation_behind(operation_key<Record>{}))::type;

/// What traces hold for things that are not computed.
struct leaf_operation {
    static constexpr operation_kind kind = operation_kind::leaf;
    static constexpr int arity = 0;
    using attributes = no_attributes;
};
struct input_op : leaf_operation { // words: index in trace::inputs
    static constexpr std::string_view name = "input";
};
struct variable_op : leaf_operation { // words: index in trace::variables
    static constexpr std::string_view name = "variable";
};
struct constant_op : leaf_operation { // words: the bits of a double
    static constexpr std::string_view name = "constant";
};
struct extent_op : leaf_operation { // words: an extent, a number once extents are bound
    static constexpr std::string_view name = "extent";
};

} // namespace tapegraph::ir
