#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

/// Gradients written by hand in plain loops, as a careful programmer would: common terms are
/// computed once, constants take no work. Each function returns the value and writes the gradient
/// with respect to its parameters.

namespace by_hand {

using vector = std::vector<double>;

/// sum over i of 100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2
inline double rosenbrock(const vector& x, vector& g) {
    double total = 0;
    g[0] = 0;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        const double a = 1 - x[i], b = x[i + 1] - x[i] * x[i];
        total += a * a + 100 * (b * b);
        g[i] += -2 * a - 400 * b * x[i];
        g[i + 1] = 200 * b;
    }
    return total;
}

/// A mixture of K Gaussians in D dimensions, the objective of ADBench: up to constants, the log
/// likelihood of N points and a Wishart prior. With Q_k the lower triangular matrix of exp(q_k) on
/// the diagonal and l_k below,
///   sum_i logsumexp_k(a_k + sum q_k - |Q_k (x_i - m_k)|^2 / 2) - N logsumexp a
///     + sum_k (gamma^2 |Q_k|^2 / 2 - wishart sum q_k).
struct mixture {
    std::size_t points, dims, parts;
    double gamma = 1, wishart = 0;

    /// a [K], m [K, D], q [K, D], l [K, D, D], of which only the part below the diagonal is used, x
    /// [N, D].
    double operator()(const vector& a, const vector& m, const vector& q, const vector& l, const vector& x, vector& da,
                      vector& dm, vector& dq, vector& dl) const {
        const std::size_t D = dims, K = parts;
        for (vector* g : {&da, &dm, &dq, &dl}) std::fill(g->begin(), g->end(), 0.0);
        vector scale(K * D), offset(K), term(K), centred(K * D), turned(K * D);
        for (std::size_t k = 0; k < K; ++k) {
            offset[k] = a[k];
            for (std::size_t i = 0; i < D; ++i) scale[k * D + i] = std::exp(q[k * D + i]), offset[k] += q[k * D + i];
        }
        double total = 0;
        for (std::size_t n = 0; n < points; ++n) {
            for (std::size_t k = 0; k < K; ++k) {
                double* const c = &centred[k * D];
                for (std::size_t i = 0; i < D; ++i) c[i] = x[n * D + i] - m[k * D + i];
                double square = 0;
                for (std::size_t i = 0; i < D; ++i) {
                    double sum = scale[k * D + i] * c[i];
                    for (std::size_t j = 0; j < i; ++j) sum += l[(k * D + i) * D + j] * c[j];
                    turned[k * D + i] = sum;
                    square += sum * sum;
                }
                term[k] = offset[k] - 0.5 * square;
            }
            const double largest = *std::max_element(term.begin(), term.end());
            double sum = 0;
            for (double& t : term) sum += t = std::exp(t - largest);
            total += largest + std::log(sum);
            for (std::size_t k = 0; k < K; ++k) {
                const double w = term[k] / sum;
                const double *const c = &centred[k * D], *const z = &turned[k * D];
                da[k] += w;
                for (std::size_t i = 0; i < D; ++i) {
                    const double s = w * z[i];
                    dq[k * D + i] += w - s * c[i] * scale[k * D + i];
                    dm[k * D + i] += s * scale[k * D + i];
                    for (std::size_t j = 0; j < i; ++j) {
                        dl[(k * D + i) * D + j] -= s * c[j];
                        dm[k * D + j] += s * l[(k * D + i) * D + j];
                    }
                }
            }
        }
        const double largest = *std::max_element(a.begin(), a.end());
        double sum = 0;
        for (std::size_t k = 0; k < K; ++k) sum += term[k] = std::exp(a[k] - largest);
        total -= static_cast<double>(points) * (largest + std::log(sum));
        for (std::size_t k = 0; k < K; ++k) {
            da[k] -= static_cast<double>(points) * term[k] / sum;
            for (std::size_t i = 0; i < D; ++i) {
                const double s = scale[k * D + i];
                total += 0.5 * gamma * gamma * s * s - wishart * q[k * D + i];
                dq[k * D + i] += gamma * gamma * s * s - wishart;
                for (std::size_t j = 0; j < i; ++j) {
                    const double e = l[(k * D + i) * D + j];
                    total += 0.5 * gamma * gamma * e * e;
                    dl[(k * D + i) * D + j] += gamma * gamma * e;
                }
            }
        }
        return total;
    }
};

/// mean over the batch of (tanh(x W + b) V + c - y)^2; x [B, I], W [I, H], V [H, O].
struct perceptron {
    std::size_t batch, inputs, hidden, outputs;

    double operator()(const vector& w, const vector& b, const vector& v, const vector& c, const vector& x,
                      const vector& y, vector& dw, vector& db, vector& dv, vector& dc) const {
        for (vector* g : {&dw, &db, &dv, &dc}) std::fill(g->begin(), g->end(), 0.0);
        vector h(hidden), e(outputs), dh(hidden);
        const double each = 1.0 / static_cast<double>(batch * outputs);
        double total = 0;
        for (std::size_t n = 0; n < batch; ++n) {
            h = b;
            for (std::size_t i = 0; i < inputs; ++i)
                for (std::size_t j = 0; j < hidden; ++j) h[j] += x[n * inputs + i] * w[i * hidden + j];
            e = c;
            for (std::size_t j = 0; j < hidden; ++j) {
                h[j] = std::tanh(h[j]);
                for (std::size_t o = 0; o < outputs; ++o) e[o] += h[j] * v[j * outputs + o];
            }
            for (std::size_t o = 0; o < outputs; ++o) {
                const double d = e[o] - y[n * outputs + o];
                total += each * d * d;
                e[o] = 2 * each * d;
                dc[o] += e[o];
            }
            for (std::size_t j = 0; j < hidden; ++j) {
                double sum = 0;
                for (std::size_t o = 0; o < outputs; ++o) {
                    sum += e[o] * v[j * outputs + o];
                    dv[j * outputs + o] += h[j] * e[o];
                }
                dh[j] = sum * (1 - h[j] * h[j]);
                db[j] += dh[j];
            }
            for (std::size_t i = 0; i < inputs; ++i)
                for (std::size_t j = 0; j < hidden; ++j) dw[i * hidden + j] += x[n * inputs + i] * dh[j];
        }
        return total;
    }
};

} // namespace by_hand
