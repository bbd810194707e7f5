#pragma once

#include <tapegraph/core/number_text.hpp>
#include <tapegraph/minimizers/line_search.hpp>
#include <tapegraph/minimizers/objective.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tapegraph {

/// The quasi-Newton method of limited memory (Nocedal 1980; Nocedal and Wright, algorithm 7.5): an approximate inverse
/// Hessian from the last `history` steps, and a line search with the strong Wolfe conditions. With bounds it is the
/// two-metric projection of Bertsekas (1982): numbers on a bound that the gradient pushes outward stay, and the others
/// take the quasi-Newton step; a step over a bound is projected, and its length is found by backtracking.
struct lbfgs {
    int history = 10;
    double decrease = 1e-4; ///< c1 of the Wolfe conditions
    double curvature = 0.9; ///< c2, between c1 and 1
};

namespace minimizers {

/// The last steps and differences of gradients.
template <class T>
class quasi_newton_pairs {
public:
    quasi_newton_pairs(std::size_t most, std::size_t size)
        : most_(most), size_(size), steps_(most * size), differences_(most * size), products_(most), weights_(most) {}
    bool empty() const { return count_ == 0; }
    void clear() { count_ = 0, scale_ = 1; }

    /// Takes the pair from x to `next`, unless its curvature is not positive.
    void add(std::span<const T> x, std::span<const T> next, std::span<const T> gradient,
             std::span<const T> next_gradient) {
        const std::size_t at = (first_ + count_) % most_ * size_;
        T* const s = &steps_[at];
        T* const y = &differences_[at];
        for (std::size_t i = 0; i < size_; ++i) {
            s[i] = next[i] - x[i];
            y[i] = next_gradient[i] - gradient[i];
        }
        const std::span<const T> step(s, size_), difference(y, size_);
        const T product = dot(step, difference), square = dot(difference, difference);
        if (!(product > epsilon<T> * square) || !std::isfinite(square)) return;
        products_[at / size_] = product;
        scale_ = product / square;
        if (count_ < most_)
            ++count_;
        else
            first_ = (first_ + 1) % most_;
    }
    /// direction = -H gradient by the two loops. With `masked`, of numbers that are free alone; the others' are 0.
    void direction(std::span<const T> gradient, bool masked, const std::vector<unsigned char>& free,
                   std::span<T> direction) {
        for (std::size_t i = 0; i < size_; ++i) direction[i] = -gradient[i];
        const auto mask = [&] {
            if (masked)
                for (std::size_t i = 0; i < size_; ++i)
                    if (!free[i]) direction[i] = 0;
        };
        mask();
        T scale = scale_;
        for (std::size_t k = count_; k-- > 0;) {
            const std::size_t slot = (first_ + k) % most_;
            const std::span<const T> s(&steps_[slot * size_], size_), y(&differences_[slot * size_], size_);
            const T product = masked ? free_product(s, y, free) : products_[slot];
            // Of a pair whose free part has no positive curvature nothing is known.
            const bool usable = product > 0;
            weights_[slot] = usable ? dot(s, std::span<const T>(direction)) / product : T(0);
            if (usable) add_scaled(direction, -weights_[slot], y), mask();
            if (masked && k + 1 == count_ && usable) scale = product / free_product(y, y, free);
        }
        for (T& each : direction) each *= scale;
        for (std::size_t k = 0; k < count_; ++k) {
            const std::size_t slot = (first_ + k) % most_;
            const std::span<const T> s(&steps_[slot * size_], size_), y(&differences_[slot * size_], size_);
            const T product = masked ? free_product(s, y, free) : products_[slot];
            if (!(product > 0)) continue;
            const T back = dot(y, std::span<const T>(direction)) / product;
            add_scaled(direction, weights_[slot] - back, s), mask();
        }
    }

private:
    static T free_product(std::span<const T> a, std::span<const T> b, const std::vector<unsigned char>& free) {
        T sum = 0;
        for (std::size_t i = 0; i < a.size(); ++i) sum += free[i] ? a[i] * b[i] : T(0);
        return sum;
    }

    std::size_t most_, size_, first_ = 0, count_ = 0;
    std::vector<T> steps_, differences_, products_, weights_;
    T scale_ = 1;
};

template <class T>
class lbfgs_run {
public:
    lbfgs_run(const lbfgs& method, objective<T>& f, std::vector<T>& x, const minimization_options& options)
        : method_(method),
          f_(f),
          x_(x),
          box_(options, x.size()),
          progress_(options, f.evaluations),
          pairs_(static_cast<std::size_t>(std::max(method.history, 1)), x.size()),
          gradient_(x.size()),
          trial_(x.size()),
          trial_gradient_(x.size()),
          direction_(x.size()) {
        if (method.history < 1)
            throw argument_error("lbfgs: history is " + std::to_string(method.history) + ", at least 1");
        if (!(0 < method.decrease && method.decrease < method.curvature && method.curvature < 1))
            throw argument_error("lbfgs: 0 < decrease < curvature < 1, given " + number_text(method.decrease) +
                                 " and " + number_text(method.curvature));
    }
    outcome<T> run() {
        box_.project(x_);
        value_ = f_.value_and_gradient(x_, gradient_);
        if (progress_.begin(value_, gradient_, box_.projected(x_, gradient_, free_))) return progress_.result;
        for (;;) {
            choose_direction();
            T promised = -slope_;
            bool found = search();
            if (!found && !pairs_.empty()) { // once more, by steepest descent
                pairs_.clear();
                choose_direction();
                promised = std::min(promised, -slope_);
                found = search();
            }
            if (!found) {
                if (!progress_.limits()) progress_.fail(promised);
                return progress_.result;
            }
            pairs_.add(x_, trial_, gradient_, trial_gradient_);
            std::swap(x_, trial_);
            std::swap(gradient_, trial_gradient_);
            value_ = trial_value_;
            const bool done = progress_.after(trial_, x_, value_, box_.projected(x_, gradient_, free_));
            if (endless_ && !done) progress_.stop(stop_reason::unbounded);
            if (done || endless_) return progress_.result;
        }
    }

private:
    void choose_direction() {
        pairs_.direction(gradient_, box_.bounded(), free_, direction_);
        leave_bounds();
        slope_ = dot<T>(gradient_, direction_);
        if (!(slope_ < 0) || !std::isfinite(slope_)) {
            pairs_.clear();
            pairs_.direction(gradient_, box_.bounded(), free_, direction_);
            leave_bounds();
            slope_ = dot<T>(gradient_, direction_);
        }
        // Without curvature: at most by 1 in all, for the scale of the gradient says nothing of that of x.
        first_step_ = pairs_.empty() ? std::min(T(1), 1 / norm<T>(direction_)) : T(1);
    }
    // Numbers on a bound do not move outward.
    void leave_bounds() {
        if (!box_.bounded()) return;
        for (std::size_t i = 0; i < x_.size(); ++i)
            if (!free_[i] || box_.blocks(i, x_[i], direction_[i])) direction_[i] = 0;
    }
    bool search() {
        const T most = box_.first_bound(x_, direction_);
        endless_ = false;
        if (most < first_step_) return projected_search();
        const auto at = [this](T step) {
            for (std::size_t i = 0; i < x_.size(); ++i) trial_[i] = x_[i] + step * direction_[i];
            box_.project(trial_);
            trial_value_ = f_.value_and_gradient(trial_, trial_gradient_);
            const T slope = all_finite<T>(trial_gradient_) ? dot<T>(trial_gradient_, direction_)
                                                           : std::numeric_limits<T>::quiet_NaN();
            return line_point<T>{step, trial_value_, slope};
        };
        wolfe_search<T, decltype(at)> search(at, {0, value_, slope_}, static_cast<T>(method_.decrease),
                                             static_cast<T>(method_.curvature));
        const bool found = search.run(first_step_, most).step > 0;
        endless_ = search.endless;
        return found;
    }
    // Backtracking along the projection of the direction.
    bool projected_search() {
        T step = first_step_;
        for (int tries = 0; tries < 50; ++tries) {
            T promised = 0;
            for (std::size_t i = 0; i < x_.size(); ++i) trial_[i] = x_[i] + step * direction_[i];
            box_.project(trial_);
            for (std::size_t i = 0; i < x_.size(); ++i) promised += gradient_[i] * (trial_[i] - x_[i]);
            if (promised == 0) return false;
            trial_value_ = f_.value_and_gradient(trial_, trial_gradient_);
            const bool finite = std::isfinite(trial_value_) && all_finite<T>(trial_gradient_);
            if (finite && promised < 0 && trial_value_ <= value_ + static_cast<T>(method_.decrease) * promised)
                return true;
            // The minimum of the parabola through both values with the slope at 0.
            const T parabola = -promised / (2 * (trial_value_ - value_ - promised));
            step *= finite && std::isfinite(parabola) ? std::clamp(parabola, T(0.1), T(0.5)) : T(0.1);
        }
        return false;
    }

    const lbfgs& method_;
    objective<T>& f_;
    std::vector<T>& x_;
    box<T> box_;
    progress<T> progress_;
    quasi_newton_pairs<T> pairs_;
    std::vector<T> gradient_, trial_, trial_gradient_, direction_;
    std::vector<unsigned char> free_;
    T value_ = 0, trial_value_ = 0, slope_ = 0, first_step_ = 1;
    bool endless_ = false;
};

template <class T>
outcome<T> run(const lbfgs& method, objective<T>& f, std::vector<T>& x, const minimization_options& options) {
    return lbfgs_run<T>(method, f, x, options).run();
}

} // namespace minimizers
} // namespace tapegraph
