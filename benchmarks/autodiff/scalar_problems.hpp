#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

/// Functions of many numbers in plain loops, templates of the number's type: double, tg::real, and the numbers of
/// other libraries. Nothing in them knows of derivatives.

namespace problems {

template <class R>
using numbers = std::vector<R>;

/// sum over i of 100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2
struct rosenbrock {
    std::size_t count;
    template <class R>
    R operator()(const numbers<R>& x) const {
        R total = 0;
        for (std::size_t i = 0; i + 1 < count; ++i) {
            const R a = 1 - x[i], b = x[i + 1] - x[i] * x[i];
            total += a * a + 100 * (b * b);
        }
        return total;
    }
};

/// Prey and predators, x' = a x - b x y and y' = c x y - d y, by the classical method of Runge and Kutta; the numbers
/// are a, b, c, d and both populations at the start, the value is x^2 + y^2 at the end.
struct lotka_volterra {
    int steps;
    double step = 0.01;
    template <class R>
    static void slope(const numbers<R>& p, const R& x, const R& y, R& dx, R& dy) {
        dx = p[0] * x - p[1] * x * y;
        dy = p[2] * x * y - p[3] * y;
    }
    template <class R>
    R operator()(const numbers<R>& p) const {
        R x = p[4], y = p[5];
        for (int i = 0; i < steps; ++i) {
            R ax, ay, bx, by, cx, cy, dx, dy;
            slope<R>(p, x, y, ax, ay);
            slope<R>(p, x + (step / 2) * ax, y + (step / 2) * ay, bx, by);
            slope<R>(p, x + (step / 2) * bx, y + (step / 2) * by, cx, cy);
            slope<R>(p, x + step * cx, y + step * cy, dx, dy);
            x += (step / 6) * (ax + 2.0 * bx + 2.0 * cx + dx);
            y += (step / 6) * (ay + 2.0 * by + 2.0 * cy + dy);
        }
        return x * x + y * y;
    }
};

/// The sum of square roots, each by Newton's method until the step is small.
struct newton {
    std::size_t count;
    template <class R>
    R operator()(const numbers<R>& x) const {
        using std::fabs;
        R total = 0;
        for (std::size_t i = 0; i < count; ++i) {
            R y = x[i];
            for (;;) {
                const R next = 0.5 * (y + x[i] / y);
                const bool done = fabs(next - y) < 1e-12 * next;
                y = next;
                if (done) break;
            }
            total += y;
        }
        return total;
    }
};

/// The sum over i of log(1 + exp(sin(x) x)) + sqrt(1 + tanh(x)^2)
struct chain {
    std::size_t count;
    template <class R>
    R operator()(const numbers<R>& x) const {
        using std::exp, std::log, std::sin, std::sqrt, std::tanh;
        R total = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const R t = tanh(x[i]);
            total += log(1 + exp(sin(x[i]) * x[i])) + sqrt(1 + t * t);
        }
        return total;
    }
};

/// Two layers of `width` with tanh, of one input of that width; the numbers are both layers' weights, row by row, and
/// the input. The value is the sum of squares of the outputs.
struct layers {
    std::size_t width;
    template <class R>
    R operator()(const numbers<R>& x) const {
        using std::tanh;
        const R* const weights = x.data();
        numbers<R> h(x.end() - static_cast<std::ptrdiff_t>(width), x.end()), next(width);
        for (std::size_t layer = 0; layer < 2; ++layer) {
            for (std::size_t i = 0; i < width; ++i) {
                R sum = 0;
                for (std::size_t j = 0; j < width; ++j) sum += weights[(layer * width + i) * width + j] * h[j];
                next[i] = tanh(sum);
            }
            std::swap(h, next);
        }
        R total = 0;
        for (const R& y : h) total += y * y;
        return total;
    }
};

/// Two such layers of as many inputs; the numbers are both layers' weights and the inputs, row by row.
struct layers_of_batch {
    std::size_t width, batch;
    template <class R>
    R operator()(const numbers<R>& x) const {
        using std::tanh;
        const R *const weights = x.data(), *const inputs = weights + 2 * width * width;
        numbers<R> h(width), next(width);
        R total = 0;
        for (std::size_t b = 0; b < batch; ++b) {
            std::copy_n(inputs + b * width, width, h.begin());
            for (std::size_t layer = 0; layer < 2; ++layer) {
                for (std::size_t i = 0; i < width; ++i) {
                    R sum = 0;
                    for (std::size_t j = 0; j < width; ++j) sum += weights[(layer * width + i) * width + j] * h[j];
                    next[i] = tanh(sum);
                }
                std::swap(h, next);
            }
            for (const R& y : h) total += y * y;
        }
        return total;
    }
};

/// The log density of points under a normal distribution; the numbers are its mean and the logarithm of its deviation.
struct normal {
    const std::vector<double>* points;
    template <class R>
    R operator()(const numbers<R>& p) const {
        using std::exp;
        const R scale = exp(-p[1]);
        R squares = 0;
        for (const double point : *points) {
            const R z = (point - p[0]) * scale;
            squares += z * z;
        }
        return -0.5 * squares - static_cast<double>(points->size()) * (p[1] + 0.91893853320467274178); // log(2 pi) / 2
    }
};

/// The log likelihood of points under K Gaussians in D dimensions: by_hand::mixture without its prior (gamma and wishart
/// 0). The numbers are a [K], m [K, D], q [K, D], l [K, D, D].
struct mixture {
    std::size_t dims, parts;
    const std::vector<double>* points; ///< [N, D]
    template <class R>
    R operator()(const numbers<R>& p) const {
        using std::exp, std::log;
        const std::size_t D = dims, K = parts;
        const R *a = p.data(), *m = a + K, *q = m + K * D, *l = q + K * D;
        numbers<R> scale(K * D), offset(K), term(K), centred(D);
        for (std::size_t k = 0; k < K; ++k) {
            offset[k] = a[k];
            for (std::size_t i = 0; i < D; ++i) {
                scale[k * D + i] = exp(q[k * D + i]);
                offset[k] += q[k * D + i];
            }
        }
        R total = 0;
        for (std::size_t n = 0; n < points->size() / D; ++n) {
            std::size_t largest = 0;
            for (std::size_t k = 0; k < K; ++k) {
                R square = 0;
                for (std::size_t i = 0; i < D; ++i) {
                    centred[i] = (*points)[n * D + i] - m[k * D + i];
                    R sum = scale[k * D + i] * centred[i];
                    for (std::size_t j = 0; j < i; ++j) sum += l[(k * D + i) * D + j] * centred[j];
                    square += sum * sum;
                }
                term[k] = offset[k] - 0.5 * square;
                if (term[largest] < term[k]) largest = k;
            }
            const R top = term[largest];
            R sum = 0;
            for (std::size_t k = 0; k < K; ++k) sum += exp(term[k] - top);
            total += top + log(sum);
        }
        R weights = 0;
        for (std::size_t k = 0; k < K; ++k) weights += exp(a[k]);
        total -= static_cast<double>(points->size() / D) * log(weights);
        return total;
    }
};

/// tanh of a dense layer of x.size() results, whose weights are 0.01 ((7 i + 3 j) mod 11) - 0.05
struct dense {
    template <class R>
    numbers<R> operator()(const numbers<R>& x) const {
        using std::tanh;
        numbers<R> y(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
            R sum = 0;
            for (std::size_t j = 0; j < x.size(); ++j)
                sum += (static_cast<double>((i * 7 + j * 3) % 11) * 0.01 - 0.05) * x[j];
            y[i] = tanh(sum);
        }
        return y;
    }
};

} // namespace problems
