#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

/// A part of a program of plain C++ that knows nothing of derivatives: points, dense matrices, tables, and roots.

namespace routine {

template <class Number>
struct point {
    Number x{}, y{};

    point& operator+=(const point& b) {
        x += b.x;
        y += b.y;
        return *this;
    }
    friend point operator+(point a, const point& b) { return a += b; }
    friend point operator-(const point& a, const point& b) { return {a.x - b.x, a.y - b.y}; }
    friend point operator*(const Number& s, const point& a) { return {s * a.x, s * a.y}; }
};
template <class Number>
Number dot(const point<Number>& a, const point<Number>& b) {
    return a.x * b.x + a.y * b.y;
}
template <class Number>
point<Number> perpendicular(const point<Number>& a) {
    return {-a.y, a.x};
}
template <class Number>
Number length(const point<Number>& a) {
    using std::hypot;
    return hypot(a.x, a.y);
}

/// A square matrix, and the solution of linear systems by elimination with row pivots.
template <class Number>
class matrix {
public:
    explicit matrix(std::size_t size) : size_(size), elements_(size * size, Number(0)) {}

    std::size_t size() const { return size_; }
    Number& operator()(std::size_t i, std::size_t k) { return elements_[i * size_ + k]; }
    const Number& operator()(std::size_t i, std::size_t k) const { return elements_[i * size_ + k]; }

    std::vector<Number> operator*(const std::vector<Number>& v) const {
        std::vector<Number> result(size_, Number(0));
        for (std::size_t i = 0; i < size_; ++i)
            for (std::size_t k = 0; k < size_; ++k) result[i] += (*this)(i, k) * v[k];
        return result;
    }

    std::vector<Number> solve(std::vector<Number> b) const {
        using std::abs, std::swap;
        matrix a = *this;
        for (std::size_t column = 0; column < size_; ++column) {
            std::size_t pivot = column;
            for (std::size_t i = column + 1; i < size_; ++i)
                if (abs(a(i, column)) > abs(a(pivot, column))) pivot = i;
            if (a(pivot, column) == 0) throw std::runtime_error("singular");
            if (pivot != column) {
                for (std::size_t k = 0; k < size_; ++k) swap(a(pivot, k), a(column, k));
                swap(b[pivot], b[column]);
            }
            for (std::size_t i = column + 1; i < size_; ++i) {
                const Number factor = a(i, column) / a(column, column);
                if (factor == 0) continue;
                for (std::size_t k = column + 1; k < size_; ++k) a(i, k) -= factor * a(column, k);
                b[i] -= factor * b[column];
            }
        }
        for (std::size_t i = size_; i-- > 0;) {
            for (std::size_t k = i + 1; k < size_; ++k) b[i] -= a(i, k) * b[k];
            b[i] /= a(i, i);
        }
        return b;
    }

private:
    std::size_t size_;
    std::vector<Number> elements_;
};

/// A smooth curve through points with growing x: cubic, with slopes that do not overshoot (Fritsch and Carlson).
template <class Number>
class curve {
public:
    curve(std::vector<double> x, std::vector<Number> y)
        : x_(std::move(x)), y_(std::move(y)), slope_(y_.size(), Number(0)) {
        const std::size_t last = x_.size() - 1;
        std::vector<Number> secant(last);
        for (std::size_t i = 0; i < last; ++i) secant[i] = (y_[i + 1] - y_[i]) / (x_[i + 1] - x_[i]);
        slope_[0] = secant[0];
        slope_[last] = secant[last - 1];
        for (std::size_t i = 1; i < last; ++i)
            if (secant[i - 1] * secant[i] > 0) slope_[i] = 2 / (1 / secant[i - 1] + 1 / secant[i]); // harmonic mean
    }

    Number operator()(const Number& at) const {
        if (at <= x_.front()) return y_.front() + slope_.front() * (at - x_.front());
        if (at >= x_.back()) return y_.back() + slope_.back() * (at - x_.back());
        const std::size_t i = find(at, 0, x_.size() - 1);
        const double width = x_[i + 1] - x_[i];
        const Number t = (at - x_[i]) / width, u = 1 - t;
        return y_[i] * u * u * (1 + 2 * t) + y_[i + 1] * t * t * (3 - 2 * t) +
               width * t * u * (slope_[i] * u - slope_[i + 1] * t);
    }

private:
    // The interval by bisection, recursively.
    std::size_t find(const Number& at, std::size_t low, std::size_t high) const {
        if (high - low == 1) return low;
        const std::size_t middle = (low + high) / 2;
        return at < x_[middle] ? find(at, low, middle) : find(at, middle, high);
    }

    std::vector<double> x_;
    std::vector<Number> y_, slope_;
};

/// A root of f between two numbers at which it has different signs: secants, bisection where they do not help, and a last
/// step of Newton's kind, by which the root moves as f does.
template <class Number, class F>
Number root(const F& f, Number low, Number high) {
    using std::abs, std::swap;
    Number at_low = f(low), at_high = f(high);
    if (at_low == 0) return low;
    if (at_low * at_high > 0) throw std::runtime_error("no change of sign");
    for (int i = 0; i < 200; ++i) {
        if (abs(at_low) < abs(at_high)) {
            swap(low, high);
            swap(at_low, at_high);
        }
        Number next = high - at_high * (high - low) / (at_high - at_low);
        if (i % 3 == 2 || next == high || next == low) next = 0.5 * (low + high);
        const Number value = f(next);
        if (value == 0) return next;
        if (value * at_high < 0) {
            low = high;
            at_low = at_high;
        }
        high = next;
        at_high = value;
        if (abs(high - low) < 1e-13 * (1 + abs(high))) break;
    }
    const double step = 1e-5;
    const Number slope = (f(Number(high + step)) - f(Number(high - step))) / (2 * step);
    return high - f(high) / slope;
}

} // namespace routine
