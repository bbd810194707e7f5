#pragma once

#include <tapegraph/core/number_text.hpp>
#include <tapegraph/minimizers/objective.hpp>
#include <tapegraph/minimizers/qr.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Half the sum of squares of residuals, by their Jacobian J.

namespace tapegraph {

/// The damped method of Levenberg (1944) and Marquardt (1963): steps of (J'J + mu D^2) p = -J'r, solved by a
/// factorization of J. D has the largest length so far of each column of J, as in MINPACK (Moré 1978); mu follows
/// Nielsen (1999), "Damping parameter in Marquardt's method". Bounds: numbers on a bound that the gradient pushes
/// outward stay, steps are projected.
struct levenberg_marquardt {
    double initial_damping = 1e-3; ///< the first mu
};

/// Steps of J p = -r in least squares, of the length that backtracking finds. Faster than levenberg_marquardt near a
/// solution with small residuals, and less safe far from one. Where columns of J depend on each other, some numbers
/// stay as they are.
struct gauss_newton {
    double decrease = 1e-4; ///< a step must give this share of what the slope promises
};

namespace minimizers {

/// What both methods have: the point, its residuals and Jacobian, and a trial point.
template <class T>
class least_squares {
public:
    least_squares(residual_function<T>& f, std::vector<T>& x, const minimization_options& options)
        : f_(f),
          x_(x),
          box_(options, x.size()),
          progress_(options, f.evaluations),
          trial_(x.size()),
          gradient_(x.size()),
          trial_gradient_(x.size()),
          step_(x.size()),
          length_(x.size()),
          most_length_(x.size()),
          scale_(x.size()) {}

    bool begin() {
        box_.project(x_);
        f_.residuals(x_, residuals_);
        value_ = half_square(residuals_);
        if (!std::isfinite(value_)) return progress_.begin(value_, {}, 0);
        if (residuals_.empty()) throw argument_error("minimize: the function has given no residuals");
        f_.jacobian(x_, jacobian_);
        multiply_transposed(jacobian_, residuals_, gradient_);
        update_scale();
        return progress_.begin(value_, gradient_, box_.projected(x_, gradient_, free_));
    }
    /// Evaluates the residuals at the projection of x + length * step. False if they are not finite.
    bool try_step(T length) {
        for (std::size_t i = 0; i < x_.size(); ++i) trial_[i] = x_[i] + length * step_[i];
        box_.project(trial_);
        f_.residuals(trial_, trial_residuals_);
        trial_value_ = half_square(trial_residuals_);
        return std::isfinite(trial_value_);
    }
    /// Evaluates the Jacobian at the trial point. False if it is not finite.
    bool differentiate_trial() {
        f_.jacobian(trial_, trial_jacobian_);
        multiply_transposed(trial_jacobian_, trial_residuals_, trial_gradient_);
        return all_finite<T>(trial_gradient_) && all_finite<T>(trial_jacobian_);
    }
    /// Moves to the trial point. True if that was the last iteration.
    bool move() {
        std::swap(x_, trial_);
        std::swap(residuals_, trial_residuals_);
        std::swap(jacobian_, trial_jacobian_);
        std::swap(gradient_, trial_gradient_);
        value_ = trial_value_;
        update_scale();
        return progress_.after(trial_, x_, value_, box_.projected(x_, gradient_, free_));
    }
    /// The step of the numbers that are free: min |J p + r|^2 + damping |D p|^2.
    void solve(T damping) {
        if (!is_factored_) factor();
        columns_step_.resize(columns_.size());
        columns_scale_.resize(columns_.size());
        for (std::size_t k = 0; k < columns_.size(); ++k) columns_scale_[k] = std::sqrt(damping) * scale_[columns_[k]];
        factored_.solve(damping > 0 ? std::span<const T>(columns_scale_) : std::span<const T>(), columns_step_);
        std::fill(step_.begin(), step_.end(), T(0));
        for (std::size_t k = 0; k < columns_.size(); ++k) step_[columns_[k]] = -columns_step_[k];
    }
    /// What the linear model promises from x to the trial point: -(g's + |J s|^2 / 2).
    T promised() const {
        T slope = 0, square = 0;
        const std::size_t n = x_.size();
        for (std::size_t i = 0; i < n; ++i) slope += gradient_[i] * (trial_[i] - x_[i]);
        for (std::size_t j = 0; j < residuals_.size(); ++j) {
            T change = 0;
            for (std::size_t i = 0; i < n; ++i) change += jacobian_[j * n + i] * (trial_[i] - x_[i]);
            square += change * change;
        }
        return -(slope + square / 2);
    }
    /// The gradient's length relative to the columns of J: what rounding leaves at a minimum.
    T scaled(const std::vector<T>& gradient) const {
        T sum = 0;
        for (std::size_t i = 0; i < gradient.size(); ++i)
            if (free_[i]) sum += gradient[i] / scale_[i] * (gradient[i] / scale_[i]);
        return std::sqrt(sum);
    }

    residual_function<T>& f_;
    std::vector<T>& x_;
    box<T> box_;
    progress<T> progress_;
    std::vector<T> trial_, gradient_, trial_gradient_, step_, residuals_, trial_residuals_, jacobian_, trial_jacobian_;
    T value_ = 0, trial_value_ = 0;

private:
    static T half_square(const std::vector<T>& r) { return dot<T>(r, r) / 2; }
    static void multiply_transposed(const std::vector<T>& jacobian, const std::vector<T>& r, std::vector<T>& g) {
        std::fill(g.begin(), g.end(), T(0));
        for (std::size_t j = 0; j < r.size(); ++j)
            for (std::size_t i = 0; i < g.size(); ++i) g[i] += jacobian[j * g.size() + i] * r[j];
    }
    void update_scale() {
        is_factored_ = false;
        const std::size_t n = x_.size();
        for (std::size_t i = 0; i < n; ++i) {
            T square = 0;
            for (std::size_t j = 0; j < residuals_.size(); ++j) square += jacobian_[j * n + i] * jacobian_[j * n + i];
            length_[i] = std::sqrt(square);
            most_length_[i] = std::max(most_length_[i], length_[i]);
            scale_[i] = most_length_[i] > 0 ? most_length_[i] : T(1); // 1 where the residuals do not depend on it
        }
    }
    void factor() {
        const std::size_t n = x_.size();
        columns_.clear();
        for (std::size_t i = 0; i < n; ++i)
            if (free_[i] && length_[i] > 0) columns_.push_back(i); // of others the step is 0
        factored_.factor(jacobian_, residuals_, n, columns_);
        is_factored_ = true;
    }

    std::vector<T> length_, most_length_, scale_, columns_step_, columns_scale_;
    std::vector<unsigned char> free_;
    std::vector<std::size_t> columns_;
    pivoted_qr<T> factored_;
    bool is_factored_ = false;
};

template <class T>
outcome<T> run(const levenberg_marquardt& method, residual_function<T>& f, std::vector<T>& x,
               const minimization_options& options) {
    if (!(method.initial_damping > 0))
        throw argument_error("levenberg_marquardt: initial_damping is " + number_text(method.initial_damping) +
                             ", and must be positive");
    least_squares<T> at(f, x, options);
    if (at.begin()) return at.progress_.result;
    T damping = static_cast<T>(method.initial_damping), growth = 2, most_promised = 0;
    for (;;) {
        at.solve(damping);
        bool better = at.try_step(1);
        const T promised = at.promised();
        most_promised = std::max(most_promised, promised);
        const T gained = at.value_ - at.trial_value_, noise = 10 * epsilon<T> * at.value_;
        // Where values differ by rounding alone, the gradient tells which point is better.
        const bool rounding = better && std::abs(promised) <= noise && std::abs(gained) <= noise;
        better = better && (rounding || (promised > 0 && gained > T(1e-4) * promised));
        better = better && at.differentiate_trial();
        if (better && rounding) better = at.scaled(at.trial_gradient_) < at.scaled(at.gradient_);
        if (better) {
            const T quality = rounding ? T(1) : std::min(gained / promised, T(1)), bend = 2 * quality - 1;
            damping *= std::max(T(1) / 3, 1 - bend * bend * bend);
            growth = 2;
            most_promised = 0;
            if (at.move()) break;
        } else {
            if (rounding) {
                at.progress_.fail(most_promised);
                break;
            }
            bool moves = false;
            for (std::size_t i = 0; i < x.size(); ++i) moves |= at.trial_[i] != x[i];
            damping *= growth, growth *= 2;
            if (!moves || !std::isfinite(damping)) {
                at.progress_.fail(most_promised);
                break;
            }
            if (at.progress_.limits()) break;
        }
    }
    return at.progress_.result;
}

template <class T>
outcome<T> run(const gauss_newton& method, residual_function<T>& f, std::vector<T>& x,
               const minimization_options& options) {
    least_squares<T> at(f, x, options);
    if (at.begin()) return at.progress_.result;
    for (;;) {
        at.solve(0);
        T length = 1, promised = 0;
        bool found = false,
             rounding = false; // rounding: where values differ by nothing else, the gradient tells which is better
        for (int tries = 0; tries < 50 && !found; ++tries) {
            const bool finite = at.try_step(length);
            T slope = 0;
            for (std::size_t i = 0; i < x.size(); ++i) slope -= at.gradient_[i] * (at.trial_[i] - x[i]);
            if (tries == 0) promised = slope;
            const T gained = at.value_ - at.trial_value_, noise = 10 * epsilon<T> * at.value_;
            rounding = finite && tries == 0 && std::abs(slope) <= noise && std::abs(gained) <= noise;
            if (finite && (rounding || (slope > 0 && gained >= static_cast<T>(method.decrease) * slope)))
                found = at.differentiate_trial();
            if (rounding) {
                found = found && at.scaled(at.trial_gradient_) < at.scaled(at.gradient_);
                break;
            }
            const T parabola = slope / (2 * (slope - gained));
            length *= finite && std::isfinite(parabola) ? std::clamp(parabola, T(0.1), T(0.5)) : T(0.1);
        }
        if (!found) {
            if (!at.progress_.limits()) at.progress_.fail(rounding ? T(0) : std::abs(promised));
            break;
        }
        if (at.move()) break;
    }
    return at.progress_.result;
}

} // namespace minimizers
} // namespace tapegraph
