#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/core/list.hpp>
#include <tapegraph/ops/movement/slice.hpp>

/// concat, stack: join any number of tensors in one pass.

namespace tapegraph {

struct concat_op {
    static constexpr std::string_view name = "concat";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_nothing;
    static constexpr bool takes_storage_types = true;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = any_arity;
    struct attributes {
        std::int64_t axis = 0;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        const shape& x = io.in[0].dims;
        io.type = io.in[0].type;
        io.result = x;
        const auto axis = static_cast<int>(a.axis);
        if (!io.require(axis >= 0 && axis < x.rank(), "concat: axis outside the rank")) return;
        extent length = x[axis];
        for (int k = 1; k < io.count && io.error == nullptr; ++k) {
            const shape& y = io.in[k].dims;
            io.culprit = k;
            if (!io.require(io.in[k].type == io.type, "concat: element types differ") ||
                !io.require(x.rank() == y.rank(), "concat: ranks differ"))
                return;
            for (int i = 0; i < x.rank(); ++i)
                if (i != axis) io.require(equal_or_required(x[i], y[i]), "concat: extents differ off the axis");
            length = length + y[axis];
        }
        io.result.set(axis, length);
    }
    /// The adjoint of operand `which`: its part of dy.
    template <handle H>
    static constexpr H vjp(const attributes& a, const H& dy, const shape* shapes, int, int which) {
        const auto axis = static_cast<int>(a.axis);
        extent before{0, shapes[0].table()};
        for (int k = 0; k < which; ++k) before = before + shapes[k][axis];
        return detail::part_of(dy, axis, before, shapes[which][axis], std::source_location::current());
    }
};

namespace detail {
/// A range of tensors or formulas of one type in contiguous memory: a std::vector, std::array or
/// std::span.
template <class R>
concept tensor_range = requires(const R& parts) {
    parts.size();
    requires tensor_like<std::remove_cvref_t<decltype(*parts.data())>>;
};
template <tensor_range R>
using handle_in = std::remove_cvref_t<decltype(eval(*std::declval<const R&>().data()))>;

/// The handles of a range, with formulas sealed. An empty range is refused, because the result's
/// shape would be unknown.
template <tensor_range R, class F>
constexpr auto with_handles(const R& parts, const char* none, std::source_location where, const F& f) {
    const int count = static_cast<int>(parts.size());
    if (count == 0) throw shape_error(none);
    if constexpr (handle<std::remove_cvref_t<decltype(*parts.data())>>) {
        return f(parts.data(), count);
    } else {
        list<handle_in<R>> sealed;
        for (int k = 0; k < count; ++k) sealed.push_back(eval(parts.data()[k], where));
        return f(static_cast<const handle_in<R>*>(sealed.begin()), count);
    }
}

template <handle H>
constexpr H concatenated(const H* parts, int count, int axis, std::source_location where) {
    return invoke_list<concat_op>({normalized_axis(axis, shape_of(parts[0]).rank())}, where, parts, count);
}
template <handle H>
constexpr H stacked(const H* parts, int count, int axis, std::source_location where) {
    list<H> raised;
    for (int k = 0; k < count; ++k) raised.push_back(expand_dims(parts[k], axis, where));
    return concatenated(static_cast<const H*>(raised.begin()), count, axis, where);
}
} // namespace detail

/// Concatenates any number of handles of one type along an axis: concat({a, b, c}, 1). The
/// operands' extents may differ only along that axis.
template <handle H>
constexpr H concat(std::initializer_list<H> parts, int axis = -1,
                   std::source_location where = std::source_location::current()) {
    return detail::concatenated(parts.begin(), static_cast<int>(parts.size()), axis, where);
}
/// Concatenates a std::vector, std::array or std::span of tensors or formulas: in eager mode their
/// number and extents need not be known in advance.
template <detail::tensor_range R>
constexpr detail::handle_in<R> concat(const R& parts, int axis = -1,
                                      std::source_location where = std::source_location::current()) {
    return detail::with_handles(parts, "concat: the range has no tensors", where, [&](const auto* first, int count) {
        return detail::concatenated(first, count, axis, where);
    });
}
/// Two tensors or formulas.
template <tensor_like A, tensor_like B>
constexpr auto concat(const A& x, const B& y, int axis = -1,
                      std::source_location where = std::source_location::current()) {
    const auto first = eval(x, where);
    const auto second = eval(y, where);
    if constexpr (std::is_same_v<mode_of_t<A>, mode_of_t<B>>) {
        static_assert(std::is_same_v<decltype(first), decltype(second)>, "concat: element types differ");
        return concat({first, second}, axis, where);
    } else { // under vmap, where all examples share one of them
        return concat(mode_of_t<A, B>::raised(where, first, second), axis, where);
    }
}

/// Stacks any number of handles of one shape along a new axis, which is axis `axis` of the result.
template <handle H>
constexpr H stack(std::initializer_list<H> parts, int axis = 0,
                  std::source_location where = std::source_location::current()) {
    return detail::stacked(parts.begin(), static_cast<int>(parts.size()), axis, where);
}
/// Stacks a std::vector, std::array or std::span of tensors or formulas.
template <detail::tensor_range R>
constexpr detail::handle_in<R> stack(const R& parts, int axis = 0,
                                     std::source_location where = std::source_location::current()) {
    return detail::with_handles(parts, "stack: the range has no tensors", where, [&](const auto* first, int count) {
        return detail::stacked(first, count, axis, where);
    });
}

} // namespace tapegraph
