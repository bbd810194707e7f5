#pragma once

#include "algebra.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

/// The path of a point, given at times that need not be evenly spaced, and what it looks like.

namespace routine {

template <class Number>
class path {
public:
    void add(const Number& time, const point<Number>& at) {
        if (!times_.empty()) {
            using std::hypot;
            length_ += hypot(Number(at.x - points_.back().x), Number(at.y - points_.back().y));
        }
        times_.push_back(time);
        points_.push_back(at);
    }
    std::size_t size() const { return times_.size(); }
    const Number& length() const { return length_; }

    /// The mean height over time, by trapezoids.
    Number mean_height() const {
        Number area = 0;
        for (std::size_t i = 1; i < size(); ++i)
            area += 0.5 * (times_[i] - times_[i - 1]) * (points_[i].y + points_[i - 1].y);
        return area / (times_.back() - times_.front());
    }
    /// The amplitude of the strongest of `count` harmonics in the horizontal motion about its mean.
    Number sway(int count) const {
        using std::sqrt;
        Number best = 0;
        for (int k = 1; k <= count; ++k) {
            const Number in_phase = moment(k, false), behind = moment(k, true);
            const Number amplitude = sqrt(in_phase * in_phase + behind * behind);
            if (amplitude > best) best = amplitude;
        }
        return best;
    }

private:
    /// 2 / duration times the integral of x cos or x sin of a harmonic, by trapezoids.
    Number moment(int harmonic, bool sine) const {
        using std::cos, std::sin;
        const Number duration = times_.back() - times_.front();
        const auto weighted = [&](std::size_t i) {
            const Number angle = 6.283185307179586 * harmonic * (times_[i] - times_.front()) / duration;
            return Number(points_[i].x * (sine ? Number(sin(angle)) : Number(cos(angle))));
        };
        Number sum = 0, before = weighted(0);
        for (std::size_t i = 1; i < size(); ++i) {
            const Number here = weighted(i);
            sum += 0.5 * (times_[i] - times_[i - 1]) * (before + here);
            before = here;
        }
        return 2 * sum / duration;
    }

    std::vector<Number> times_;
    std::vector<point<Number>> points_;
    Number length_ = 0;
};

} // namespace routine
