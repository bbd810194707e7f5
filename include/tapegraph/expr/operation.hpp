#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/config.hpp>
#include <tapegraph/core/dtype.hpp>
#include <tapegraph/core/reduction.hpp>
#include <tapegraph/core/shape.hpp>

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

/// Properties of operations. Elementwise operations and reductions are compiled by their kind:
/// kernels are generated from their scalar functions. Every other operation has a kernel of its own
/// (runtime::kernel).

namespace tapegraph {

/// What kind of operation it is, which decides how it is fused and run.
enum class operation_kind : std::uint8_t {
    leaf,   ///< inputs, variables, constants
    map,    ///< elementwise, with broadcasting
    reduce, ///< over axes, of a formula
    view,   ///< another shape over the same elements
    random, ///< draws numbers; two draws are never merged
    effect, ///< runs for its side effect and has no result
    kernel  ///< everything else: products, convolutions, data movement, operations defined outside the library
};

/// The operands and values that a tape keeps for the derivative of an operation that is not
/// elementwise. An operation declares `static constexpr std::uint32_t saved_for_vjp = ...`: bit i
/// for the elements of operand i (shapes are always kept), `saved_value` for those of the value. By
/// default everything is kept.
inline constexpr std::uint32_t saved_nothing = 0, saved_value = 1u << 31, saved_operands = saved_value - 1;

/// One operand in a shape rule.
struct operand_info {
    dtype type = dtype::f32;
    shape dims;
};

/// Input and output of a shape rule. `error` stays null when the operands fit; otherwise it says in
/// a few words what does not, and the caller adds operand types, shapes, scope and source line.
struct inference {
    const operand_info* in = nullptr;
    int count = 0;
    const shape* target = nullptr;
    dtype type = dtype::f32;
    shape result;
    const char* error = nullptr;
    int culprit = 1; ///< the operand that messages show next to the first

    /// Records what does not fit, the first time; returns false.
    constexpr bool fail(const char* text) {
        if (error == nullptr) error = text;
        return false;
    }
    /// Records the text unless the condition holds; returns the condition.
    constexpr bool require(bool condition, const char* text) { return condition || fail(text); }
    /// Checks the extents of the result, as far as they are known.
    constexpr bool require_no_negative_extent(const char* text) {
        for (int i = 0; i < result.rank(); ++i)
            if (result[i].known() && result[i].value < 0) return fail(text);
        return true;
    }
};

/// The arity of operations that take any number of operands of one type (concat): `invoke_list`
/// invokes them, and they define `vjp(attributes, dy, shapes of the operands, which)` instead of
/// one vjp per operand.
inline constexpr int any_arity = -1;

/// Attributes of operations that have none.
struct no_attributes {};

/// What an elementwise operation does to an adjoint of 0: it passes it on (add, cast); it
/// multiplies it by operand 1, which keeps it 0 if that is a number (multiply, divide); or an
/// infinite slope may turn it into NaN.
enum class zero_adjoint : std::uint8_t { may_be_lost, passes, passes_beside_number };

/// Base of elementwise operations. Such an operation defines `name`, `value(x...)` on scalars and
/// `vjp<i>(dy, x..., y)` per differentiable operand (`vjp` alone when there is one operand).
template <int Arity>
struct map_op {
    static constexpr operation_kind kind = operation_kind::map;
    static constexpr int arity = Arity;
    /// Leading operands that are conditions (bool) and do not take part in the common element type.
    static constexpr int condition_operands = 0;
    /// Whether integers and bool may be operands. Plain integers become double where they may not.
    static constexpr bool integers = false;
    /// Whether a formula of floating-point values may have integer operands here: comparisons and
    /// casts.
    static constexpr bool from_integers = false;
    /// Used by derivatives of `where` (ir/guarded_arms.hpp): what happens to an adjoint of 0;
    /// whether the derivatives of all orders are finite for all finite operands and grow no faster
    /// than products; and a number at which they are finite, usable for every operand.
    static constexpr zero_adjoint zeros = zero_adjoint::may_be_lost;
    static constexpr bool finite_slopes = false;
    static constexpr double regular_at = 0.5;
    /// Whether at most one step of the vjp rounds (selections do not). For 16-bit elements,
    /// derivatives of all other operations are computed in float and rounded once. A structure
    /// `of_storage_types` may define a vjp for these, for a formula that is accurate in all of
    /// their range but would slow down float and double.
    static constexpr bool vjp_rounds_once = false;
    /// Approximate number of arithmetic instructions per value.
    static constexpr int instructions = 1;
    using attributes = no_attributes;
    static constexpr dtype result_type(dtype common) { return common; }
};

/// Elementwise operations whose value is one or several polynomials, after a range reduction of the
/// argument.
template <int Arity>
struct series_op : map_op<Arity> {
    static constexpr int instructions = 20;
};

/// Elementwise operations whose result is bool.
template <int Arity>
struct predicate_op : map_op<Arity> {
    static constexpr bool integers = true;
    static constexpr bool from_integers = true;
    static constexpr dtype result_type(dtype) { return dtype::boolean; }
};

/// Base of custom operations that are not elementwise. Such an operation defines `name`,
/// `infer(attributes, io)`, per differentiable operand `vjp<i>(attributes, dy, x..., y)`, and a
/// kernel (runtime::kernel<Op, T>); also `attributes` if it has any. docs/operations/extending.md
/// goes through an example.
template <int Arity>
struct custom_op {
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr int arity = Arity;
    using attributes = no_attributes;
};

/// Base of reductions. Their derivative comes in one of two forms:
///
/// - `vjp(dy, x, y)`, elementwise, with dy and y broadcast over x: it is fused with the derivative of the formula
///   that was reduced, and that formula need not exist in memory;
/// - with `whole_vjp`, `vjp<0>(attributes, dy, x, y)` of any library functions, including reductions, like that of
///   other operations. The operand is then sealed first, and the function is called by `invoke`.
struct reduce_op {
    static constexpr operation_kind kind = operation_kind::reduce;
    static constexpr int arity = 1;
    static constexpr bool whole_vjp = false;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr reduction combines = reduction::sum; ///< how elements are combined
    struct attributes {
        std::int64_t axes = 0;     ///< bit i: axis i is reduced
        /// Bit 0: axes stay, with extent 1; bit 1: the elements must be floating (a mean's sum); bit 2: empty_allowed.
        std::int64_t keepdims = 0;
    };
    /// A maximum or minimum of no elements is -infinity or infinity instead of an error.
    static constexpr std::int64_t empty_allowed = 4;
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        for (int i = 0; i < io.in[0].dims.rank(); ++i) {
            if ((a.axes >> i & 1) == 0)
                io.result.push_back(io.in[0].dims[i]);
            else if ((a.keepdims & 1) != 0)
                io.result.push_back(1);
        }
    }
};

/// How an operation that is not elementwise depends on its floating-point operands. An operation
/// declares `static constexpr linearity linear = ...`; forward mode then applies the operation
/// itself, attributes and all, to tangents, so it must map zeros to zeros. For an operation without
/// a declaration, forward mode uses its vjp.
enum class linearity : std::uint8_t {
    none,  ///< neither, or affine, or without a derivative
    joint, ///< linear in all of them together: concat, gather
    each   ///< linear in each operand while the others stay fixed: matrix products, convolutions
};

template <class Op>
inline constexpr linearity linearity_of = [] {
    if constexpr (requires { Op::linear; })
        return Op::linear;
    else
        return linearity::none;
}();

/// How vmap batches an operation, for the common cases: `static constexpr batching batched = ...`.
/// Other operations that are not elementwise specialise `batching_rule`.
enum class batching : std::uint8_t {
    rows,  ///< works along the last axis; the batch is one of the axes before it
    axis,  ///< works along `attributes::axis`, which moves up by one
    images ///< operand 0 has a leading batch axis of its own; both are merged
};

/// A bit mask of operands that exist for a derivative's sake: kernels and derivatives read their
/// shapes, never their elements. `static constexpr std::uint32_t unread_operands = ...`.
template <class Op>
inline constexpr std::uint32_t unread_operands_of = [] {
    if constexpr (requires { Op::unread_operands; })
        return Op::unread_operands;
    else
        return std::uint32_t{0};
}();

template <class Op>
inline constexpr std::uint32_t saved_for_vjp_of = [] {
    if constexpr (requires { Op::saved_for_vjp; })
        return Op::saved_for_vjp & ~unread_operands_of<Op>;
    else if constexpr (Op::kind == operation_kind::view)
        return saved_nothing;
    else
        return (saved_operands | saved_value) & ~unread_operands_of<Op>;
}();

/// Whether a reduction is differentiated as a whole, separately from the formula that it reduces.
template <class Op>
inline constexpr bool whole_reduction = [] {
    if constexpr (Op::kind == operation_kind::reduce)
        return Op::whole_vjp;
    else
        return false;
}();

/// An operation whose derivatives share work defines `shared(attributes, dy, x..., y)` and
/// `flow<i>(attributes, result of shared, dy, x..., y)` beside `vjp<i>`, which then calls one after
/// the other. A tape calls `shared` once for all operands; in a trace equal nodes are merged.
template <class Op, class... Args>
concept shares_vjp = requires(const Args&... args) {
    Op::shared(args...);
};

/// Number of 64-bit words that an operation's attributes occupy in a trace.
template <class Op>
inline constexpr int attribute_words = [] {
    using attributes = typename Op::attributes;
    if constexpr (std::is_empty_v<attributes>) {
        return 0;
    } else {
        static_assert(sizeof(attributes) % sizeof(std::int64_t) == 0 && std::is_trivially_copyable_v<attributes>,
                      "attributes are made of std::int64_t and double only");
        return static_cast<int>(sizeof(attributes) / sizeof(std::int64_t));
    }
}();

namespace detail {
template <int Words>
struct words {
    std::int64_t value[Words];
};
} // namespace detail

/// Converts attributes to words, and back; both work in constant evaluation.
template <class Op>
constexpr auto attributes_to_words(const typename Op::attributes& attributes) {
    return std::bit_cast<detail::words<attribute_words<Op>>>(attributes);
}
/// The attributes that a trace keeps as words.
template <class Op>
constexpr typename Op::attributes attributes_from_words(const std::int64_t* source) {
    if constexpr (attribute_words<Op> == 0) {
        return {};
    } else {
        detail::words<attribute_words<Op>> words{};
        for (int i = 0; i < attribute_words<Op>; ++i) words.value[i] = source[i];
        return std::bit_cast<typename Op::attributes>(words);
    }
}

namespace detail {
template <class Op, int I, class... Args>
concept has_indexed_vjp = requires(const Args&... args) { Op::template vjp<I>(args...); };
template <class Op, class... Args>
concept has_plain_vjp = requires(const Args&... args) { Op::vjp(args...); };
} // namespace detail

/// Whether operand I of the operation has a derivative, given the arguments of vjp.
template <class Op, int I, class... Args>
inline constexpr bool differentiable =
    detail::has_indexed_vjp<Op, I, Args...> || (I == 0 && detail::has_plain_vjp<Op, Args...>);

/// The vector-Jacobian product for operand I.
template <class Op, int I, class... Args>
TG_INLINE constexpr auto vjp_for(const Args&... args) {
    if constexpr (detail::has_indexed_vjp<Op, I, Args...>)
        return Op::template vjp<I>(args...);
    else
        return Op::vjp(args...);
}

} // namespace tapegraph
