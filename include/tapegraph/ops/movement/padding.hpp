#pragma once

#include <tapegraph/ops/movement/index_map.hpp>
#include <tapegraph/ops/movement/slice.hpp>

#include <initializer_list>

/// pad, tile, repeat, roll: results whose elements are selected by a rule per axis, and their
/// adjoint.

namespace tapegraph {

/// Applies one rule per axis, in one pass; the extents are the target's.
struct index_map_op {
    static constexpr std::string_view name = "index_map";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_nothing;
    static constexpr bool takes_storage_types = true;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t map[max_rank]{};    ///< an index_map
        std::int64_t amount[max_rank]{}; ///< elements before the first; for repeat, copies of each
    };
    /// In map: an error found when the attributes were built.
    enum problem : std::int64_t { too_many = -1, axis_outside = -2, negative = -3, rank_too_high = -4 };

    /// Whether the map's numbers fit its kinds.
    static constexpr bool well_formed(const attributes& a, inference& io) {
        for (int i = 0; i < max_rank; ++i) {
            switch (a.map[i]) {
            case too_many: return io.fail("pad, tile: more amounts than axes");
            case axis_outside: return io.fail("repeat, roll: axis outside the rank");
            case negative: return io.fail("pad, tile, repeat: an amount is negative");
            case rank_too_high: return io.fail("tile: rank above 8");
            default: break;
            }
        }
        return true;
    }
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
        if (!well_formed(a, io)) return;
        for (int i = 0; i < io.result.rank(); ++i) {
            const extent size = io.in[0].dims[i], wide = io.result[i];
            const auto map = static_cast<index_map>(a.map[i]);
            if (map == index_map::keep || size == wide || (wide.known() && wide.value == 0)) continue;
            if (map == index_map::reflect || map == index_map::symmetric || map == index_map::edge)
                io.require(at_least_or_required(size, 1, "pad"), nothing_to_repeat);
        }
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto);
};

/// The adjoint of remap: every element of the target's shape is the sum over its copies, in the
/// order of the result.
struct index_map_adjoint_op : index_map_op {
    static constexpr std::string_view name = "index_map_adjoint";
    static constexpr bool takes_storage_types = false; // false, because it adds
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
        well_formed(a, io);
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto d, auto dy, auto) {
        const shape target = shape_of(dy);
        return invoke<index_map_op>(a, &target, std::source_location::current(), d);
    }
};

template <int I>
constexpr auto index_map_op::vjp(const attributes& a, auto dy, auto x, auto) {
    const shape target = shape_of(x);
    return invoke<index_map_adjoint_op>(a, &target, std::source_location::current(), dy);
}

/// The padding values: a number; the elements inside the border in reverse, without or with the
/// border itself; the border; the other end of the axis. NumPy's names are constant, reflect,
/// symmetric, edge, wrap.
enum class pad_mode : std::uint8_t { constant, reflect, symmetric, edge, wrap };

/// Elements that are added to an axis, before and after it.
struct padding_amount {
    std::int64_t before = 0, after = 0;
};

/// Options of `pad`.
struct pad_options {
    pad_mode mode = pad_mode::constant;
    double value = 0; ///< for constant padding, in the operand's element type
};

/// Adds `before` and `after` elements to each axis; axes not named are unchanged. Padding may be
/// longer than the axis (as in NumPy: it is reflected again), but not negative.
template <tensor_like A>
constexpr auto pad(const A& x, std::initializer_list<padding_amount> amounts, pad_options options = {},
                   std::source_location where = std::source_location::current()) {
    shape target = shape_of(x);
    pad_op::attributes box = detail::whole_slice();
    index_map_op::attributes a;
    const auto map = options.mode == pad_mode::reflect     ? index_map::reflect
                     : options.mode == pad_mode::symmetric ? index_map::symmetric
                     : options.mode == pad_mode::edge      ? index_map::edge
                                                           : index_map::wrap;
    std::int64_t problem = 0;
    int axis = 0;
    for (const padding_amount& amount : amounts) {
        if (axis >= target.rank()) {
            problem = index_map_op::too_many;
            if (axis < max_rank) box.step[axis] = 0; // refused by the shape rule
            ++axis;
            continue;
        }
        if (amount.before < 0 || amount.after < 0) {
            problem = index_map_op::negative;
            box.begin[axis] = -100; // refused by the shape rule
        } else {
            box.begin[axis] = amount.before;
            if (amount.before + amount.after > 0) a.map[axis] = static_cast<std::int64_t>(map);
            a.amount[axis] = amount.before;
            target.set(axis, target[axis] + amount.before + amount.after);
        }
        ++axis;
    }
    if (problem != 0) a.map[0] = problem;
    box.fill = options.value;
    // A single result type for all operations.
    const auto sealed = eval(x, where);
    const auto constant = [&] { return invoke<pad_op>(box, &target, where, sealed); };
    const auto mapped = [&] { return invoke<index_map_op>(a, &target, where, sealed); };
    if (options.mode == pad_mode::constant) return constant();
    return mapped();
}
no_such_option_in<pad_options> pad(any_argument, std::initializer_list<padding_amount>, ...) TG_MISTAKE;

/// Repeats the whole tensor along each axis (numpy.tile): counts apply to the last axes; missing
/// ones are 1, additional ones add leading axes.
template <tensor_like A>
constexpr auto tile(const A& x, std::initializer_list<std::int64_t> counts,
                    std::source_location where = std::source_location::current()) {
    const auto sealed = eval(x, where);
    const shape from = shape_of(sealed);
    const int given = static_cast<int>(counts.size()), rank = given > from.rank() ? given : from.rank();
    shape source = detail::no_axes(from), target = detail::no_axes(from);
    index_map_op::attributes a;
    if (rank > max_rank) a.map[0] = index_map_op::rank_too_high;
    for (int i = 0; i < rank && rank <= max_rank; ++i) {
        const int own = i - (rank - from.rank()), named = i - (rank - given);
        const std::int64_t count = named < 0 ? 1 : counts.begin()[named];
        source.push_back(own < 0 ? extent(1) : from[own]);
        target.push_back(source[i] * (count < 0 ? 1 : count));
        if (count != 1) a.map[i] = count < 0 ? index_map_op::negative : static_cast<std::int64_t>(index_map::wrap);
    }
    const auto whole = rank > from.rank() && rank <= max_rank ? invoke<reshape_op>({}, &source, where, sealed) : sealed;
    return invoke<index_map_op>(a, &target, where, whole);
}

/// Repeats each element of an axis `count` times (numpy.repeat along an axis).
template <tensor_like A>
constexpr auto repeat(const A& x, std::int64_t count, int axis = 0,
                      std::source_location where = std::source_location::current()) {
    shape target = shape_of(x);
    const int at = normalized_axis(axis, target.rank());
    index_map_op::attributes a;
    if (at < 0 || count < 0) {
        a.map[0] = at < 0 ? index_map_op::axis_outside : index_map_op::negative;
    } else {
        a.map[at] = static_cast<std::int64_t>(index_map::repeat);
        a.amount[at] = count;
        target.set(at, target[at] * count);
    }
    return invoke<index_map_op>(a, &target, where, x);
}

/// Shifts elements by `shift` places along an axis; those that leave at one end re-enter at the
/// other.
template <tensor_like A>
constexpr auto roll(const A& x, std::int64_t shift, int axis = 0,
                    std::source_location where = std::source_location::current()) {
    const shape target = shape_of(x);
    const int at = normalized_axis(axis, target.rank());
    index_map_op::attributes a;
    if (at < 0) {
        a.map[0] = index_map_op::axis_outside;
    } else {
        a.map[at] = static_cast<std::int64_t>(index_map::wrap);
        a.amount[at] = shift;
    }
    return invoke<index_map_op>(a, &target, where, x);
}

} // namespace tapegraph
