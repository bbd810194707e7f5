#pragma once

#include <tapegraph/core/error.hpp>

#include <cstdint>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

/// What minimize is told: when to stop, bounds, and what to call after each iteration; and why it stopped.

namespace tapegraph {

/// How far a minimization has come, after each iteration.
struct minimization_progress {
    std::int64_t iteration = 0;   ///< 1 after the first
    std::int64_t evaluations = 0; ///< of the function's value, with or without a gradient
    double value = 0;
    double gradient_norm = 0; ///< as in minimization_result
    double step_norm = 0;     ///< the largest change of a number in this iteration
    std::span<const double> x{};
};

/// Options of every method. A tolerance of 0 is never the reason to stop.
struct minimization_options {
    /// Stops when the largest component of the gradient (projected, where there are bounds) is at most
    /// gradient_tolerance + relative_gradient_tolerance * (that at the start).
    double gradient_tolerance = 1e-8;
    double relative_gradient_tolerance = 0;
    /// Stops when no number has changed by more than step_tolerance + relative_step_tolerance * (the largest
    /// magnitude).
    double step_tolerance = 0;
    double relative_step_tolerance = 0;
    /// Stops when an iteration has lowered the value by no more than value_tolerance + relative_value_tolerance *
    /// |value|.
    double value_tolerance = 0;
    double relative_value_tolerance = 0;

    std::int64_t max_iterations = 1000;
    std::int64_t max_evaluations = 100000;

    /// lower[i] <= x[i] <= upper[i]. No numbers: no bounds; one: of all of x. Infinite ones bound nothing.
    std::vector<double> lower{}, upper{};

    /// Called after each iteration. It stops the minimization by returning true.
    std::function<bool(const minimization_progress&)> stop_when{};
};

/// Why a minimization has stopped. Prints as a sentence.
enum class stop_reason {
    gradient,         ///< the gradient is within its tolerance
    value,            ///< the last decrease of the value is
    step,             ///< the last step is
    precision,        ///< differences of values are rounding errors
    iteration_limit,  ///< max_iterations
    evaluation_limit, ///< max_evaluations
    stopped,          ///< stop_when returned true
    no_descent,       ///< no lower value where the gradient promises one
    unbounded         ///< the value fell along a line for as long as it was followed
};

inline std::string to_string(stop_reason reason) {
    switch (reason) {
    case stop_reason::gradient: return "The gradient is within its tolerance.";
    case stop_reason::value: return "The last decrease of the value is within its tolerance.";
    case stop_reason::step: return "The last step is within its tolerance.";
    case stop_reason::precision: return "The value cannot be lowered further in this precision.";
    case stop_reason::iteration_limit: return "The limit of iterations is reached.";
    case stop_reason::evaluation_limit: return "The limit of evaluations is reached.";
    case stop_reason::stopped: return "The callback has stopped the minimization.";
    case stop_reason::unbounded: return "The value falls along a line without end.";
    case stop_reason::no_descent: break;
    }
    return "No lower value was found along a direction in which the gradient promises one: the gradient is wrong, the "
           "function is not smooth there, or the method fails on it.";
}
inline std::ostream& operator<<(std::ostream& out, stop_reason reason) { return out << to_string(reason); }

/// The result of minimize; X is the type of the start (a vector, where that is a span).
template <class X, class T>
struct minimization_result {
    X x;
    T value = 0; ///< of residuals half the sum of their squares
    /// The largest component of the gradient; of numbers on a bound that the gradient would push outward it is 0.
    T gradient_norm = 0;
    std::int64_t iterations = 0;
    std::int64_t evaluations = 0; ///< of the function's value, with or without a gradient
    std::int64_t gradients = 0;   ///< evaluations of gradients, or of Jacobians
    std::int64_t products = 0;    ///< products of the Hessian and a vector
    stop_reason reason = stop_reason::iteration_limit;

    /// Whether it stopped because there was nothing left to do: by a tolerance, or by the numbers' precision.
    bool converged() const { return reason <= stop_reason::precision; }
    /// The reason and the counts.
    std::string message() const {
        return to_string(reason) + " (" + std::to_string(iterations) + " iterations, " + std::to_string(evaluations) +
               " evaluations)";
    }
};

} // namespace tapegraph
