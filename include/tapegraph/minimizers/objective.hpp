#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/minimizers/bounds.hpp>
#include <tapegraph/minimizers/options.hpp>
#include <tapegraph/minimizers/vectors.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// What methods see of a function, and what all of them do between iterations.

namespace tapegraph::minimizers {

/// A function of a flat vector that gives one number. Counts its evaluations.
template <class T>
class objective {
public:
    using number_type = T;
    objective() = default;
    objective(const objective&) = delete;
    objective& operator=(const objective&) = delete;
    virtual ~objective() = default;

    T value(std::span<const T> x) {
        ++evaluations;
        return compute_value(x);
    }
    T value_and_gradient(std::span<const T> x, std::span<T> gradient) {
        ++evaluations, ++gradients;
        return compute_gradient(x, gradient);
    }
    /// The Hessian at x times v. `gradient` is that at x.
    void hessian_product(std::span<const T> x, std::span<const T> gradient, std::span<const T> v,
                         std::span<T> product) {
        ++products;
        compute_product(x, gradient, v, product);
    }
    std::int64_t evaluations = 0, gradients = 0, products = 0;

protected:
    virtual T compute_value(std::span<const T> x) = 0;
    virtual T compute_gradient(std::span<const T> x, std::span<T> gradient) = 0;
    /// By a difference of gradients, whose step balances the rounding of a gradient with the change of the Hessian.
    virtual void compute_product(std::span<const T> x, std::span<const T> gradient, std::span<const T> v,
                                 std::span<T> product) {
        const T length = norm(v);
        if (length == 0) {
            for (T& each : product) each = 0;
            return;
        }
        const T step = std::sqrt(epsilon<T>) * (1 + norm(x)) / length;
        shifted_.assign(x.begin(), x.end());
        add_scaled(std::span<T>(shifted_), step, v);
        compute_gradient(shifted_, product);
        ++gradients, ++evaluations;
        for (std::size_t i = 0; i < product.size(); ++i) product[i] = (product[i] - gradient[i]) / step;
    }

private:
    std::vector<T> shifted_;
};

/// A function of a flat vector that gives residuals.
template <class T>
class residual_function {
public:
    using number_type = T;
    residual_function() = default;
    residual_function(const residual_function&) = delete;
    residual_function& operator=(const residual_function&) = delete;
    virtual ~residual_function() = default;

    void residuals(std::span<const T> x, std::vector<T>& r) {
        ++evaluations;
        compute_residuals(x, r);
        check(r.size());
    }
    /// The derivative of residual i by number k is jacobian[i * (numbers) + k].
    void jacobian(std::span<const T> x, std::vector<T>& jacobian) {
        ++gradients;
        compute_jacobian(x, jacobian);
    }
    std::int64_t evaluations = 0, gradients = 0, products = 0;

protected:
    virtual void compute_residuals(std::span<const T> x, std::vector<T>& r) = 0;
    virtual void compute_jacobian(std::span<const T> x, std::vector<T>& jacobian) = 0;
    /// The number of residuals of the first evaluation.
    std::size_t count() const { return count_; }

private:
    void check(std::size_t count) {
        if (evaluations == 1) count_ = count;
        if (count != count_)
            throw shape_error("minimize: the function has given " + std::to_string(count_) + " residuals, and now " +
                              std::to_string(count));
    }
    std::size_t count_ = 0;
};

template <class T>
struct outcome {
    T value = 0, gradient_norm = 0;
    std::int64_t iterations = 0;
    stop_reason reason = stop_reason::iteration_limit;
};

/// Decides when to stop.
template <class T>
class progress {
public:
    progress(const minimization_options& options, const std::int64_t& evaluations)
        : options_(options), evaluations_(evaluations) {}

    /// At the start. Throws numeric_error where the function has no finite value or gradient.
    bool begin(T value, std::span<const T> gradient, T gradient_norm) {
        if (!std::isfinite(value))
            throw numeric_error("minimize: the function's value at the start is " + number_text(value));
        for (std::size_t i = 0; i < gradient.size(); ++i)
            if (!std::isfinite(gradient[i]))
                throw numeric_error("minimize: the derivative by number " + std::to_string(i) + " at the start is " +
                                    number_text(gradient[i]));
        tolerance_ = static_cast<T>(options_.gradient_tolerance) +
                     static_cast<T>(options_.relative_gradient_tolerance) * gradient_norm;
        result.value = value;
        result.gradient_norm = best_gradient_ = gradient_norm;
        if (gradient_norm <= tolerance_) return stop(stop_reason::gradient);
        return limits();
    }
    /// After an iteration that led from `before` to x.
    bool after(std::span<const T> before, std::span<const T> x, T value, T gradient_norm) {
        const T decrease = result.value - value;
        T step = 0, length = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            step = std::max(step, std::abs(x[i] - before[i]));
            length = std::max(length, std::abs(x[i]));
        }
        result.value = value;
        result.gradient_norm = gradient_norm;
        ++result.iterations;
        // A decrease within rounding is progress only as long as the gradient becomes smaller.
        const bool lower = decrease > 10 * epsilon<T> * std::abs(value) || gradient_norm < best_gradient_;
        idle_ = lower ? 0 : idle_ + 1;
        best_gradient_ = std::min(best_gradient_, gradient_norm);
        bool done = false;
        if (gradient_norm <= tolerance_)
            done = stop(stop_reason::gradient);
        else if (within(step, length, options_.step_tolerance, options_.relative_step_tolerance))
            done = stop(stop_reason::step);
        else if (within(std::abs(decrease), std::abs(value), options_.value_tolerance,
                        options_.relative_value_tolerance))
            done = stop(stop_reason::value);
        else if (idle_ >= 5)
            done = stop(stop_reason::precision);
        if (options_.stop_when) {
            wide_.assign(x.begin(), x.end());
            const minimization_progress now{result.iterations,          evaluations_,
                                            static_cast<double>(value), static_cast<double>(gradient_norm),
                                            static_cast<double>(step),  wide_};
            if (options_.stop_when(now) && !done) done = stop(stop_reason::stopped);
        }
        return done || limits();
    }
    /// No lower value was found, although `promised` was to be gained.
    void fail(T promised) {
        const bool rounding = promised <= 100 * epsilon<T> * std::abs(result.value);
        stop(rounding ? stop_reason::precision : stop_reason::no_descent);
    }
    bool limits() {
        if (result.iterations >= options_.max_iterations) return stop(stop_reason::iteration_limit);
        if (evaluations_ >= options_.max_evaluations) return stop(stop_reason::evaluation_limit);
        return false;
    }
    bool stop(stop_reason reason) {
        result.reason = reason;
        return true;
    }
    outcome<T> result;

private:
    static bool within(T change, T magnitude, double absolute, double relative) {
        const T tolerance = static_cast<T>(absolute) + static_cast<T>(relative) * magnitude;
        return tolerance > 0 && change <= tolerance;
    }

    const minimization_options& options_;
    const std::int64_t& evaluations_;
    T tolerance_ = 0, best_gradient_ = 0;
    int idle_ = 0;
    std::vector<double> wide_;
};

} // namespace tapegraph::minimizers
