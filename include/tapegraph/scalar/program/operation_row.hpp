#pragma once

#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/ops/elementwise/comparison.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>
#include <tapegraph/scalar/functions.hpp>
#include <tapegraph/scalar/standard.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

/// What a recorded program knows of an operation: its value for one input and for a block of them, and its derivative as
/// operations on symbols. All of it comes from the operation's one definition.

namespace tapegraph {

template <class T>
struct symbol;
template <class T>
struct symbol_truth;

namespace scalars {

/// Instructions that the interpreter does itself; `call` is every other operation. From multiply_add on, they are two
/// operations or more, of which all but the last have no other use; each is rounded.
enum class program_code : std::uint8_t {
    end,
    call,
    guard,            ///< of a condition that is a value
    guard_less,       ///< of a comparison, which is not kept
    guard_less_equal, ///< the same
    guard_equal,      ///< the same
    guard_near,       ///< |a - b| < c d, which iterations end by
    add,
    subtract,
    multiply,
    divide,
    negate,
    square_root,
    magnitude,
    choose,
    unless_zero,
    less,
    less_equal,
    multiply_add,         ///< a b + c
    multiply_subtract,    ///< a b - c
    subtract_product,     ///< c - a b
    multiply_twice,       ///< (a b) c
    add_twice,            ///< (a + b) + c
    subtract_add,         ///< (a - b) + c
    add_subtract,         ///< (a + b) - c
    subtract_sum,         ///< c - (a + b)
    add_multiply,         ///< (a + b) c
    subtract_multiply,    ///< (a - b) c
    multiply_unless_zero, ///< a b, but 0 if c is 0
    divide_unless_zero,   ///< a / b, but 0 if c is 0
    distance,             ///< |a - b|
    // Three operations, the last one's other operand being a product.
    add_products,         ///< a b + c d
    subtract_products,    ///< a b - c d
    multiply_products,    ///< (a b) (c d)
    add_add_product,      ///< (a + b) + c d
    subtract_add_product, ///< (a - b) + c d
    add_subtract_product, ///< (a + b) - c d
    product_subtract_sum, ///< c d - (a + b)
    sum_product,          ///< (a + b) (c d)
    difference_product    ///< (a - b) (c d)
};
struct program_instruction {
    program_code code;
    std::uint8_t entry;  ///< the code and which operand, counted from 1, is the last result: program_entry
    std::uint16_t extra; ///< of guards, what is expected; of others, the function
    std::uint32_t out;   ///< a slot; of guards, their number
    std::uint32_t a, b, c, d;
};
constexpr bool is_guard(program_code code) { return code >= program_code::guard && code <= program_code::guard_near; }

/// A block has as many inputs in the lanes of a program as fit into so many bytes.
inline constexpr int program_block_bytes = 64;
template <class T>
inline constexpr int program_lanes = program_block_bytes / static_cast<int>(sizeof(T));

/// Whether an adjoint of 0 needs a look before the operation multiplies it by a slope that may be infinite.
enum class zero_seed : std::uint8_t { passes, is_kept, is_kept_unless_number };

template <class T>
struct operation_row {
    std::string_view name;
    program_code code;
    std::uint8_t operands;
    bool predicate; ///< its value is a truth: 0 or 1
    bool commutes;
    zero_seed zero;
    std::array<bool, 3> differentiable;
    T (*value)(T, T, T);
    /// Runs calls of this operation from `i` on, and returns the first other instruction.
    const program_instruction* (*run)(const program_instruction* i, T* slots);
    void (*lanes)(T* y, const T* a, const T* b, const T* c); ///< of program_lanes<T> inputs; y may be an operand
    symbol<T> (*slope)(int operand, const symbol<T>& seed, const symbol<T>* x, const symbol<T>& y);
};

/// v where the seed is not 0, otherwise 0: what nothing depends on adds nothing, even if its slope is infinite. By the
/// seed it has no derivative of its own: v is a multiple of the seed, and passes it on.
struct unless_zero_op : map_op<2> {
    static constexpr std::string_view name = "unless_zero";
    static constexpr zero_adjoint zeros = zero_adjoint::passes;
    template <class V>
    TG_HD static constexpr V value(V seed, V v) {
        return tapegraph::detail::choose(seed == V(0), V(0), v);
    }
    template <int I>
        requires(I == 1)
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto, auto) { return dy; }
};

template <class Op>
constexpr program_code code_of() {
    if constexpr (std::is_same_v<Op, add_op>) return program_code::add;
    if constexpr (std::is_same_v<Op, subtract_op>) return program_code::subtract;
    if constexpr (std::is_same_v<Op, multiply_op>) return program_code::multiply;
    if constexpr (std::is_same_v<Op, divide_op>) return program_code::divide;
    if constexpr (std::is_same_v<Op, negate_op>) return program_code::negate;
    if constexpr (std::is_same_v<Op, sqrt_op>) return program_code::square_root;
    if constexpr (std::is_same_v<Op, abs_op>) return program_code::magnitude;
    if constexpr (std::is_same_v<Op, where_op>) return program_code::choose;
    if constexpr (std::is_same_v<Op, unless_zero_op>) return program_code::unless_zero;
    if constexpr (std::is_same_v<Op, less_op>) return program_code::less;
    if constexpr (std::is_same_v<Op, less_equal_op>) return program_code::less_equal;
    return program_code::call;
}

/// An operand as the operation's functions take it: a condition is a bool.
template <class Op, std::size_t I, class T>
TG_INLINE constexpr auto plain_operand(T x) {
    if constexpr (static_cast<int>(I) < Op::condition_operands)
        return x != T(0);
    else
        return x;
}
template <class Op, std::size_t I, class T>
using symbolic_operand = std::conditional_t<(static_cast<int>(I) < Op::condition_operands), symbol_truth<T>, symbol<T>>;

template <class Op, class T, std::size_t... I>
TG_INLINE T operation_value(std::index_sequence<I...>, const std::array<T, 3>& x) {
    return static_cast<T>(scalar_rule<Op, T>::value(plain_operand<Op, I>(x[I])...));
}
template <class Op, class T>
T operation_value_of(T a, T b, T c) {
    return operation_value<Op, T>(std::make_index_sequence<static_cast<std::size_t>(Op::arity)>{}, {a, b, c});
}

// A run calls the function itself: through a pointer, each call would take a nanosecond or two more.
template <class Op, class T>
const program_instruction* run_operation(const program_instruction* i, T* slots) {
    constexpr auto places = std::make_index_sequence<static_cast<std::size_t>(Op::arity)>{};
    const auto [entry, extra] = std::pair(i->entry, i->extra);
    do {
        slots[i->out] = operation_value<Op, T>(
            places, {slots[i->a], Op::arity > 1 ? slots[i->b] : T(0), Op::arity > 2 ? slots[i->c] : T(0)});
        ++i;
    } while (i->entry == entry && i->extra == extra);
    return i;
}

template <class Op, class T>
struct operation_lanes {
    template <std::size_t... I>
    TG_INLINE static T one(std::index_sequence<I...>, T a, T b, T c) {
        const T x[]{a, b, c};
        return static_cast<T>(Op::value(plain_operand<Op, I>(x[I])...));
    }
    template <class Isa>
    TG_INLINE static void run(T* y, const T* a, const T* b, const T* c) {
        constexpr auto places = std::make_index_sequence<static_cast<std::size_t>(Op::arity)>{};
        TG_SIMD
        for (int i = 0; i < program_lanes<T>; ++i) y[i] = one(places, a[i], b[i], c[i]);
    }
    static void dispatched(T* y, const T* a, const T* b, const T* c) {
        cpu::dispatch<operation_lanes, T*, const T*, const T*, const T*>(y, a, b, c);
    }
};

/// The derivative of an operation as operations on symbols: its own vjp.
template <class Op>
struct symbolic_rule {
    template <int I>
    static auto slope(const auto& dy, const auto&... x_and_value) {
        return vjp_for<Op, I>(dy, x_and_value...);
    }
};

template <class Op, class T, std::size_t... I>
symbol<T> symbolic_slope(int operand, const symbol<T>& seed, const symbol<T>* x, const symbol<T>& y,
                         std::index_sequence<I...>);

template <class Op, class T, std::size_t... I>
constexpr bool gives_truth(std::index_sequence<I...>) {
    return std::is_same_v<decltype(Op::value(plain_operand<Op, I>(T(0))...)), bool>;
}
/// Whether the operation's value is a truth.
template <class Op, class T>
inline constexpr bool
    is_predicate = gives_truth<Op, T>(std::make_index_sequence<static_cast<std::size_t>(Op::arity)>{});

template <class Op, class T, std::size_t... I>
constexpr operation_row<T> row_for(std::index_sequence<I...>) {
    operation_row<T> row{};
    row.name = Op::name;
    row.code = code_of<Op>();
    row.operands = static_cast<std::uint8_t>(sizeof...(I));
    row.predicate = is_predicate<Op, T>;
    row.commutes = std::is_same_v<Op, add_op> || std::is_same_v<Op, multiply_op>;
    row.zero = Op::finite_slopes || Op::zeros == zero_adjoint::passes ? zero_seed::passes
               : Op::zeros == zero_adjoint::may_be_lost               ? zero_seed::is_kept
                                                                      : zero_seed::is_kept_unless_number;
    ((row.differentiable[I] =
          static_cast<int>(I) >= Op::condition_operands &&
          differentiable<Op, static_cast<int>(I), symbol<T>, symbolic_operand<Op, I, T>..., symbol<T>>),
     ...);
    row.value = &operation_value_of<Op, T>;
    row.run = &run_operation<Op, T>;
    row.lanes = &operation_lanes<Op, T>::dispatched;
    row.slope = [](int operand, const symbol<T>& seed, const symbol<T>* x, const symbol<T>& y) {
        return symbolic_slope<Op, T>(operand, seed, x, y, std::index_sequence<I...>{});
    };
    return row;
}

template <class Op, class T>
inline constexpr operation_row<T>
    row_of = row_for<Op, T>(std::make_index_sequence<static_cast<std::size_t>(Op::arity)>{});

} // namespace scalars
} // namespace tapegraph
