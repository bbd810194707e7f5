#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/minimizers/options.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace tapegraph::minimizers {

/// lower <= x <= upper. Without numbers if nothing is bounded.
template <class T>
class box {
public:
    box(const minimization_options& options, std::size_t size) {
        if (options.lower.empty() && options.upper.empty()) return;
        constexpr double infinity = std::numeric_limits<double>::infinity();
        fill(lower_, options.lower, size, -infinity, "lower");
        fill(upper_, options.upper, size, infinity, "upper");
        for (std::size_t i = 0; i < size; ++i)
            if (!(lower_[i] <= upper_[i]))
                throw argument_error("minimize: number " + std::to_string(i) + " has the lower bound " +
                                     number_text(lower_[i]) + " and the upper bound " + number_text(upper_[i]));
    }
    bool bounded() const { return !lower_.empty(); }

    void project(std::span<T> x) const {
        for (std::size_t i = 0; i < lower_.size(); ++i) x[i] = std::clamp(x[i], lower_[i], upper_[i]);
    }
    /// Whether x[i] stands on a bound beyond which a step of this sign would lead.
    bool blocks(std::size_t i, T x, T step) const {
        return bounded() && ((step < 0 && x <= lower_[i]) || (step > 0 && x >= upper_[i]));
    }
    /// free[i] is 0 where steepest descent would leave the bounds. Returns the largest component of the gradient by the
    /// others.
    T projected(std::span<const T> x, std::span<const T> gradient, std::vector<unsigned char>& free) const {
        T most = 0;
        free.resize(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
            free[i] = !blocks(i, x[i], -gradient[i]) && !(bounded() && lower_[i] == upper_[i]);
            const T magnitude = free[i] ? std::abs(gradient[i]) : T(0);
            if (!(magnitude <= most)) most = magnitude;
        }
        return most;
    }
    /// How far x + step * direction stays within the bounds: the smallest step at which a number reaches one.
    T first_bound(std::span<const T> x, std::span<const T> direction) const {
        T step = std::numeric_limits<T>::infinity();
        for (std::size_t i = 0; i < lower_.size(); ++i) {
            if (direction[i] < 0) step = std::min(step, (lower_[i] - x[i]) / direction[i]);
            if (direction[i] > 0) step = std::min(step, (upper_[i] - x[i]) / direction[i]);
        }
        return step;
    }

private:
    static void fill(std::vector<T>& bounds, const std::vector<double>& given, std::size_t size, double none,
                     const char* which) {
        if (given.size() > 1 && given.size() != size)
            throw shape_error("minimize: " + std::to_string(given.size()) + " " + which + " bounds for " +
                              std::to_string(size) + " numbers");
        bounds.resize(size);
        for (std::size_t i = 0; i < size; ++i) {
            const double bound = given.empty() ? none : given[given.size() == 1 ? 0 : i];
            if (std::isnan(bound))
                throw argument_error("minimize: the " + std::string(which) + " bound of number " + std::to_string(i) +
                                     " is NaN");
            bounds[i] = static_cast<T>(bound);
        }
    }

    std::vector<T> lower_, upper_;
};

} // namespace tapegraph::minimizers
