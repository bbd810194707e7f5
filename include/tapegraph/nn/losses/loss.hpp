#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/nn/losses/basic.hpp>

#include <array>
#include <cmath>
#include <limits>

/// Building blocks of losses. A loss is a plain struct. A loss with members has `count` and
/// `numbers()`, and its functions take those numbers as a third argument, scalars of the output's
/// type, so that they may change between steps without another compilation. Called by hand with two
/// arguments it uses its members' values.
///
/// `per_record(output, labels[, n])` is the loss after the last axis was reduced (Keras's `call`),
/// which weights of records multiply.

namespace tapegraph::detail {

[[noreturn]] inline void refuse_number(const char* who, const char* what, double value, double low, double high) {
    const std::string range = high == std::numeric_limits<double>::infinity()
                                  ? "must be finite and at least " + number_text(low)
                                  : "is outside [" + number_text(low) + ", " + number_text(high) + "]";
    throw argument_error(std::string(who) + ": " + what + " " + number_text(value) + " " + range);
}

/// Returns the number if it is finite and in [low, high]; throws argument_error otherwise.
constexpr double number_within(const char* who, const char* what, double value, double low,
                               double high = std::numeric_limits<double>::infinity()) {
    if (!(value >= low && value <= high) || value == std::numeric_limits<double>::infinity())
        refuse_number(who, what, value, low, high);
    return value;
}

template <class T>
concept has_numbers = requires {
    T::count;
};

/// The `Count` numbers from `First` on.
template <std::size_t First, std::size_t Count>
constexpr auto part_of_numbers(const auto& n) {
    using scalar = std::remove_cvref_t<decltype(n[0])>;
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::array<scalar, Count>{n[First + I]...}; }
    (std::make_index_sequence<Count>{});
}

/// Labels as a handle, or unchanged if they are a number.
template <class Z>
constexpr auto sealed_labels(const Z& z) {
    if constexpr (tensor_like<Z>)
        return eval(z);
    else
        return z;
}
/// Returns the labels; refuses them if their shape is not the output's.
template <class X, class Z>
constexpr auto labels_like(const X& x, const Z& z) {
    check_labels(x, z);
    return sealed_labels(z);
}

/// The elements of a loss, Loss::each(x, z, n...), which checks the labels.
template <class Loss>
constexpr auto elements_of(const auto& x, const auto& z, const auto&... n) {
    return Loss::each(eval(x), sealed_labels(z), n...);
}
/// The means of these elements: over all of them, and over the last axis.
template <class Loss>
constexpr auto mean_of_elements(const auto& x, const auto& z, const auto&... n) {
    const auto of = [](const auto&... all) { return mean(elements_of<Loss>(all...)); };
    return in_floats(of, x, z, n...);
}
template <class Loss>
constexpr auto record_means_of(const auto& x, const auto& z, const auto&... n) {
    const auto of = [](const auto&... all) { return mean_of_record(elements_of<Loss>(all...)); };
    return in_floats(of, x, z, n...);
}
/// The mean of a loss of records, Loss::per_record(x, z, n...).
template <class Loss>
constexpr auto mean_of_records(const auto& x, const auto& z, const auto&... n) {
    return in_floats([](const auto&... all) { return mean(Loss::per_record(all...)); }, x, z, n...);
}

// Bases of losses without numbers. Those with numbers repeat the same calls, because compilers warn
// about a base that `huber{.delta = 2}` does not initialize.

/// A loss of records: its call is the mean of Loss::per_record(x, z).
template <class Loss>
struct loss_of_records {
    constexpr auto operator()(const auto& x, const auto& z) const { return mean_of_records<Loss>(x, z); }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }
};

/// A loss of elements, Loss::each(x, z), which calls check_labels(x, z). Its call is their mean.
template <class Loss>
struct loss_of_elements {
    constexpr auto operator()(const auto& x, const auto& z) const { return mean_of_elements<Loss>(x, z); }
    static constexpr auto per_record(const auto& x, const auto& z) { return record_means_of<Loss>(x, z); }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }
};

/// Keras's epsilon, which keeps logarithms and denominators away from zero.
inline constexpr double loss_epsilon = 1e-7;

} // namespace tapegraph::detail
