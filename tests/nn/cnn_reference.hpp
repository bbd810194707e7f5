#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

/// The CNN of the batch-size study in plain double-precision loops: forward and backward derived by hand, nothing of the
/// library's. Layers: conv-relu-norm-pool, conv-relu-norm-pool-dropout, conv-relu-pool, flatten-dropout-dense, sigmoid
/// cross-entropy. Images are [batch, height, width, channels], kernels [height, width, in, out].

namespace nn_test {

using values = std::vector<double>;

struct volume {
    int n = 0, h = 0, w = 0, c = 0;
    values v{};

    volume() = default;
    volume(int n_, int h_, int w_, int c_)
        : n(n_), h(h_), w(w_), c(c_), v(static_cast<std::size_t>(n_) * h_ * w_ * c_, 0.0) {}
    double& at(int b, int y, int x, int k) { return v[((static_cast<std::size_t>(b) * h + y) * w + x) * c + k]; }
    double at(int b, int y, int x, int k) const { return v[((static_cast<std::size_t>(b) * h + y) * w + x) * c + k]; }
};

class cnn_reference {
public:
    std::map<std::string, values> variables;           // by path; moving averages too
    std::map<std::string, values> gradients;           // filled by step
    std::function<bool(int ordinal, std::size_t)> kept; // dropout's mask
    double rate = 0.25;

    /// Loss of the batch; fills `gradients` and updates the moving averages.
    double step(const volume& image, const values& labels) {
        // Forward.
        const volume a1 = conv(image, "conv1", 3);
        norm_state s1, s2;
        const volume n1 = norm(relu(a1), "norm1", s1);
        std::vector<std::size_t> at1, at2, at3;
        const volume p1 = pool(n1, at1);
        const volume a2 = conv(p1, "conv2", 5);
        const volume n2 = norm(relu(a2), "norm2", s2);
        const volume d2 = drop(pool(n2, at2), 0);
        const volume a3 = conv(d2, "conv3", 3);
        const volume d3 = drop(pool(relu(a3), at3), 1);

        const values &w = variables.at("score/kernel"), &bias = variables.at("score/bias");
        const std::size_t features = w.size();
        values score(static_cast<std::size_t>(image.n), bias[0]), dscore = score;
        double loss = 0;
        for (std::size_t b = 0; b < score.size(); ++b) {
            for (std::size_t i = 0; i < features; ++i) score[b] += d3.v[b * features + i] * w[i];
            const double probability = 1 / (1 + std::exp(-score[b]));
            loss -= labels[b] * std::log(probability) + (1 - labels[b]) * std::log(1 - probability);
            dscore[b] = (probability - labels[b]) / image.n; // d(-z log p - (1 - z) log(1 - p))/dx = p - z
        }

        // Backward.
        values dw(features, 0.0);
        double dbias = 0;
        volume g3 = d3;
        for (std::size_t b = 0; b < score.size(); ++b) {
            dbias += dscore[b];
            for (std::size_t i = 0; i < features; ++i) {
                dw[i] += d3.v[b * features + i] * dscore[b];
                g3.v[b * features + i] = w[i] * dscore[b];
            }
        }
        gradients["score/kernel"] = dw;
        gradients["score/bias"] = {dbias};
        const volume r3 = unrelu(unpool(drop(g3, 1), at3, a3), a3);
        const volume g2 = unconv(r3, d2, "conv3", 3);
        const volume r2 = unrelu(unnorm(unpool(drop(g2, 0), at2, n2), "norm2", s2), a2);
        const volume g1 = unconv(r2, p1, "conv2", 5);
        const volume r1 = unrelu(unnorm(unpool(g1, at1, n1), "norm1", s1), a1);
        unconv(r1, image, "conv1", 3);
        return loss / image.n;
    }

private:
    struct norm_state {
        values inverse; // 1 / sqrt(variance + epsilon), by channel
        volume hat;     // (x - mean) * inverse
    };

    volume conv(const volume& x, const std::string& name, int k) const {
        const values &w = variables.at(name + "/kernel"), &b = variables.at(name + "/bias");
        const int filters = static_cast<int>(b.size());
        volume y(x.n, x.h - k + 1, x.w - k + 1, filters);
        each(y, [&](int n, int i, int j, int f) {
            double sum = b[static_cast<std::size_t>(f)];
            for (int u = 0; u < k; ++u)
                for (int v = 0; v < k; ++v)
                    for (int c = 0; c < x.c; ++c) sum += x.at(n, i + u, j + v, c) * w[kernel_at(k, x.c, filters, u, v, c, f)];
            y.at(n, i, j, f) = sum;
        });
        return y;
    }
    /// From dy to dx; kernel and bias gradients on the way.
    volume unconv(const volume& dy, const volume& x, const std::string& name, int k) {
        const values& w = variables.at(name + "/kernel");
        values dw(w.size(), 0.0), db(static_cast<std::size_t>(dy.c), 0.0);
        volume dx(x.n, x.h, x.w, x.c);
        each(dy, [&](int n, int i, int j, int f) {
            const double d = dy.at(n, i, j, f);
            db[static_cast<std::size_t>(f)] += d;
            for (int u = 0; u < k; ++u)
                for (int v = 0; v < k; ++v)
                    for (int c = 0; c < x.c; ++c) {
                        const std::size_t at = kernel_at(k, x.c, dy.c, u, v, c, f);
                        dw[at] += d * x.at(n, i + u, j + v, c);
                        dx.at(n, i + u, j + v, c) += d * w[at];
                    }
        });
        gradients[name + "/kernel"] = dw;
        gradients[name + "/bias"] = db;
        return dx;
    }

    static volume relu(volume x) {
        for (double& v : x.v) v = v > 0 ? v : 0;
        return x;
    }
    static volume unrelu(volume dy, const volume& x) {
        for (std::size_t i = 0; i < dy.v.size(); ++i) dy.v[i] = x.v[i] > 0 ? dy.v[i] : 0;
        return dy;
    }

    // Ioffe and Szegedy 2015, algorithm 1; population variance, epsilon 1e-3, momentum 0.99.
    volume norm(const volume& x, const std::string& name, norm_state& s) {
        const double count = static_cast<double>(x.n) * x.h * x.w;
        values mean(static_cast<std::size_t>(x.c), 0.0), variance = mean;
        each(x, [&](int n, int i, int j, int c) { mean[static_cast<std::size_t>(c)] += x.at(n, i, j, c) / count; });
        each(x, [&](int n, int i, int j, int c) {
            const double d = x.at(n, i, j, c) - mean[static_cast<std::size_t>(c)];
            variance[static_cast<std::size_t>(c)] += d * d / count;
        });
        s.inverse = variance;
        for (std::size_t c = 0; c < mean.size(); ++c) {
            s.inverse[c] = 1 / std::sqrt(variance[c] + 1e-3);
            double &m = variables.at(name + "/moving_mean")[c], &v = variables.at(name + "/moving_variance")[c];
            m = 0.99 * m + 0.01 * mean[c];
            v = 0.99 * v + 0.01 * variance[c];
        }
        s.hat = x;
        volume y = x;
        const values &gamma = variables.at(name + "/gamma"), &beta = variables.at(name + "/beta");
        each(x, [&](int n, int i, int j, int k) {
            const auto c = static_cast<std::size_t>(k);
            s.hat.at(n, i, j, k) = (x.at(n, i, j, k) - mean[c]) * s.inverse[c];
            y.at(n, i, j, k) = gamma[c] * s.hat.at(n, i, j, k) + beta[c];
        });
        return y;
    }
    // dx = gamma inverse (dy - mean(dy) - hat mean(dy hat))
    volume unnorm(const volume& dy, const std::string& name, const norm_state& s) {
        const double count = static_cast<double>(dy.n) * dy.h * dy.w;
        values dgamma(static_cast<std::size_t>(dy.c), 0.0), dbeta = dgamma;
        each(dy, [&](int n, int i, int j, int c) {
            dgamma[static_cast<std::size_t>(c)] += dy.at(n, i, j, c) * s.hat.at(n, i, j, c);
            dbeta[static_cast<std::size_t>(c)] += dy.at(n, i, j, c);
        });
        volume dx = dy;
        const values& gamma = variables.at(name + "/gamma");
        each(dy, [&](int n, int i, int j, int k) {
            const auto c = static_cast<std::size_t>(k);
            dx.at(n, i, j, k) = gamma[c] * s.inverse[c] *
                                (dy.at(n, i, j, k) - dbeta[c] / count - s.hat.at(n, i, j, k) * dgamma[c] / count);
        });
        gradients[name + "/gamma"] = dgamma;
        gradients[name + "/beta"] = dbeta;
        return dx;
    }

    static volume pool(const volume& x, std::vector<std::size_t>& chosen) {
        volume y(x.n, x.h / 2, x.w / 2, x.c);
        chosen.clear();
        each(y, [&](int n, int i, int j, int c) {
            int best_u = 0, best_v = 0;
            for (int u = 0; u < 2; ++u)
                for (int v = 0; v < 2; ++v)
                    if (x.at(n, 2 * i + u, 2 * j + v, c) > x.at(n, 2 * i + best_u, 2 * j + best_v, c)) best_u = u, best_v = v;
            y.at(n, i, j, c) = x.at(n, 2 * i + best_u, 2 * j + best_v, c);
            chosen.push_back(((static_cast<std::size_t>(n) * x.h + 2 * i + best_u) * x.w + 2 * j + best_v) * x.c + c);
        });
        return y;
    }
    static volume unpool(const volume& dy, const std::vector<std::size_t>& chosen, const volume& like) {
        volume dx(like.n, like.h, like.w, like.c);
        for (std::size_t i = 0; i < chosen.size(); ++i) dx.v[chosen[i]] += dy.v[i];
        return dx;
    }

    /// Forward and backward are the same: a mask and a factor.
    volume drop(volume x, int ordinal) const {
        for (std::size_t i = 0; i < x.v.size(); ++i) x.v[i] = kept(ordinal, i) ? x.v[i] / (1 - rate) : 0;
        return x;
    }

    static std::size_t kernel_at(int k, int in, int out, int u, int v, int c, int f) {
        return ((static_cast<std::size_t>(u) * k + v) * in + c) * out + f;
    }
    template <class F>
    static void each(const volume& like, const F& f) {
        for (int n = 0; n < like.n; ++n)
            for (int i = 0; i < like.h; ++i)
                for (int j = 0; j < like.w; ++j)
                    for (int c = 0; c < like.c; ++c) f(n, i, j, c);
    }
};

} // namespace nn_test
