#pragma once

#include <tapegraph/expr/operation.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tapegraph::ir {

class trace;

/// Operands of a node that is not elementwise; elementwise ones have at most four.
inline constexpr int most_operands = 8;

/// The descriptor of an operation in a trace. A node names its operation by the descriptor's
/// address.
struct operation {
    std::string_view name;
    operation_kind kind;
    int arity;
    int conditions;
    int words;
    dtype (*result_type)(dtype common);
    void (*infer)(const std::int64_t* words, inference& io);
    /// Appends the vector-Jacobian product for operand `which` and returns its node, or -1 when
    /// there is none. `inputs` are the operands, `output` the value, `adjoint` the incoming
    /// adjoint.
    int (*vjp)(trace& t, const std::int64_t* words, int which, int adjoint, const int* inputs, int output);
    /// Computes `count` elements of an elementwise operation from contiguous operands of element
    /// type `common`. Interpreters call it, for derivatives of derivatives in eager mode, and for
    /// the rerun that finds the node in which two runs differ. It is null for other operations, and
    /// returns false for element types that the operation is not defined for.
    bool (*evaluate)(dtype common, const void* const* in, void* out, std::int64_t count);
    linearity linear;
    zero_adjoint zeros; ///< this member and the next two apply to elementwise operations
    bool finite_slopes;
    double regular_at;
    /// The node exists only for its derivative: its value is operand 0, which replaces it in
    /// simplification.
    bool identity;
    bool whole;           ///< a reduction that is differentiated separately (`reduce_op::whole_vjp`)
    bool from_integers;   ///< whether `evaluate` also takes integers and bool
    std::uint32_t unread; ///< bit k: operand k exists only for derivatives, and no kernel reads it
    bool in_place;        ///< the kernel may write its result over operand 0, but over no other
    /// Each node has a kernel of its own, generated for its operands (`Op::kernel_of<Stage,
    /// node>()`)
    bool per_node_kernel;
    int ordinal_word;       ///< the attribute that numbers its draws in the trace; -1: it draws none
    cost_function flops;    ///< floating-point operations of a call; null for data movement
    std::string_view layer; ///< its name in summaries, among layers; "*" stands for 1d or 2d; empty: not shown
    std::string_view (*method)(
        const kernel_call&); ///< names the algorithm of a call, where there are several; null: there is only one
    cost_function bytes;     ///< bytes read and written by a call; null: operands and results, each once
    std::uint64_t spelling;  ///< hash of the type's spelling, where `same_operation` needs it

    /// Whether it is differentiated together with the elementwise nodes of its group.
    constexpr bool in_formula() const {
        return kind == operation_kind::map || (kind == operation_kind::reduce && !whole);
    }
};

/// Registers the kernels of one operation for graphs that are made at run time.
/// graph/kernel_registry.hpp defines it; sources without that header compile no kernels for it.
template <class Op>
struct kernel_registration;

namespace detail {
template <class>
inline constexpr char somewhere = 0;
// g++ with -fsanitize=undefined, -fsanitize=null or -fno-delete-null-pointer-checks cannot assume
// that two variables have different addresses, because both might be null.
inline constexpr bool addresses_are_known = __builtin_constant_p(&somewhere<int> == &somewhere<long>);

/// A hash of a type's spelling by the compiler; 0 where addresses suffice to compare types.
template <class Op>
constexpr std::uint64_t spelling_of() {
    std::uint64_t hash = 0;
    if constexpr (!addresses_are_known) {
        hash = 0xcbf29ce484222325; // FNV-1a
        for (const char c : std::string_view(__PRETTY_FUNCTION__))
            hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
    }
    return hash;
}
} // namespace detail

/// Whether two descriptors are of one operation. Types that are spelled differently differ;
/// addresses distinguish those spelled alike.
constexpr bool same_operation(const operation* a, const operation* b) {
    if constexpr (detail::addresses_are_known)
        return a == b;
    else
        return a->spelling == b->spelling && a == b;
}

/// Maps an operation's address back to its type: descriptor_of<Op> is unique, so one friend
/// function per operation, found through its address, carries the type. Users' operations join by
/// being used.
template <const operation* Record>
struct operation_key {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-template-friend"
#endif
#ifdef __CUDACC__
#pragma nv_diagnostic push
#pragma nv_diag_suppress 1301
#endif
    friend constexpr auto bound_operation(operation_key<Record>);
#ifdef __CUDACC__
#pragma nv_diagnostic pop
#endif
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
template <class Op>
constexpr zero_adjoint zeros() {
    if constexpr (Op::kind == operation_kind::map)
        return Op::zeros;
    else
        return zero_adjoint::may_be_lost;
}
template <class Op>
constexpr bool finite_slopes() {
    if constexpr (Op::kind == operation_kind::map)
        return Op::finite_slopes;
    else
        return false;
}
template <class Op>
constexpr double regular_at() {
    if constexpr (Op::kind == operation_kind::map)
        return Op::regular_at;
    else
        return 0;
}
template <class Op>
constexpr bool in_place() {
    if constexpr (requires { Op::in_place; })
        return Op::in_place;
    else
        return false;
}
template <class Op>
constexpr bool has_per_node_kernel() {
    return requires { Op::per_node_kernel; };
}
template <class Op>
constexpr int ordinal_word() {
    if constexpr (requires { &Op::attributes::ordinal; }) {
        typename Op::attributes marked{}, plain{};
        marked.ordinal = plain.ordinal + 1;
        const auto a = attributes_to_words<Op>(marked), b = attributes_to_words<Op>(plain);
        for (int i = 0; i < attribute_words<Op>; ++i)
            if (a.value[i] != b.value[i]) return i;
    }
    return -1;
}
template <class Op, class T, std::size_t... I>
void evaluate_as(const void* const* in, void* out, std::int64_t count, std::index_sequence<I...>) {
    using result =
        decltype(Op::value(std::declval<std::conditional_t<(int(I) < Op::condition_operands), bool, T>>()...));
    for (std::int64_t i = 0; i < count; ++i)
        static_cast<result*>(out)[i] =
            Op::value(static_cast<const std::conditional_t<(int(I) < Op::condition_operands), bool, T>*>(in[I])[i]...);
}
template <class Op>
bool evaluate(dtype common, const void* const* in, void* out, std::int64_t count) {
    constexpr auto operands = std::make_index_sequence<static_cast<std::size_t>(Op::arity)>{};
    switch (common) {
    case dtype::f64: return evaluate_as<Op, double>(in, out, count, operands), true;
    case dtype::f32: return evaluate_as<Op, float>(in, out, count, operands), true;
    default: break;
    }
    if constexpr (Op::from_integers) {
        switch (common) {
        case dtype::i32: return evaluate_as<Op, std::int32_t>(in, out, count, operands), true;
        case dtype::i64: return evaluate_as<Op, std::int64_t>(in, out, count, operands), true;
        case dtype::u8: return evaluate_as<Op, std::uint8_t>(in, out, count, operands), true;
        case dtype::boolean: return evaluate_as<Op, bool>(in, out, count, operands), true;
        default: break;
        }
    }
    return false;
}
template <class Op>
constexpr std::string_view layer_name() {
    if constexpr (requires { Op::layer_name; })
        return Op::layer_name;
    else
        return {};
}
template <class Op>
constexpr cost_function flops_of_call() {
    if constexpr (requires { Op::flops; })
        return Op::flops;
    else
        return nullptr;
}
template <class Op>
constexpr auto method_of_call() -> std::string_view (*)(const kernel_call&) {
    if constexpr (requires { Op::method; })
        return Op::method;
    else
        return nullptr;
}
template <class Op>
constexpr cost_function bytes_of_call() {
    if constexpr (requires { Op::bytes; })
        return Op::bytes;
    else
        return nullptr;
}
template <class Op>
constexpr auto evaluate_pointer() -> bool (*)(dtype, const void* const*, void*, std::int64_t) {
    if constexpr (Op::kind == operation_kind::map)
        return &evaluate<Op>;
    else
        return nullptr;
}
template <auto>
struct instantiated {};
/// Instantiates, where kernel_registration is known, the function that enlists the operation before
/// main(). Descriptors know nothing of it: they are the same in all sources.
template <class Op>
constexpr bool enlists_kernels() {
    if constexpr (requires { sizeof(kernel_registration<Op>); })
        if constexpr (kernel_registration<Op>::wanted())
            return sizeof(instantiated<&kernel_registration<Op>::enlist>) > 0;
    return true;
}
// Defined in ir/node.hpp, where handles are known.
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

/// Base of operations whose value is their operand 0: they carry a custom derivative, and
/// simplification removes them.
struct identity_node {
    static constexpr operation_kind kind = operation_kind::view;
    static constexpr void infer(const auto&, inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[0].dims;
    }
};

template <class Op>
inline constexpr operation descriptor_of{
    .name = Op::name,
    .kind = Op::kind,
    .arity = Op::arity,
    .conditions = detail::conditions<Op>(),
    .words = attribute_words<Op>,
    .result_type = &detail::result_type<Op>,
    .infer = &detail::infer<Op>,
    .vjp = detail::vjp_pointer<Op>(),
    .evaluate = detail::evaluate_pointer<Op>(),
    .linear = linearity_of<Op>,
    .zeros = detail::zeros<Op>(),
    .finite_slopes = detail::finite_slopes<Op>(),
    .regular_at = detail::regular_at<Op>(),
    .identity = std::is_base_of_v<identity_node, Op>,
    .whole = whole_reduction<Op>,
    .from_integers = detail::from_integers<Op>(),
    .unread = unread_operands_of<Op>,
    .in_place = detail::in_place<Op>(),
    .per_node_kernel = detail::has_per_node_kernel<Op>(),
    .ordinal_word = detail::ordinal_word<Op>(),
    .flops = detail::flops_of_call<Op>(),
    .layer = detail::layer_name<Op>(),
    .method = detail::method_of_call<Op>(),
    .bytes = detail::bytes_of_call<Op>(),
    .spelling = detail::spelling_of<Op>(),
};

template <class Op>
struct operation_binding {
    // first, because circular derivatives ask for it while the line below is being instantiated
    static constexpr bool bound = true;
    friend constexpr auto bound_operation(operation_key<&descriptor_of<Op>>) { return std::type_identity<Op>{}; }
    static_assert(detail::enlists_kernels<Op>());
};

/// The type of the operation at an address.
template <const operation* Record>
using operation_type = typename decltype(bound_operation(operation_key<Record>{}))::type;

/// The operations of leaves: nodes with given values.
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
struct extent_op : leaf_operation { // words: an extent, which is a number once extents are bound
    static constexpr std::string_view name = "extent";
};

} // namespace tapegraph::ir
