#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/scalar/jet.hpp>
#include <tapegraph/scalar/number.hpp>
#include <tapegraph/scalar/structures.hpp>
#include <tapegraph/scalar/tape.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// States of differential equations: sequences of plain numbers, of numbers that record, or of jets.

namespace tapegraph::ode {

/// The plain number in a number that records, or in a jet: that of times and step sizes.
template <class N>
struct plain_of {
    using type = N;
};
template <class T>
struct plain_of<real<T>> : plain_of<T> {};
template <class T, int N>
struct plain_of<jet<T, N>> : plain_of<T> {};

/// The number without what it records.
template <class N>
auto plain_value(const N& number) {
    if constexpr (recording<N>)
        return plain_value(number.number);
    else if constexpr (scalars::is_jet<N>)
        return plain_value(number.value);
    else
        return number;
}

/// What a state may be given as, and the container that it is kept in (of a span a vector).
template <class Y>
concept initial_state =
    scalars::sequence<Y> && std::floating_point<typename plain_of<typename scalars::sequence_of<Y>::element>::type>;
template <class Y>
using number_of = typename scalars::sequence_of<Y>::element;
template <class Y>
using state_of = typename scalars::sequence_of<Y>::template with<number_of<Y>>;
template <class Y>
using time_of = typename plain_of<number_of<Y>>::type;

/// A copy of a state, with the type that states have while they are integrated.
template <class Y>
state_of<Y> copied(const Y& y) {
    return scalars::mapped_sequence(y, [](const auto& each) { return each; });
}

/// dy = f(t, y). f returns a sequence, or writes to its last argument.
template <class F, class S>
void rate(const F& f, time_of<S> t, const S& y, S& dy) {
    if constexpr (std::is_invocable_v<const F&, time_of<S>, const S&, S&>) {
        f(t, y, dy);
    } else {
        const auto d = f(t, y);
        if (scalars::length(d) != scalars::length(y))
            throw shape_error("ode: the state has " + std::to_string(scalars::length(y)) +
                              " numbers, and its derivative " + std::to_string(scalars::length(d)));
        for (std::size_t i = 0; i < scalars::length(y); ++i) dy[i] = d[i];
    }
}

/// f(t, y, parameters), or f(t, y, parameters, dy), as a function of t and y.
template <class F, class P>
struct with_parameters {
    const F& f;
    const P& parameters;
    /// dy = f(t, y, parameters), for functions that write their result and for those that return it.
    template <class T, class S>
    void operator()(T t, const S& y, S& dy) const {
        if constexpr (std::is_invocable_v<const F&, T, const S&, const P&, S&>) {
            f(t, y, parameters, dy);
        } else {
            rate([this](T at, const S& state) { return f(at, state, parameters); }, t, y, dy);
        }
    }
};

/// Whether no element is infinite or NaN.
template <class S>
bool all_finite(const S& y) {
    bool finite = true;
    for (std::size_t i = 0; i < scalars::length(y); ++i) finite &= std::isfinite(plain_value(y[i]));
    return finite;
}

/// A time in a message, without the rounding errors of the last digits.
template <class T>
std::string time_text(T time) {
    return rounded_text(static_cast<double>(time), 10);
}

/// Forgets on the tape what a rejected step has recorded.
template <class N>
struct recorded_attempt {
    void begin() {}
    /// Drops what a rejected step has recorded.
    void forget() {}
};
template <class T>
struct recorded_attempt<real<T>> {
    real_tape<T>* tape = static_cast<real_tape<T>*>(scalars::recorder_of<T>.owner);
    tape_position at;
    void begin() {
        if (tape != nullptr) at = tape->position();
    }
    void forget() {
        if (tape != nullptr) tape->rewind(at);
    }
};

/// Counts of an integration.
struct statistics {
    std::int64_t steps = 0;       ///< that were accepted
    std::int64_t rejected = 0;    ///< that were tried in vain
    std::int64_t evaluations = 0; ///< of the derivative
};

/// Throws argument_error unless both times are finite.
template <class T>
void require_times(T begin, T end) {
    if (!std::isfinite(begin) || !std::isfinite(end))
        throw argument_error("ode: from t = " + time_text(begin) + " to t = " + time_text(end));
}
/// Throws numeric_error: the derivative is not finite at that time.
[[noreturn]] inline void refuse_rate(const std::string& time) {
    throw numeric_error("ode: the derivative of the state is not finite at t = " + time);
}

} // namespace tapegraph::ode
