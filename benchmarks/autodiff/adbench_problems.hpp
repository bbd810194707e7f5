#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

/// The problems of ADBench (Srajer, Kukelova, Fitzgibbon: A benchmark of selected algorithmic differentiation tools on
/// some problems in computer vision and machine learning, 2018) in plain loops, templates of the number's type; hand
/// tracking is in adbench_hand.hpp.

namespace adbench {

template <class R>
using numbers = std::vector<R>;

/// log sum over i of exp(x_i), i < count.
template <class R>
R log_sum_exp(const R* x, std::size_t count) {
    using std::exp, std::log;
    const R largest = *std::max_element(x, x + count);
    R sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += exp(x[i] - largest);
    return log(sum) + largest;
}

/// The log likelihood of points under a mixture of K Gaussians in D dimensions with a Wishart prior. The numbers are
/// weights a [K], means m [K, D] and, for each part, q [D] and the triangle below the diagonal, column by column
/// [D (D - 1) / 2]. Q_k is the lower triangular matrix of exp(q_k) on the diagonal and that triangle below:
///   -N D / 2 log 2 pi + sum_i logsumexp_k(a_k + sum q_k - |Q_k (x_i - m_k)|^2 / 2) - N logsumexp a
///     + sum_k (gamma^2 |Q_k|^2 / 2 - freedom sum q_k) - K C, where with n = D + freedom + 1
///   C = n D (log gamma - log 2 / 2) - log Gamma_D(n / 2).
struct mixture {
    std::size_t dims, parts;
    double gamma;
    int freedom;                ///< of the Wishart distribution, above D + 1
    std::vector<double> points; ///< [N, D]

    std::size_t count() const { return points.size() / dims; }
    std::size_t parameters() const { return parts * (1 + dims + dims * (dims + 1) / 2); }

    template <class R>
    R operator()(const numbers<R>& p) const {
        using std::exp;
        const std::size_t D = dims, K = parts, of_part = D * (D + 1) / 2;
        const R *const a = p.data(), *const m = a + K, *const factors = m + K * D;
        numbers<R> scale(K * D), offset(K), term(K), centred(D), turned(D);
        R prior = 0;
        for (std::size_t k = 0; k < K; ++k) {
            const R* const q = factors + k * of_part;
            R sum = 0, squares = 0;
            for (std::size_t i = 0; i < D; ++i) {
                sum += q[i];
                scale[k * D + i] = exp(q[i]);
                squares += scale[k * D + i] * scale[k * D + i];
            }
            for (std::size_t i = D; i < of_part; ++i) squares += q[i] * q[i];
            offset[k] = a[k] + sum;
            prior += 0.5 * gamma * gamma * squares - freedom * sum;
        }
        R total = 0;
        for (std::size_t n = 0; n < count(); ++n) {
            for (std::size_t k = 0; k < K; ++k) {
                const R* below = factors + k * of_part + D;
                for (std::size_t i = 0; i < D; ++i) {
                    centred[i] = points[n * D + i] - m[k * D + i];
                    turned[i] = scale[k * D + i] * centred[i];
                }
                for (std::size_t i = 0; i < D; ++i)
                    for (std::size_t j = i + 1; j < D; ++j) turned[j] += *below++ * centred[i];
                R square = 0;
                for (std::size_t i = 0; i < D; ++i) square += turned[i] * turned[i];
                term[k] = offset[k] - 0.5 * square;
            }
            total += log_sum_exp(term.data(), K);
        }
        return total - static_cast<double>(count()) * log_sum_exp(a, K) + prior + constant();
    }

private:
    double constant() const {
        const double D = static_cast<double>(dims), n = D + freedom + 1, pi = std::numbers::pi;
        double log_gamma = 0.25 * D * (D - 1) * std::log(pi); // of D dimensions
        for (std::size_t i = 0; i < dims; ++i) log_gamma += std::lgamma(0.5 * (n - static_cast<double>(i)));
        const double c = n * D * (std::log(gamma) - 0.5 * std::log(2.0)) - log_gamma;
        return -0.5 * static_cast<double>(count()) * D * std::log(2 * pi) - static_cast<double>(parts) * c;
    }
};

inline constexpr std::size_t of_camera = 11, of_observation = of_camera + 3 + 1;

/// What a camera sees of a point: x = R (X - C) by Rodrigues's rotation, projected, distorted, scaled. The numbers are
/// the camera's (rotation [3], centre C [3], focal length, principal point [2], distortion [2]), the point X and the
/// weight; the results are the weight times the differences from the feature.
template <class R>
std::array<R, 2> reprojection_error(const R* p, const double* feature) {
    using std::cos, std::sin, std::sqrt;
    const R *const rotation = p, *const centre = p + 3, *const principal = p + 7, *const distortion = p + 9,
                   *const point = p + of_camera;
    const R &focal = p[6], &weight = p[of_camera + 3];
    const R from[3]{point[0] - centre[0], point[1] - centre[1], point[2] - centre[2]};
    const auto cross = [](const R* a, const R* b, std::size_t i) {
        const std::size_t j = (i + 1) % 3, k = (i + 2) % 3;
        return R(a[j] * b[k] - a[k] * b[j]);
    };
    R seen[3];
    const R square = rotation[0] * rotation[0] + rotation[1] * rotation[1] + rotation[2] * rotation[2];
    if (square != 0) {
        const R angle = sqrt(square), c = cos(angle), s = sin(angle), inverse = 1 / angle;
        const R axis[3]{rotation[0] * inverse, rotation[1] * inverse, rotation[2] * inverse};
        const R along = (axis[0] * from[0] + axis[1] * from[1] + axis[2] * from[2]) * (1 - c);
        for (std::size_t i = 0; i < 3; ++i) seen[i] = from[i] * c + cross(axis, from, i) * s + axis[i] * along;
    } else {
        for (std::size_t i = 0; i < 3; ++i) seen[i] = from[i] + cross(rotation, from, i);
    }
    const R x = seen[0] / seen[2], y = seen[1] / seen[2], radius = x * x + y * y;
    const R stretch = 1 + distortion[0] * radius + distortion[1] * radius * radius;
    return {weight * (x * stretch * focal + principal[0] - feature[0]),
            weight * (y * stretch * focal + principal[1] - feature[1])};
}

/// Bundle adjustment: observations of points by cameras.
struct bundle {
    struct observation {
        std::size_t camera, point;
    };
    std::vector<double> cameras, points, weights, features; ///< [cameras, 11], [points, 3], [o], [o, 2]
    std::vector<observation> observations;

    /// The numbers that the o-th observation's results depend on.
    template <class R>
    void gather(std::size_t o, R* to) const {
        const double* const camera = &cameras[observations[o].camera * of_camera];
        const double* const point = &points[observations[o].point * 3];
        for (std::size_t i = 0; i < of_camera; ++i) to[i] = camera[i];
        for (std::size_t i = 0; i < 3; ++i) to[of_camera + i] = point[i];
        to[of_camera + 3] = weights[o];
    }
};

/// The LSTM of by_hand::lstm (lstm_by_hand.hpp has its formulas); the numbers are w, v [layers, 4, width] and e [3, width].
struct lstm {
    std::size_t layers, steps, width;
    std::vector<double> state, sequence; ///< [layers, 2, width], [steps + 1, width]

    std::size_t parameters() const { return (8 * layers + 3) * width; }

    template <class R>
    R operator()(const numbers<R>& p) const {
        using std::exp, std::log, std::tanh;
        const std::size_t b = width;
        const R *const w = p.data(), *const v = w + layers * 4 * b, *const e = v + layers * 4 * b;
        const auto sigmoid = [](const R& x) { return R(1 / (1 + exp(-x))); };
        numbers<R> h(layers * b), c(layers * b), y(b);
        for (std::size_t l = 0; l < layers; ++l)
            for (std::size_t i = 0; i < b; ++i) {
                h[l * b + i] = state[l * 2 * b + i];
                c[l * b + i] = state[(l * 2 + 1) * b + i];
            }
        R total = 0;
        for (std::size_t t = 0; t < steps; ++t) {
            R sum = 2;
            for (std::size_t i = 0; i < b; ++i) {
                R x = sequence[t * b + i] * e[i];
                for (std::size_t l = 0; l < layers; ++l) {
                    const auto gate = [&](std::size_t g, const R& s) {
                        return R(s * w[(l * 4 + g) * b + i] + v[(l * 4 + g) * b + i]);
                    };
                    R &hidden = h[l * b + i], &cell = c[l * b + i];
                    cell = cell * sigmoid(gate(0, x)) + sigmoid(gate(1, hidden)) * tanh(gate(3, hidden));
                    x = hidden = sigmoid(gate(2, x)) * tanh(cell);
                }
                y[i] = x * e[b + i] + e[2 * b + i];
                sum += exp(y[i]);
            }
            const R log_sum = log(sum);
            for (std::size_t i = 0; i < b; ++i) total += sequence[(t + 1) * b + i] * (y[i] - log_sum);
        }
        return total / -static_cast<double>(steps * b);
    }
};

} // namespace adbench
