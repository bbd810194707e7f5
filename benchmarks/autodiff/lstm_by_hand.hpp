#pragma once

#include "by_hand.hpp"

#include <array>

namespace by_hand {

/// ADBench's LSTM: gates multiply element by element, layers are stacked, a step has b numbers.
/// With g = 4 rows (forget, input, output, change) of weights w and biases v for each layer, x the
/// layer's input, h and c its state,
///   c' = c sigmoid(x w_0 + v_0) + sigmoid(h w_1 + v_1) tanh(h w_3 + v_3),
///   h' = sigmoid(x w_2 + v_2) tanh(c');
/// the first layer reads e_0 times the step's numbers, y = h' e_1 + e_2 of the last layer; the
/// objective is minus the mean over steps and numbers of next (y - log(2 + sum exp y)).
class lstm {
public:
    /// Makes `steps` predictions of a sequence of one step more.
    lstm(std::size_t layers, std::size_t steps, std::size_t width) : layers_(layers), steps_(steps), width_(width) {}

    /// w, v [layers, 4, width], e [3, width], state [layers, 2, width] (h, c), sequence [steps + 1, width].
    double operator()(const vector& w, const vector& v, const vector& e, const vector& state, const vector& sequence,
                      vector& dw, vector& dv, vector& de) {
        for (vector* g : {&dw, &dv, &de}) std::fill(g->begin(), g->end(), 0.0);
        const std::size_t b = width_, all = layers_ * b;
        kept_.resize(steps_ * all);
        outputs_.resize(steps_ * b);
        dh_.assign(all, 0.0);
        dc_.assign(all, 0.0);
        const double each = -1 / static_cast<double>(steps_ * b);
        double total = 0;
        for (std::size_t t = 0; t < steps_; ++t) {
            double* const y = &outputs_[t * b];
            for (std::size_t i = 0; i < b; ++i) {
                double x = sequence[t * b + i] * e[i];
                for (std::size_t l = 0; l < layers_; ++l) x = forward(w, v, state, t, l, i, x).h;
                y[i] = x * e[b + i] + e[2 * b + i];
            }
            double sum = 2, gold = 0;
            for (std::size_t i = 0; i < b; ++i) sum += std::exp(y[i]), gold += sequence[(t + 1) * b + i];
            const double log_sum = std::log(sum);
            for (std::size_t i = 0; i < b; ++i) {
                const double next = sequence[(t + 1) * b + i];
                total += each * next * (y[i] - log_sum);
                y[i] = each * (next - gold * std::exp(y[i]) / sum); // from here on the derivative with respect to y
            }
        }
        for (std::size_t t = steps_; t-- > 0;)
            for (std::size_t i = 0; i < b; ++i) {
                const double dy = outputs_[t * b + i];
                de[b + i] += dy * kept_[t * all + (layers_ - 1) * b + i].h;
                de[2 * b + i] += dy;
                double dx = dy * e[b + i];
                for (std::size_t l = layers_; l-- > 0;) dx = backward(w, state, t, l, i, dx, dw, dv);
                de[i] += dx * sequence[t * b + i];
            }
        return total;
    }

private:
    struct cell {
        double x, forget, input, output, change, c, tanh_c, h;
    };

    cell& forward(const vector& w, const vector& v, const vector& state, std::size_t t, std::size_t l, std::size_t i,
                  double x) {
        const std::size_t b = width_;
        const auto gate = [&](std::size_t g, double s) { return s * w[(l * 4 + g) * b + i] + v[(l * 4 + g) * b + i]; };
        const auto sigmoid = [](double s) { return 1 / (1 + std::exp(-s)); };
        const auto [h, c] = before(state, t, l, i);
        cell& now = kept_[(t * layers_ + l) * b + i];
        now.x = x;
        now.forget = sigmoid(gate(0, x));
        now.input = sigmoid(gate(1, h));
        now.output = sigmoid(gate(2, x));
        now.change = std::tanh(gate(3, h));
        now.c = c * now.forget + now.input * now.change;
        now.tanh_c = std::tanh(now.c);
        now.h = now.output * now.tanh_c;
        return now;
    }

    /// Turns dx of the layer above and of the step after into dx of the layer below.
    double backward(const vector& w, const vector& state, std::size_t t, std::size_t l, std::size_t i, double dx,
                    vector& dw, vector& dv) {
        const std::size_t b = width_;
        const auto [h, c] = before(state, t, l, i);
        const cell& now = kept_[(t * layers_ + l) * b + i];
        const double dh = dx + dh_[l * b + i], dc = dc_[l * b + i] + dh * now.output * (1 - now.tanh_c * now.tanh_c);
        const std::array<double, 4> d{
            dc * c * now.forget * (1 - now.forget), dc * now.change * now.input * (1 - now.input),
            dh * now.tanh_c * now.output * (1 - now.output), dc * now.input * (1 - now.change * now.change)};
        for (std::size_t g = 0; g < 4; ++g) {
            dw[(l * 4 + g) * b + i] += d[g] * (g % 2 == 0 ? now.x : h);
            dv[(l * 4 + g) * b + i] += d[g];
        }
        dc_[l * b + i] = dc * now.forget;
        dh_[l * b + i] = d[1] * w[(l * 4 + 1) * b + i] + d[3] * w[(l * 4 + 3) * b + i];
        return d[0] * w[l * 4 * b + i] + d[2] * w[(l * 4 + 2) * b + i];
    }

    std::array<double, 2> before(const vector& state, std::size_t t, std::size_t l, std::size_t i) const {
        if (t == 0) return {state[l * 2 * width_ + i], state[(l * 2 + 1) * width_ + i]};
        const cell& last = kept_[((t - 1) * layers_ + l) * width_ + i];
        return {last.h, last.c};
    }

    std::size_t layers_, steps_, width_;
    std::vector<cell> kept_;
    vector outputs_, dh_, dc_;
};

} // namespace by_hand
