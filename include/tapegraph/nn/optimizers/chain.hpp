#pragma once

#include <tapegraph/model/shared_terms.hpp>
#include <tapegraph/nn/optimizers/hyperparameter.hpp>
#include <tapegraph/ops/elementwise/comparison.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

/// Optimizers composed of elements. An element of a chain has `count` and `numbers(step)` like an
/// optimizer, and one or more of
///
///     update(slots, w, g, n)             the optimizer: exactly one element has it
///     transform(slots, w, g, n, s)       the gradient that later elements receive; changes nothing
///     remember(slots, w, g, n)           assigns state that transform reads
///     gate(n, s)                         a scalar, true in steps in which later elements act; in others every
///                                        variable and all their state keep their values
///     applied(step)                      the step number of later elements, where they skip some steps
///     after(slots, w, next, n)           the value assigned to w, instead of `next`
///     shared(gradients, n)               s: a value computed from all gradients, as transformed by earlier elements
///     first_value(state)                 as for optimizers
///
/// All are static and constexpr except numbers, applied and first_value. An element with `shared`
/// also declares `shares = true`, and one with state `state_name`.

namespace tapegraph {

/// The role of an element, its `static constexpr auto role`; an element that declares none is the
/// optimizer.
enum class chain_role { optimizer, gradient, weights };

namespace detail {

/// Passed as `s` to an element without `shared`.
struct nothing_shared {};

template <class E>
constexpr chain_role role_of() {
    if constexpr (requires { E::role; })
        return E::role;
    else
        return chain_role::optimizer;
}

template <int First, int Count>
constexpr auto part_of(const auto& numbers) {
    std::array<typename std::remove_cvref_t<decltype(numbers)>::value_type, Count> part{};
    for (int i = 0; i < Count; ++i) part[static_cast<std::size_t>(i)] = numbers[static_cast<std::size_t>(First + i)];
    return part;
}

/// Whether an assignment is to the variable itself rather than to state.
constexpr bool same_variable(const auto& target, const auto& w) {
    if constexpr (requires { w.owner(); })
        return target.id() == w.id();
    else
        return target.shares_with(w);
}

/// Slots whose assignments take effect only in some steps.
template <class Slots, class Gate>
struct gated_slots : Slots {
    Gate gate;

    constexpr gated_slots(const Slots& slots, const Gate& condition) : Slots(slots), gate(condition) {}
    constexpr void assign(const auto& target, const auto& value) const {
        Slots::assign(target, where(gate, value, target));
    }
};

/// Slots that pass the value assigned to `w` through `Finish` first.
template <class Slots, class W, class Finish>
struct finishing_slots : Slots {
    const W* w;
    const Finish* finish;

    constexpr finishing_slots(const Slots& slots, const W& variable, const Finish& f)
        : Slots(slots), w(&variable), finish(&f) {}
    constexpr void assign(const auto& target, const auto& value) const {
        if (!same_variable(target, *w)) return Slots::assign(target, value);
        Slots::assign(target, (*finish)(static_cast<const Slots&>(*this), eval(value)));
    }
};

template <class... E>
inline constexpr int optimizers_among = (0 + ... + (role_of<E>() == chain_role::optimizer));

/// Whether an element that keeps state occurs only once in a chain.
template <class E>
inline constexpr bool keeps_state = requires {
    E::state_name;
};
template <class... E>
constexpr bool states_differ() {
    const std::string_view names[]{[]() -> std::string_view {
        if constexpr (keeps_state<E>)
            return E::state_name;
        else
            return {};
    }()...};
    for (std::size_t i = 0; i < sizeof...(E); ++i)
        for (std::size_t k = 0; k < i; ++k)
            if (!names[i].empty() && names[i] == names[k]) return false;
    return true;
}
/// An element that divides gradients by the scale of the loss: earlier elements would see scaled
/// gradients.
template <class First, class... E>
inline constexpr bool unscaled_first = !(scales_loss<E>() || ...);
template <class... E>
constexpr bool gradients_first() {
    bool optimizer_seen = false, right = true;
    ((right = right && !(optimizer_seen && role_of<E>() == chain_role::gradient),
      optimizer_seen = optimizer_seen || role_of<E>() == chain_role::optimizer),
     ...);
    return right;
}

} // namespace detail

/// An optimizer composed of elements: gradients pass through the elements in order, and the value
/// that the optimizer assigns to a weight passes through those for weights.
///
///     tg::chain{tg::clip_by_global_norm{.norm = 1}, tg::adamw{.learning_rate = 1e-3}, tg::weight_average{.decay = 0.999}}
///
/// Elements are accessed by type or position: `model.optimizer().get<tg::adamw>().learning_rate =
/// 1e-4`.
template <class... E>
class chain {
    static_assert(detail::optimizers_among<E...> == 1, "chain: exactly one element is an optimizer");
    static_assert(detail::gradients_first<E...>(),
                  "chain: what transforms gradients, accumulates or skips must come before the optimizer");
    static_assert(detail::unscaled_first<E...>, "chain: loss_scaling must come first");
    static_assert(detail::states_differ<E...>(),
                  "chain: two elements keep state of the same name; one of each kind is possible");

    static constexpr int size = static_cast<int>(sizeof...(E));
    template <int I>
    using element = std::tuple_element_t<static_cast<std::size_t>(I), std::tuple<E...>>;
    template <int I>
    static constexpr int first = [] {
        int sum = 0, k = 0;
        ((sum += k++ < I ? E::count : 0), ...);
        return sum;
    }();

public:
    constexpr chain(const E&... elements) : elements_(elements...) {}

    /// The element of type T, to read or change its numbers: `model.optimizer().get<tg::adam>()`.
    template <class T>
    T& get() {
        return std::get<T>(elements_);
    }
    template <class T>
    const T& get() const {
        return std::get<T>(elements_);
    }
    template <int I>
    auto& get() {
        return std::get<static_cast<std::size_t>(I)>(elements_);
    }
    /// The optimizer of the chain.
    auto& main() { return get<main_index()>(); }

    static constexpr int count = (0 + ... + E::count);
    static constexpr bool scales_loss = (detail::scales_loss<E>() || ...);
    std::array<double, static_cast<std::size_t>(count)> numbers(std::int64_t step) const {
        std::array<double, static_cast<std::size_t>(count)> found{};
        std::size_t at = 0;
        const auto add = [&](const auto& e) {
            for (const double n : e.numbers(step)) found[at++] = n;
            if constexpr (requires { e.applied(step); }) step = e.applied(step);
        };
        std::apply([&](const E&... e) { (add(e), ...); }, elements_);
        return found;
    }
    double first_value(std::string_view state) const {
        double value = 0;
        const auto ask = [&](const auto& e) {
            if constexpr (requires { e.first_value(state); })
                if (value == 0) value = e.first_value(state);
        };
        std::apply([&](const E&... e) { (ask(e), ...); }, elements_);
        return value;
    }

    /// The shared values of the elements that have them, as a tuple.
    static constexpr auto shared(const auto& gradients, const auto& n) requires(requires { E::shares; } || ...) {
        return gather<0>(gradients, n, std::tuple<>{});
    }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        run<0>(slots, w, g, n, std::tuple<std::conditional_t<false, E, detail::nothing_shared>...>{});
    }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n, const auto& s) {
        run<0>(slots, w, g, n, s);
    }

private:
    static constexpr int main_index() {
        int i = 0, found = 0;
        ((found = detail::role_of<E>() == chain_role::optimizer ? i : found, ++i), ...);
        return found;
    }
    template <int I>
    static constexpr auto own(const auto& n) {
        return detail::part_of<first<I>, element<I>::count>(n);
    }

    // The gradient that element `Last` receives.
    template <int I, int Last>
    static constexpr auto transformed(const auto& slots, const auto& w, const auto& g, const auto& n, const auto& s) {
        if constexpr (I == Last)
            return g;
        else if constexpr (requires { element<I>::transform(slots, w, g, own<I>(n), std::get<I>(s)); })
            return transformed<I + 1, Last>(slots, w, element<I>::transform(slots, w, g, own<I>(n), std::get<I>(s)), n,
                                            s);
        else
            return transformed<I + 1, Last>(slots, w, g, n, s);
    }
    // The gradients of all variables that element I receives.
    template <int I, class Gradients, class N, class S>
    struct seen_by {
        const Gradients* gradients;
        const N* n;
        const S* s;

        constexpr auto sum(const auto& f) const { return gradients->sum(seen(f)); }
        constexpr auto fold(const auto& f, const auto& join) const { return gradients->fold(seen(f), join); }
        constexpr auto seen(const auto& f) const {
            return [this, &f](const auto& slots, const auto& w, const auto& g) {
                return detail::term_of(f, slots, w, transformed<0, I>(slots, w, g, *n, *s));
            };
        }
        template <class G = Gradients>
        constexpr auto common(std::string_view name) const -> decltype(std::declval<const G&>().common(name)) {
            return gradients->common(name);
        }
        constexpr void assign_common(std::string_view name, const auto& target, const auto& value) const {
            gradients->assign_common(name, target, value);
        }
    };
    template <int I, class S>
    static constexpr auto gather(const auto& gradients, const auto& n, const S& s) {
        if constexpr (I == size) {
            return s;
        } else if constexpr (requires { element<I>::shares; }) {
            const seen_by<I, std::remove_cvref_t<decltype(gradients)>, std::remove_cvref_t<decltype(n)>, S> seen{
                &gradients, &n, &s};
            return gather<I + 1>(gradients, n, std::tuple_cat(s, std::tuple(element<I>::shared(seen, own<I>(n)))));
        } else {
            return gather<I + 1>(gradients, n, std::tuple_cat(s, std::tuple(detail::nothing_shared{})));
        }
    }

    template <int I>
    static constexpr void run(const auto& slots, const auto& w, const auto& g, const auto& n, const auto& s) {
        using e = element<I>;
        const auto numbers = own<I>(n);
        const auto& common = std::get<I>(s);
        if constexpr (detail::role_of<e>() == chain_role::weights) {
            run<I + 1>(slots, w, g, n, s);
        } else if constexpr (detail::role_of<e>() == chain_role::optimizer) {
            const auto finish = [&](const auto& plain, const auto& next) { return finished<0>(plain, w, next, n); };
            const detail::finishing_slots<std::remove_cvref_t<decltype(slots)>, std::remove_cvref_t<decltype(w)>,
                                          decltype(finish)>
                finishing(slots, w, finish);
            if constexpr (requires { e::shares; })
                e::update(finishing, w, g, numbers, common);
            else
                e::update(finishing, w, g, numbers);
        } else {
            static_assert(
                requires { e::transform(slots, w, g, numbers, common); } || requires { e::gate(numbers, common); },
                "chain: this element has neither transform(slots, w, g, n, s) nor gate(n, s)");
            if constexpr (requires { e::remember(slots, w, g, numbers); }) e::remember(slots, w, g, numbers);
            const auto next = transformed<I, I + 1>(slots, w, g, n, s);
            if constexpr (requires { e::gate(numbers, common); }) {
                const auto gate = e::gate(numbers, common);
                run<I + 1>(detail::gated_slots<std::remove_cvref_t<decltype(slots)>, decltype(gate)>(slots, gate), w,
                           next, n, s);
            } else {
                run<I + 1>(slots, w, next, n, s);
            }
        }
    }
    template <int I>
    static constexpr auto finished(const auto& slots, const auto& w, const auto& next, const auto& n) {
        if constexpr (I == size)
            return next;
        else if constexpr (detail::role_of<element<I>>() == chain_role::weights)
            return finished<I + 1>(slots, w, element<I>::after(slots, w, next, own<I>(n)), n);
        else
            return finished<I + 1>(slots, w, next, n);
    }

    std::tuple<E...> elements_;
};
template <class... E>
chain(const E&...) -> chain<E...>;

} // namespace tapegraph
