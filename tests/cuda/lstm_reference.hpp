#pragma once

#include <tapegraph/cuda/ops/recurrent/recurrence.cuh>
#include <tapegraph/ops/recurrent/cpu_lstm_cell.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

/// LSTM layers with random contents, the results of both passes by loops in double, and functions
/// that run the kernels on them. Include it after <simt/words.hpp>.
///
/// Tolerances are relative L2 errors. A state is the sum of up to 300 products passed through
/// functions whose slopes are at most 1, and the gates forget errors of earlier steps: some units
/// of the type's rounding (6e-8 and 1.1e-16) times the root of the sum's length, far below 1e-5 and
/// 1e-12, whatever the number of steps.

namespace lstm_reference {

using tapegraph::cpu::lstm_cell;
using tapegraph::cuda::recurrent_geometry;

struct activation_functions {
    double (*cell)(double), (*cell_slope)(double), (*gate)(double), (*gate_slope)(double); // slopes by their results
};
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double hyperbolic_tangent(double x) { return std::tanh(x); }
inline const activation_functions usual{hyperbolic_tangent, [](double y) { return 1 - y * y; }, sigmoid,
                                        [](double y) { return y * (1 - y); }};
inline const activation_functions hard{[](double x) { return x <= 0 ? 0 : x; },
                                       [](double y) { return y > 0 ? 1.0 : 0.0; },
                                       [](double x) { return x <= -3  ? 0
                                                             : x >= 3 ? 1
                                                                      : (x + 3) / 6; },
                                       [](double y) { return y > 0 && y < 1 ? 1.0 / 6 : 0.0; }};

/// The options of a case besides its extents.
struct options {
    bool reverse = false, first_states = true, masked = false, every_dh = true, last_gradients = true;
    bool dropped = false, of_first = false; ///< recurrent dropout; a gradient of h0 from elsewhere
    bool relu_and_hard = false;             ///< the other activations
};

template <class T>
struct layer {
    recurrent_geometry g;
    options o;
    std::size_t batch, time, units;
    std::vector<T> xz, recurrent, h0, c0, factors, dh, dh_last, dc_last, dh_first;
    std::vector<unsigned char> mask;

    layer(int batch_, int time_, int units_, options o_ = {}, unsigned seed = 1)
        : g{batch_, time_, units_, o_.reverse, {o_.relu_and_hard, o_.relu_and_hard}},
          o(o_),
          batch(std::size_t(batch_)),
          time(std::size_t(time_)),
          units(std::size_t(units_)) {
        const auto numbers = [&](std::size_t count, double most) {
            std::vector<T> v(count);
            for (T& x : v) {
                seed = seed * 1664525u + 1013904223u;
                x = static_cast<T>(most * (static_cast<double>(seed >> 8) / (1 << 23) - 1));
            }
            return v;
        };
        xz = numbers(batch * time * 4 * units, 1.5);
        recurrent = numbers(units * 4 * units, 1.5 / std::sqrt(double(units)));
        h0 = numbers(batch * units, 1), c0 = numbers(batch * units, 1);
        dh = numbers(batch * time * units, 1);
        dh_last = numbers(batch * units, 1), dc_last = numbers(batch * units, 1), dh_first = numbers(batch * units, 1);
        factors.assign(batch * units, T(1));
        if (o.dropped)
            for (T& x : factors = numbers(batch * units, 1)) x = x < 0 ? T(0) : T(1.5);
        mask.assign(batch * time, 1);
        if (!o.masked) return;
        for (std::size_t i = 0; i < mask.size(); ++i) {
            seed = seed * 1664525u + 1013904223u;
            mask[i] = static_cast<unsigned char>(seed >> 24 & 6); // 0 in one of four, otherwise any number
            if (mask[i] == 0)                                     // masked elements are never read
                for (std::size_t j = 0; j < 4 * units; ++j) xz[i * 4 * units + j] = static_cast<T>(NAN);
        }
    }
    std::size_t line(std::size_t b, std::size_t step) const { return b * time + (o.reverse ? time - 1 - step : step); }
    bool counts(std::size_t line) const { return mask[line] != 0; }
};

template <class T>
struct results {
    std::vector<T> h, c, gates, dz, dh0, dc0;
};

template <class T>
results<double> reference(const layer<T>& l) {
    const activation_functions& f = l.o.relu_and_hard ? hard : usual;
    const std::size_t n = l.units, states = l.batch * n, lines = l.batch * l.time;
    results<double> r;
    r.h.assign(lines * n, 0), r.c = r.h;
    r.gates.assign(lines * 4 * n, 0), r.dz = r.gates;
    r.dh0.assign(states, 0), r.dc0 = r.dh0;
    const auto before = [&](const std::vector<double>& all, const std::vector<T>& first, std::size_t b,
                            std::size_t step, std::size_t u) {
        if (step > 0) return all[l.line(b, step - 1) * n + u];
        return l.o.first_states ? double(first[b * n + u]) : 0.0;
    };
    for (std::size_t b = 0; b < l.batch; ++b)
        for (std::size_t step = 0; step < l.time; ++step)
            for (std::size_t u = 0; u < n; ++u) {
                const std::size_t line = l.line(b, step);
                double* const y = &r.gates[line * 4 * n + u];
                for (std::size_t gate = 0; gate < 4; ++gate) {
                    double z = l.xz[line * 4 * n + gate * n + u];
                    for (std::size_t k = 0; k < n; ++k)
                        z += before(r.h, l.h0, b, step, k) * l.factors[b * n + k] *
                             l.recurrent[k * 4 * n + gate * n + u];
                    y[gate * n] = gate == 2 ? f.cell(z) : f.gate(z);
                }
                const double c_before = before(r.c, l.c0, b, step, u);
                const double c = y[n] * c_before + y[0] * y[2 * n];
                r.c[line * n + u] = l.counts(line) ? c : c_before;
                r.h[line * n + u] = l.counts(line) ? y[3 * n] * f.cell(c) : before(r.h, l.h0, b, step, u);
            }
    for (std::size_t b = 0; b < l.batch; ++b) {
        std::vector<double> dh(n), dc(n);
        for (std::size_t u = 0; u < n && l.o.last_gradients; ++u)
            dh[u] = l.dh_last[b * n + u], dc[u] = l.dc_last[b * n + u];
        for (std::size_t step = l.time; step-- > 0;) {
            const std::size_t line = l.line(b, step);
            for (std::size_t u = 0; u < n && l.o.every_dh; ++u) dh[u] += l.dh[line * n + u];
            if (!l.counts(line)) continue;
            std::vector<double> dh_before(n);
            for (std::size_t u = 0; u < n; ++u) {
                const double* const y = &r.gates[line * 4 * n + u];
                double* const dz = &r.dz[line * 4 * n + u];
                const double shown = f.cell(r.c[line * n + u]);
                const double d = dc[u] + dh[u] * y[3 * n] * f.cell_slope(shown);
                dz[0] = d * y[2 * n] * f.gate_slope(y[0]);
                dz[n] = d * before(r.c, l.c0, b, step, u) * f.gate_slope(y[n]);
                dz[2 * n] = d * y[0] * f.cell_slope(y[2 * n]);
                dz[3 * n] = dh[u] * shown * f.gate_slope(y[3 * n]);
                dc[u] = d * y[n];
            }
            for (std::size_t u = 0; u < n; ++u)
                for (std::size_t j = 0; j < 4 * n; ++j)
                    dh_before[u] += l.factors[b * n + u] * r.dz[line * 4 * n + j] * l.recurrent[u * 4 * n + j];
            dh = dh_before;
        }
        for (std::size_t u = 0; u < n; ++u) {
            r.dh0[b * n + u] = dh[u] + (l.o.of_first ? l.dh_first[b * n + u] : 0);
            r.dc0[b * n + u] = dc[u];
        }
    }
    return r;
}

/// Relative L2 distance; NaN in `want` accepts any value.
inline double distance(const auto& got, const std::vector<double>& want) {
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        if (std::isnan(want[i])) continue; // a masked step's gates
        const double d = got[i] - want[i];
        apart += d * d, size += want[i] * want[i];
    }
    return apart == 0 ? 0 : std::sqrt(apart / size);
}
template <class T>
double distance(const results<T>& got, const results<double>& want) {
    double most = 0;
    for (auto member : {0, 1, 2, 3, 4, 5}) {
        const std::vector<T>* const g[]{&got.h, &got.c, &got.gates, &got.dz, &got.dh0, &got.dc0};
        const std::vector<double>* const w[]{&want.h, &want.c, &want.gates, &want.dz, &want.dh0, &want.dc0};
        const double d = distance(*g[member], *w[member]);
        if (std::isnan(d)) return d;
        most = std::max(most, d);
    }
    return most;
}

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;

/// Scratch memory as kernels may find it: of exactly the promised size, and filled with ones.
struct scratch {
    std::vector<unsigned char> bytes;
    unsigned char* at;
    explicit scratch(std::size_t size) : bytes(size + 128, 0xFF) {
        at = reinterpret_cast<unsigned char*>((reinterpret_cast<std::uintptr_t>(bytes.data()) + 127) / 128 * 128);
    }
    bool intact(std::size_t size) const {
        for (const unsigned char* p = at + size; p < bytes.data() + bytes.size(); ++p)
            if (*p != 0xFF) return false;
        return true;
    }
};

template <class T>
tapegraph::cuda::recurrent_forward_operands<T> forward_operands(const layer<T>& l, results<T>& r) {
    const T nan = static_cast<T>(NAN);
    r.h.assign(l.batch * l.time * l.units, nan), r.c = r.h;
    r.gates.assign(l.batch * l.time * 4 * l.units, nan);
    const auto record = static_cast<std::int64_t>(l.time * l.units);
    tapegraph::cuda::recurrent_forward_operands<T> p{};
    p.xz = l.xz.data(), p.recurrent = l.recurrent.data();
    if (l.o.first_states) p.h0 = l.h0.data(), p.c0 = l.c0.data();
    if (l.o.dropped) p.dropped = l.factors.data();
    if (l.o.masked) p.mask = l.mask.data();
    p.h = {r.h.data(), record}, p.c = {r.c.data(), record};
    p.gates = {r.gates.data(), 4 * record};
    return p;
}
template <class T>
tapegraph::cuda::recurrent_backward_operands<T> backward_operands(const layer<T>& l, results<T>& r) {
    const T nan = static_cast<T>(NAN);
    r.dz.assign(l.batch * l.time * 4 * l.units, nan);
    r.dh0.assign(l.batch * l.units, nan), r.dc0 = r.dh0;
    const auto units = static_cast<std::int64_t>(l.units), record = static_cast<std::int64_t>(l.time) * units;
    tapegraph::cuda::recurrent_backward_operands<T> p{};
    if (l.o.every_dh) p.dh = {l.dh.data(), record}, p.dh_steps = static_cast<int>(l.time);
    if (l.o.last_gradients) p.dh_last = {l.dh_last.data(), units, 0}, p.dc_last = {l.dc_last.data(), units, 0};
    if (l.o.of_first) p.dh_first = {l.dh_first.data(), units, 0};
    p.gates = r.gates.data(), p.memory = r.c.data();
    if (l.o.first_states) p.memory0 = l.c0.data();
    p.recurrent = l.recurrent.data();
    if (l.o.dropped) p.dropped = l.factors.data();
    if (l.o.masked) p.mask = l.mask.data();
    p.dz = {r.dz.data(), 4 * record};
    p.dh0 = {r.dh0.data(), units, 0}, p.dc0 = {r.dc0.data(), units, 0};
    return p;
}

/// Runs both passes, each by its plan.
template <class T>
results<T> run(const layer<T>& l, const tapegraph::cuda::recurrent_plan& forward,
               const tapegraph::cuda::recurrent_plan& backward) {
    results<T> r;
    const std::size_t size =
        tapegraph::cuda::recurrent_workspace<lstm_cell, T>(l.g, tapegraph::cuda::recurrent_pass::backward);
    scratch workspace(size);
    tapegraph::cuda::run_recurrent_forward<lstm_cell, T>(nullptr, "lstm", forward, l.g, forward_operands(l, r),
                                                         workspace.at);
    tapegraph::cuda::run_recurrent_backward<lstm_cell, T>(nullptr, "lstm", backward, l.g, backward_operands(l, r),
                                                          workspace.at);
    CHECK(workspace.intact(size));
    return r;
}

} // namespace lstm_reference
