#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/number_text.hpp>

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <type_traits>

/// Numbers of optimizers that may depend on the step.

namespace tapegraph {

/// A function of the step: `double operator()(std::int64_t step) const`, with the first update as
/// step 0, like Keras's iterations. Schedules, captureless functions and small custom structures
/// are such types.
template <class S>
concept schedule =
    std::is_trivially_copyable_v<S> && !std::is_arithmetic_v<S> && requires(const S& s, std::int64_t step) {
    { s(step) } -> std::convertible_to<double>;
};

/// A number of an optimizer: a constant, or a schedule. It is assigned and read like a double, also
/// between steps.
///
///     tg::adam{.learning_rate = 1e-3}
///     tg::adam{.learning_rate = tg::cosine_decay{.initial_learning_rate = 1e-3, .decay_steps = 1000}}
///     tg::adam{.learning_rate = [](std::int64_t step) { return 0.1 / (1 + step); }}
///     model.optimizer().learning_rate *= 0.5; // of a schedule, all that it gives from here on
class hyperparameter {
public:
    /// The maximum size of a schedule in bytes; a longer one must be a custom function.
    static constexpr std::size_t capacity = 192;

    constexpr hyperparameter() = default;
    // A constant evaluation may not read what is mutable, even to copy it.
    constexpr hyperparameter(const hyperparameter& other)
        : value_(other.value_),
          latest_(std::is_constant_evaluated() ? none : other.latest_),
          factor_(other.factor_),
          function_(other.function_),
          memory_(other.memory_) {}
    constexpr hyperparameter& operator=(const hyperparameter&) = default;
    constexpr hyperparameter(double value) : value_(value) {} // NOLINT: set as a double is
    template <schedule S>
    // NOLINTNEXTLINE: implicit on purpose
    hyperparameter(S s) {
        static_assert(sizeof(S) <= capacity,
                      "hyperparameter: this schedule is too large; write a function of the step");
        static_assert(alignof(S) <= alignof(std::max_align_t));
        std::memcpy(memory_.data(), &s, sizeof s);
        function_ = [](const std::byte* memory, std::int64_t step) {
            alignas(S) std::byte copy[sizeof(S)];
            std::memcpy(copy, memory, sizeof copy);
            return static_cast<double>((*std::launder(reinterpret_cast<const S*>(copy)))(step));
        };
    }
    /// The number for step `step`, counted from 0.
    double at(std::int64_t step) const {
        return function_ == nullptr ? value_ : factor_ * function_(memory_.data(), step);
    }
    /// For a schedule the number of the latest step; before the first one its first number.
    operator double() const {
        return function_ != nullptr && latest_ == latest_ ? latest_ : at(0);
    } // NOLINT: read as a double is
    /// Whether it is a function of the step and not a number.
    bool scheduled() const { return function_ != nullptr; }
    /// The factor by which a schedule has been multiplied.
    double factor() const { return factor_; }

    /// Also multiplies all later numbers of a schedule.
    hyperparameter& operator*=(double factor) {
        value_ *= factor;
        latest_ *= factor;
        factor_ *= factor;
        return *this;
    }
    hyperparameter& operator/=(double divisor) { return *this *= 1 / divisor; }

    /// For the `numbers` of optimizers: the number for update `step`, counted from 1. Throws
    /// argument_error, naming optimizer and member, for a negative number or one that is not
    /// finite.
    double used(std::int64_t step, const char* optimizer, const char* member) const;
    /// The same for a fraction in [0, 1), such as momentum.
    double used_below_one(std::int64_t step, const char* optimizer, const char* member) const;
    /// The same for a positive number.
    double used_positive(std::int64_t step, const char* optimizer, const char* member) const;
    /// Throws argument_error that names the optimizer, its member, the step and the rule that the value breaks.
    [[noreturn]] static void refuse(double value, std::int64_t step, const char* optimizer, const char* member,
                                    const char* rule);

private:
    static constexpr double none = std::numeric_limits<double>::quiet_NaN();
    double value_ = 0;             // the constant
    mutable double latest_ = none; // of a schedule: the latest step's number
    double factor_ = 1;            // of a schedule
    double (*function_)(const std::byte* memory, std::int64_t step) = nullptr;
    alignas(std::max_align_t) std::array<std::byte, capacity> memory_{};
};

#if TG_DEFINES(nn)
TG_DEFINITION double hyperparameter::used(std::int64_t step, const char* optimizer, const char* member) const {
    latest_ = at(step - 1);
    if (!(latest_ >= 0) || !std::isfinite(latest_)) refuse(latest_, step, optimizer, member, "must not be negative");
    return latest_;
}

TG_DEFINITION double hyperparameter::used_below_one(std::int64_t step, const char* optimizer,
                                                    const char* member) const {
    if (!(used(step, optimizer, member) < 1)) refuse(latest_, step, optimizer, member, "must be below 1");
    return latest_;
}

TG_DEFINITION double hyperparameter::used_positive(std::int64_t step, const char* optimizer, const char* member) const {
    if (!(used(step, optimizer, member) > 0)) refuse(latest_, step, optimizer, member, "must be positive");
    return latest_;
}

TG_DEFINITION void hyperparameter::refuse(double value, std::int64_t step, const char* optimizer, const char* member,
                                          const char* rule) {
    throw argument_error(std::string(optimizer) + ": " + member + ' ' +
                         (std::isfinite(value) ? rule : "must be finite") + ", step " + std::to_string(step) + " has " +
                         number_text(value));
}
#endif

/// The learning rate of an optimizer, or of the one in a chain.
template <class Optimizer>
hyperparameter& learning_rate_of(Optimizer& optimizer) {
    if constexpr (requires { optimizer.learning_rate; })
        return optimizer.learning_rate;
    else
        return learning_rate_of(optimizer.main());
}

} // namespace tapegraph
