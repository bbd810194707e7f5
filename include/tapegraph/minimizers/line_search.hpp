#pragma once

#include <tapegraph/minimizers/vectors.hpp>

#include <algorithm>
#include <cmath>

/// A step along a direction that fulfils the strong Wolfe conditions: Nocedal and Wright (2006), "Numerical
/// Optimization", algorithms 3.5 and 3.6.

namespace tapegraph::minimizers {

/// Value and slope at a step along the direction.
template <class T>
struct line_point {
    T step = 0, value = 0, slope = 0;
    bool finite() const { return std::isfinite(value) && std::isfinite(slope); }
};

/// Where the cubic through two values and slopes has its minimum (equation 3.59). NaN if it has none.
template <class T>
T cubic_minimum(const line_point<T>& a, const line_point<T>& b) {
    const T d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step);
    const T d2 = std::copysign(std::sqrt(d1 * d1 - a.slope * b.slope), b.step - a.step);
    return b.step - (b.step - a.step) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2));
}

/// `At`: line_point<T>(T step), which evaluates the function there.
template <class T, class At>
class wolfe_search {
public:
    wolfe_search(const At& at, const line_point<T>& start, T decrease, T curvature)
        : at_(at), start_(start), decrease_(decrease), curvature_(curvature) {}

    /// The accepted point, at which the function has been evaluated last; step 0 if there is none. `first` is tried
    /// first, and no step is longer than `most`. Points at which the function is not finite are too far.
    line_point<T> run(T first, T most) {
        line_point<T> before = start_;
        T step = std::min(first, most);
        bool wall = false; // `most` is where the function was not finite
        for (int tries = 0; tries < 40; ++tries) {
            const line_point<T> now = evaluate(step);
            if (!now.finite()) {
                wall = true, most = step;
                step = before.step + (step - before.step) / 10;
                if (!(step > before.step) || step >= most) break;
                continue;
            }
            if (accepted(now)) return now;
            if (!low(now) || (before.step > 0 && now.value >= before.value)) return zoom(before, now);
            if (now.slope >= 0) return zoom(now, before);
            if (step >= most) return now;
            const T width = now.step - before.step;
            T next = cubic_minimum(before, now);
            if (!(next >= now.step + width / 10)) next = now.step + 4 * width;
            next = std::min(next, now.step + 9 * width);
            next = wall ? std::min(next, (now.step + most) / 2) : std::min(next, most);
            before = now;
            if (!(next > step)) break;
            step = next;
        }
        endless = !wall && before.step > first * T(1e6);
        return settle(before);
    }

    bool endless = false; ///< the value fell as far as it was followed

private:
    line_point<T> evaluate(T step) {
        last_ = step;
        return at_(step);
    }
    bool low(const line_point<T>& p) const { return p.value <= start_.value + decrease_ * p.step * start_.slope; }
    // The second test is the approximate one of Hager and Zhang (2005), equation 4.1, for values whose difference is
    // rounding.
    bool accepted(const line_point<T>& p) const {
        if (low(p) && std::abs(p.slope) <= -curvature_ * start_.slope) return true;
        return p.value <= start_.value + 10 * epsilon<T> * std::abs(start_.value) &&
               p.slope >= curvature_ * start_.slope && p.slope <= (2 * decrease_ - 1) * start_.slope;
    }
    /// Between `low_end`, the lowest point so far that has decreased enough, and `other`.
    line_point<T> zoom(line_point<T> low_end, line_point<T> other) {
        T width_before = 2 * std::abs(other.step - low_end.step);
        for (int tries = 0; tries < 40; ++tries) {
            const T from = std::min(low_end.step, other.step), width = std::abs(other.step - low_end.step);
            if (!(width > 2 * epsilon<T> * std::max(low_end.step, other.step))) break;
            T step = other.finite() ? cubic_minimum(low_end, other) : from;
            // In the inner four fifths; bisection if the interval has not become much smaller.
            if (!std::isfinite(step) || width > T(0.66) * width_before) step = from + width / 2;
            step = std::clamp(step, from + width / 10, from + width - width / 10);
            width_before = width;
            const line_point<T> now = evaluate(step);
            if (!now.finite()) {
                other = now;
            } else {
                if (accepted(now)) return now;
                if (!low(now) || now.value >= low_end.value) {
                    other = now;
                } else {
                    if (now.slope * (other.step - low_end.step) >= 0) other = low_end;
                    low_end = now;
                }
            }
        }
        return settle(low_end);
    }
    /// The best point there is, which need not be the last one.
    line_point<T> settle(const line_point<T>& best) {
        if (best.step > 0 && best.step != last_) return evaluate(best.step);
        return best;
    }

    const At& at_;
    line_point<T> start_;
    T decrease_, curvature_, last_ = 0;
};

} // namespace tapegraph::minimizers
