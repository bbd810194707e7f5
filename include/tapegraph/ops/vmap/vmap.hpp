#pragma once

#include <tapegraph/ops/vmap/batched_transforms.hpp>
#include <tapegraph/ops/vmap/batching_rules.hpp>

#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

/// vmap: turns a function of one example into a function of a batch.

namespace tapegraph {

/// Passed to vmap instead of an axis, for an argument that is not mapped: every example receives
/// all of it.
inline constexpr int unbatched = std::numeric_limits<int>::min();

/// vmap(f) as a function object.
template <class F, int... Axes>
struct vmap_of {
    [[no_unique_address]] F f;

    /// Calls the function for each element of the mapped axes, all at once; results have the batch in front.
    template <tensor_like... Args>
    constexpr auto operator()(const Args&... args) const {
        static_assert(sizeof...(Axes) == 0 || sizeof...(Axes) == sizeof...(Args), "vmap: one axis per argument");
        constexpr int axes[sizeof...(Args) + 1]{Axes...}; // axis 0 by default
        const auto where = std::source_location::current();
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            static_assert(((axes[I] != unbatched) || ...), "vmap: no argument is mapped");
            using mode = mode_of_t<Args...>;
            return std::apply(
                [&](const auto&... in) { return with_mapped(where, in...); },
                std::tuple<std::remove_cvref_t<decltype(mapped<axes[I], mode>(eval(args, where), where, args...))>...>{
                    mapped<axes[I], mode>(eval(args, where), where, args...)...}); // braces: in order
        }
        (std::index_sequence_for<Args...>{});
    }

private:
    template <class Mode, class First, class... Rest>
    static constexpr const auto& of_mode(const First& first, const Rest&... rest) {
        if constexpr (std::is_same_v<mode_of_t<First>, Mode> && handle<First>)
            return first;
        else
            return of_mode<Mode>(rest...);
    }
    template <int Axis, class Mode, class Handle, class... Args>
    static constexpr auto mapped(const Handle& own, std::source_location where, const Args&... args) {
        if constexpr (Axis == unbatched) {
            return own;
        } else {
            const auto x = [&] {
                if constexpr (std::is_same_v<mode_of_t<Handle>, Mode>)
                    return own;
                else
                    return detail::raised<Mode>(own, of_mode<Mode>(eval(args)...), where);
            }();
            const shape s = shape_of(x);
            const int axis = normalized_axis(Axis, s.rank());
            if (axis < 0) mode_transforms<Mode>::refuse(x, "vmap: axis outside the rank", s, s);
            using handle_type = std::remove_cvref_t<decltype(x)>;
            if constexpr (Axis != 0) {
                const detail::batch_context<batched_mode<Mode, vmap_of>> context{1, nullptr, where};
                if (axis > 0) return batched<handle_type, vmap_of>(context.move_axis(x, axis, 0));
            }
            if (s.rank() == 0) { // refused above; continues as a batch of one
                const shape one{1};
                return batched<handle_type, vmap_of>(invoke<reshape_op>({}, &one, where, x));
            }
            return batched<handle_type, vmap_of>(x);
        }
    }
    template <class... Handles>
    constexpr auto with_mapped(std::source_location where, const Handles&... x) const {
        const auto& like = detail::first_batched<vmap_of>(x...);
        (check(like, x), ...);
        return unwrapped(f(x...), like, where);
    }
    template <class Like, class Handle>
    static constexpr void check(const Like& like, const Handle& x) {
        if constexpr (detail::batched_by<vmap_of, Handle>)
            if (!equal_or_required(like.count(), x.count()))
                mode_transforms<mode_of_t<std::remove_cvref_t<decltype(like.whole())>>>::refuse(
                    like.whole(), "vmap: mapped arguments differ in the number of examples", shape_of(like.whole()),
                    shape_of(x.whole()));
    }

    template <tensor_like R>
    static constexpr auto unwrapped(const R& result, const auto& like, std::source_location where) {
        return detail::raised<mode_of_t<std::remove_cvref_t<decltype(like)>>>(eval(result, where), like, where).whole();
    }
    template <class... R>
    static constexpr auto unwrapped(const std::tuple<R...>& results, const auto& like, std::source_location where) {
        return std::apply([&](const auto&... r) { return std::tuple{unwrapped(r, like, where)...}; }, results);
    }
    template <class V, class G>
    static constexpr auto unwrapped(const value_with_gradient<V, G>& r, const auto& like, std::source_location where) {
        const auto value = unwrapped(r.value, like, where);
        const auto gradient = unwrapped(r.gradient, like, where);
        return value_with_gradient<std::remove_cvref_t<decltype(value)>, std::remove_cvref_t<decltype(gradient)>>{
            value, gradient};
    }
};

/// vmap(f)(x...): f of every example along the arguments' first axes; results have the examples
/// along axis 0. Other axes are named in order, `unbatched` for an argument that all examples
/// share: `vmap<0, unbatched>(f)(images, weights)`. f may return a tensor, a tuple, or the result
/// of value_and_gradient; vmap(gradient(f)) gives a gradient per example.
template <int... Axes, class F>
constexpr auto vmap(F f) {
    return vmap_of<F, Axes...>{f};
}

} // namespace tapegraph
