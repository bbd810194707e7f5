#pragma once

#include "by_hand.hpp"
#include "scalar_problems.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

/// Values and gradients of scalar_problems.hpp, written by hand: each takes x, writes g, and returns the value.

namespace by_hand {

inline double gradient(const problems::rosenbrock&, const vector& x, vector& g) { return rosenbrock(x, g); }

inline double gradient(const problems::lotka_volterra& f, const vector& p, vector& g) {
    // All states at which a slope is taken, for the way back.
    static thread_local vector xs, ys;
    const auto steps = static_cast<std::size_t>(f.steps);
    xs.resize(4 * steps), ys.resize(4 * steps);
    const double h = f.step, a = p[0], b = p[1], c = p[2], d = p[3];
    double x = p[4], y = p[5];
    for (std::size_t i = 0; i < steps; ++i) {
        double dx = 0, dy = 0, sum_x = 0, sum_y = 0;
        constexpr double ahead[]{0, 0.5, 0.5, 1}, weight[]{1, 2, 2, 1};
        for (std::size_t s = 0; s < 4; ++s) {
            const double u = xs[4 * i + s] = x + ahead[s] * h * dx, v = ys[4 * i + s] = y + ahead[s] * h * dy;
            const double uv = u * v;
            dx = a * u - b * uv, dy = c * uv - d * v;
            sum_x += weight[s] * dx, sum_y += weight[s] * dy;
        }
        x += h / 6 * sum_x, y += h / 6 * sum_y;
    }
    double ga = 0, gb = 0, gc = 0, gd = 0, gx = 2 * x, gy = 2 * y;
    for (std::size_t i = steps; i-- > 0;) {
        constexpr double to_next[]{0.5, 0.5, 1, 0}, weight[]{1, 2, 2, 1};
        double stage_x = 0, stage_y = 0, to_x = gx, to_y = gy; // adjoints of the state at which the next slope is taken
        for (std::size_t s = 4; s-- > 0;) {
            const double gdx = h / 6 * weight[s] * gx + to_next[s] * h * stage_x;
            const double gdy = h / 6 * weight[s] * gy + to_next[s] * h * stage_y;
            const double u = xs[4 * i + s], v = ys[4 * i + s], uv = u * v;
            ga += gdx * u, gb -= gdx * uv, gc += gdy * uv, gd -= gdy * v;
            const double cross = c * gdy - b * gdx;
            stage_x = a * gdx + cross * v, stage_y = cross * u - d * gdy;
            to_x += stage_x, to_y += stage_y;
        }
        gx = to_x, gy = to_y;
    }
    g = {ga, gb, gc, gd, gx, gy};
    return x * x + y * y;
}

inline double gradient(const problems::newton& f, const vector& x, vector& g) {
    double total = 0;
    for (std::size_t i = 0; i < f.count; ++i) {
        double y = x[i], slope = 1; // forward: one number each
        for (;;) {
            const double q = x[i] / y, next = 0.5 * (y + q);
            slope = 0.5 * (slope + (1 - q * slope) / y);
            const bool done = std::fabs(next - y) < 1e-12 * next;
            y = next;
            if (done) break;
        }
        total += y;
        g[i] = slope;
    }
    return total;
}

inline double gradient(const problems::chain& f, const vector& x, vector& g) {
    double total = 0;
    for (std::size_t i = 0; i < f.count; ++i) {
        const double t = std::tanh(x[i]), s = std::sin(x[i]), c = std::cos(x[i]);
        const double e = std::exp(s * x[i]), r = std::sqrt(1 + t * t);
        total += std::log(1 + e) + r;
        g[i] = e / (1 + e) * (c * x[i] + s) + t / r * (1 - t * t);
    }
    return total;
}

inline double gradient(const problems::layers& f, const vector& x, vector& g) {
    const std::size_t n = f.width;
    static thread_local vector in[3], out;
    in[0].assign(x.end() - static_cast<std::ptrdiff_t>(n), x.end());
    for (std::size_t layer = 0; layer < 2; ++layer) {
        in[layer + 1].resize(n);
        for (std::size_t i = 0; i < n; ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < n; ++j) sum += x[(layer * n + i) * n + j] * in[layer][j];
            in[layer + 1][i] = std::tanh(sum);
        }
    }
    double total = 0;
    out.resize(n);
    for (std::size_t i = 0; i < n; ++i) total += in[2][i] * in[2][i], out[i] = 2 * in[2][i];
    for (std::size_t layer = 2; layer-- > 0;) {
        vector& before = in[2 - layer == 1 ? 2 : 1]; // free: what follows no longer reads it
        const vector& after = in[layer + 1];
        for (std::size_t i = 0; i < n; ++i) out[i] *= 1 - after[i] * after[i];
        before.assign(n, 0.0);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j) {
                g[(layer * n + i) * n + j] = out[i] * in[layer][j];
                before[j] += out[i] * x[(layer * n + i) * n + j];
            }
        std::swap(out, before);
    }
    std::copy(out.begin(), out.end(), g.end() - static_cast<std::ptrdiff_t>(n));
    return total;
}

inline double gradient(const problems::layers_of_batch& f, const vector& x, vector& g) {
    const std::size_t n = f.width, count = 2 * n * n;
    static thread_local vector one, slopes;
    one.assign(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(count + n));
    slopes.resize(count + n);
    std::fill(g.begin(), g.begin() + static_cast<std::ptrdiff_t>(count), 0.0);
    double total = 0;
    for (std::size_t b = 0; b < f.batch; ++b) {
        std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(count + b * n), n,
                    one.begin() + static_cast<std::ptrdiff_t>(count));
        total += gradient(problems::layers{n}, one, slopes);
        for (std::size_t i = 0; i < count; ++i) g[i] += slopes[i];
        std::copy_n(slopes.begin() + static_cast<std::ptrdiff_t>(count), n,
                    g.begin() + static_cast<std::ptrdiff_t>(count + b * n));
    }
    return total;
}

inline double gradient(const problems::normal& f, const vector& p, vector& g) {
    const double scale = std::exp(-p[1]), n = static_cast<double>(f.points->size());
    double sum = 0, squares = 0;
    for (const double point : *f.points) {
        const double z = (point - p[0]) * scale;
        sum += z, squares += z * z;
    }
    g[0] = sum * scale, g[1] = squares - n;
    return -0.5 * squares - n * (p[1] + 0.91893853320467274178);
}

inline double gradient(const problems::mixture& f, const vector& p, vector& g) {
    const std::size_t K = f.parts, D = f.dims, counts[]{K, K * D, K * D, K * D * D};
    static thread_local vector part[4], slope[4];
    auto from = p.begin();
    for (std::size_t i = 0; i < 4; ++i) {
        part[i].assign(from, from + static_cast<std::ptrdiff_t>(counts[i]));
        slope[i].resize(counts[i]);
        from += static_cast<std::ptrdiff_t>(counts[i]);
    }
    const mixture hand{f.points->size() / D, D, K, 0, 0};
    const double value = hand(part[0], part[1], part[2], part[3], *f.points, slope[0], slope[1], slope[2], slope[3]);
    auto to = g.begin();
    for (const vector& s : slope) to = std::copy(s.begin(), s.end(), to);
    return value;
}

} // namespace by_hand
