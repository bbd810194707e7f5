#pragma once

#include <tapegraph/ops/reduction/reduction.hpp>
#include <tapegraph/ops/vmap/batched.hpp>

/// Function transforms under vmap: those of the mode below, applied to functions that receive
/// batches.

namespace tapegraph {

namespace detail {

/// Converts an operand of the mode below to what the function receives.
template <class Mode, bool Batched>
constexpr auto as_seen(const auto& x) {
    if constexpr (Batched)
        return Mode::wrapped(x);
    else
        return x;
}

/// Converts a backward function on batches to one on their wholes. Which arguments are batched is
/// part of its type.
template <class B, class Mode, bool... Batched>
struct lowered_backward {
    [[no_unique_address]] B backward;

    constexpr auto operator()(const auto& dy, const auto& y, const auto&... x) const {
        const auto above = Mode::wrapped(dy);
        const auto flows = call_backward(backward, above, Mode::wrapped(y), as_seen<Mode, Batched>(x)...);
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return std::tuple{lowered<Batched>(flow_at<I, sizeof...(Batched)>(flows), above)...};
        }
        (std::make_index_sequence<sizeof...(Batched)>{});
    }

private:
    template <bool Mapped, class Flow>
    static constexpr auto lowered(const Flow& flow, const auto& like) {
        if constexpr (std::is_same_v<Flow, no_gradient_t>) {
            return flow;
        } else {
            const auto where = std::source_location::current();
            const auto whole = raised<Mode>(eval(flow, where), like, where).whole();
            if constexpr (Mapped)
                return whole;
            else // an argument common to all examples receives the sum
                return sum(whole, 0, {}, where);
        }
    }
};

} // namespace detail

template <class Mode, class Tag>
struct mode_transforms<batched_mode<Mode, Tag>> {
    using mode = batched_mode<Mode, Tag>;
    using below = mode_transforms<Mode>;

    template <class F, class B, class... X>
    static constexpr auto custom(const F& f, const B& backward, std::source_location where, const X&... x) {
        using lowered = detail::lowered_backward<B, mode, detail::batched_by<Tag, X>...>;
        return mode::wrapped(
            below::custom(on_wholes<X...>(f, where, x...), lowered{backward}, where, whole(x, where, x...)...));
    }
    template <class F, class... X>
    static constexpr auto checkpoint(const F& f, std::source_location where, const X&... x) {
        return mode::wrapped(below::checkpoint(on_wholes<X...>(f, where, x...), where, whole(x, where, x...)...));
    }
    template <class Op, class Handle>
    static constexpr void effect(const batched<Handle, Tag>& x, std::source_location where) {
        below::template effect<Op>(x.whole(), where);
    }
    template <class Handle>
    static constexpr void refuse(const batched<Handle, Tag>& like, const char* what, const shape& first,
                                 const shape& second) {
        below::refuse(like.whole(), what, first, second);
    }

private:
    // Converts operands to the mode below: one of a lower mode is repeated where that mode has
    // batches of its own.
    template <class X>
    static constexpr auto whole(const X& x, std::source_location where, const auto&... operands) {
        if constexpr (detail::batched_by<Tag, X>)
            return x.whole();
        else
            return detail::raised<Mode>(x, detail::first_batched<Tag>(operands...).whole(), where);
    }
    template <class... X, class F>
    static constexpr auto on_wholes(const F& f, std::source_location where, const auto&... x) {
        const auto like = detail::first_batched<Tag>(x...); // for a result that does not depend on examples
        return [f, where, like](const auto&... h) {
            const auto result = eval(f(detail::as_seen<mode, detail::batched_by<Tag, X>>(h)...), where);
            return detail::raised<mode>(result, like, where).whole();
        };
    }
};

} // namespace tapegraph
