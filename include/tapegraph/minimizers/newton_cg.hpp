#pragma once

#include <tapegraph/core/number_text.hpp>
#include <tapegraph/minimizers/objective.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tapegraph {

/// Newton's method in a trust region, whose steps conjugate gradients find from products with the Hessian (Steihaug
/// 1983; Nocedal and Wright, algorithms 4.1 and 7.2). It needs no matrix, and leaves saddle points by directions of
/// negative curvature. Bounds: numbers on a bound that the gradient pushes outward stay, and steps are projected.
struct newton_cg {
    double initial_radius = 1; ///< of the trust region
    double max_radius = 1e10;
    int max_products = 0; ///< of the Hessian for one step; 0: ten more than twice the number of variables
};

namespace minimizers {

template <class T>
class newton_cg_run {
public:
    newton_cg_run(const newton_cg& method, objective<T>& f, std::vector<T>& x, const minimization_options& options)
        : f_(f),
          x_(x),
          box_(options, x.size()),
          progress_(options, f.evaluations),
          gradient_(x.size()),
          trial_(x.size()),
          trial_gradient_(x.size()),
          step_(x.size()),
          residual_(x.size()),
          direction_(x.size()),
          product_(x.size()),
          radius_(static_cast<T>(method.initial_radius)),
          most_(static_cast<T>(method.max_radius)),
          products_(method.max_products > 0 ? static_cast<std::size_t>(method.max_products) : 2 * x.size() + 10) {
        if (!(method.initial_radius > 0 && method.initial_radius <= method.max_radius))
            throw argument_error("newton_cg: 0 < initial_radius <= max_radius, given " +
                                 number_text(method.initial_radius) + " and " + number_text(method.max_radius));
        if (method.max_products < 0)
            throw argument_error("newton_cg: max_products is " + std::to_string(method.max_products));
    }
    outcome<T> run() {
        box_.project(x_);
        T value = f_.value_and_gradient(x_, gradient_);
        if (progress_.begin(value, gradient_, box_.projected(x_, gradient_, free_))) return progress_.result;
        T most_promised = 0;
        for (;;) {
            find_step();
            for (std::size_t i = 0; i < x_.size(); ++i) trial_[i] = x_[i] + step_[i];
            box_.project(trial_);
            bool moves = false, projected = false;
            for (std::size_t i = 0; i < x_.size(); ++i) {
                projected |= trial_[i] != x_[i] + step_[i];
                moves |= trial_[i] != x_[i];
                step_[i] = trial_[i] - x_[i];
            }
            const T length = norm<T>(step_);
            f_.hessian_product(x_, gradient_, step_, product_);
            const T promised = -(dot<T>(gradient_, step_) + dot<T>(step_, product_) / 2);
            most_promised = std::max(most_promised, promised);
            if (!moves) {
                progress_.fail(most_promised);
                break;
            }
            const T trial_value = f_.value_and_gradient(trial_, trial_gradient_);
            const bool finite = std::isfinite(trial_value) && all_finite<T>(trial_gradient_);
            const T gained = value - trial_value, noise = 10 * epsilon<T> * std::abs(value);
            // Where values differ by rounding alone, the gradient tells which point is better.
            const bool rounding = finite && std::abs(promised) <= noise && std::abs(gained) <= noise;
            T quality = finite && promised > 0 ? gained / promised : T(-1);
            if (rounding) quality = norm<T>(trial_gradient_) < norm<T>(gradient_) ? T(1) : T(-1);
            if (!(quality >= T(0.25)))
                radius_ = std::min(radius_, length) / 4;
            else if (quality > T(0.75) && (on_boundary_ || projected))
                radius_ = std::min(2 * radius_, most_);
            if (quality > T(1e-4)) {
                most_promised = 0;
                std::swap(x_, trial_);
                std::swap(gradient_, trial_gradient_);
                value = trial_value;
                if (progress_.after(trial_, x_, value, box_.projected(x_, gradient_, free_))) break;
            } else {
                if (rounding) {
                    progress_.fail(most_promised);
                    break;
                }
                if (progress_.limits()) break;
            }
        }
        return progress_.result;
    }

private:
    void mask(std::vector<T>& v) const {
        if (!box_.bounded()) return;
        for (std::size_t i = 0; i < v.size(); ++i)
            if (!free_[i]) v[i] = 0;
    }
    // Conjugate gradients on H s = -g: until the residual is small, the curvature is negative, or the step leaves the
    // region.
    void find_step() {
        std::fill(step_.begin(), step_.end(), T(0));
        residual_ = gradient_;
        mask(residual_);
        for (std::size_t i = 0; i < x_.size(); ++i) direction_[i] = -residual_[i];
        T square = dot<T>(residual_, residual_);
        const T first = std::sqrt(square), tolerance = std::min(T(0.5), std::sqrt(first)) * first;
        on_boundary_ = false;
        for (std::size_t tries = 0; tries < products_; ++tries) {
            f_.hessian_product(x_, gradient_, direction_, product_);
            mask(product_);
            const T curvature = dot<T>(direction_, product_);
            const T along = square / curvature;
            const T to_boundary = boundary();
            if (!(curvature > 0) || !(along < to_boundary)) {
                add_scaled<T>(step_, to_boundary, direction_);
                on_boundary_ = true;
                return;
            }
            add_scaled<T>(step_, along, direction_);
            add_scaled<T>(residual_, along, product_);
            const T next = dot<T>(residual_, residual_);
            if (std::sqrt(next) <= tolerance) return;
            const T ratio = next / square;
            for (std::size_t i = 0; i < x_.size(); ++i) direction_[i] = ratio * direction_[i] - residual_[i];
            square = next;
        }
    }
    // How far along the direction the step leaves the trust region: the positive root of |s + t d| = radius.
    T boundary() const {
        const T a = dot<T>(direction_, direction_), b = dot<T>(step_, direction_);
        const T c = dot<T>(step_, step_) - radius_ * radius_;
        const T root = std::sqrt(std::max(b * b - a * c, T(0)));
        return b > 0 ? -c / (b + root) : (root - b) / a;
    }

    objective<T>& f_;
    std::vector<T>& x_;
    box<T> box_;
    progress<T> progress_;
    std::vector<T> gradient_, trial_, trial_gradient_, step_, residual_, direction_, product_;
    std::vector<unsigned char> free_;
    T radius_, most_;
    std::size_t products_;
    bool on_boundary_ = false;
};

template <class T>
outcome<T> run(const newton_cg& method, objective<T>& f, std::vector<T>& x, const minimization_options& options) {
    return newton_cg_run<T>(method, f, x, options).run();
}

} // namespace minimizers
} // namespace tapegraph
