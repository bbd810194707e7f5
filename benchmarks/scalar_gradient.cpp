#include <tapegraph/expr/differentiate.hpp>
#include <tapegraph/ops/ops.hpp>

#include <cmath>
#include <cstdio>

/// tg::value_and_gradient of functions of several doubles, for comparison with gradients written by
/// hand. The program checks that both give the same numbers; scalar_gradient.py counts the
/// instructions of the compiled functions.
///
/// The gradients by hand are what a careful programmer writes: common terms named once, no work for
/// constants.

namespace tg = tapegraph;

// Marks functions that the differentiated function calls: g++ inlines them at any depth, clang only
// when forced to.
#define TG_NESTED __attribute__((always_inline)) inline

#define TG_MEASURED extern "C" __attribute__((noinline)) double

namespace {

// Writes the gradient of f at x[0], x[1], ... to g.
template <class F, std::size_t... I>
TG_INLINE double differentiated(const F& f, const double* x, double* g, std::index_sequence<I...>) {
    const auto result = tg::value_and_gradient(f)(x[I]...);
    if constexpr (sizeof...(I) == 1)
        g[0] = result.gradient;
    else
        ((g[I] = result.gradient[I]), ...);
    return result.value;
}
template <std::size_t N, class F>
TG_INLINE double differentiated(const F& f, const double* x, double* g) {
    return differentiated(f, x, g, std::make_index_sequence<N>{});
}

const auto cubic = [](auto x) { return ((2 * x - 3) * x + 4) * x - 5; };

const auto surface = [](auto x, auto y) { return 2 * x * x * x - x * x * y + 3 * x * y * y - y + 1; };

// sum over i of 100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2
template <class X, class... Rest>
TG_NESTED constexpr X rosenbrock_of(const X& x, const X& y, const Rest&... rest) {
    const X term = square(1 - x) + 100 * square(y - square(x));
    if constexpr (sizeof...(rest) == 0)
        return term;
    else
        return term + rosenbrock_of(y, rest...);
}
const auto rosenbrock = [](auto... x) { return rosenbrock_of(x...); };
template <int N>
TG_INLINE double rosenbrock_by_hand(const double* x, double* g) {
    double total = 0;
    g[0] = 0;
#pragma GCC unroll 8
    for (int i = 0; i + 1 < N; ++i) {
        const double a = 1 - x[i], b = x[i + 1] - x[i] * x[i];
        total += a * a + 100 * (b * b);
        g[i] += -2 * a - 400 * b * x[i];
        g[i + 1] = 200 * b;
    }
    return total;
}

const double features[4]{0.3, -1.2, 0.7, 2.1}, label = 1;

// log(1 + exp(-label z)), z = w . x + b
const auto logistic = [](auto w0, auto w1, auto w2, auto w3, auto b) {
    const auto z = w0 * features[0] + w1 * features[1] + w2 * features[2] + w3 * features[3] + b;
    return softplus(-label * z);
};

// Lennard-Jones potential at the point (x, y, z), 4 epsilon ((sigma / r)^12 - (sigma / r)^6)
const auto lennard_jones = [](auto x, auto y, auto z) {
    const auto s = 1.1 / (x * x + y * y + z * z);
    const auto s6 = s * s * s;
    return 4 * 0.7 * (s6 * s6 - s6);
};

// Damped oscillation at t = 0.8: amplitude, damping, frequency, phase
const auto oscillation = [](auto a, auto damping, auto frequency, auto phase) {
    const double t = 0.8;
    return a * exp(-t * damping) * cos(t * frequency + phase);
};

// Two layers by hand: tanh of two sums, then a squared error
const auto neuron = [](auto a, auto b, auto c, auto d, auto e, auto f) {
    const auto h = tanh(a * 0.5 + b * -1.5), k = tanh(c * 0.5 + d * -1.5);
    return square(e * h + f * k - 0.3);
};

} // namespace

TG_MEASURED library_cubic(const double* x, double* g) { return differentiated<1>(cubic, x, g); }
TG_MEASURED hand_cubic(const double* x, double* g) {
    g[0] = (6 * x[0] - 6) * x[0] + 4;
    return ((2 * x[0] - 3) * x[0] + 4) * x[0] - 5;
}

TG_MEASURED library_surface(const double* x, double* g) { return differentiated<2>(surface, x, g); }
TG_MEASURED hand_surface(const double* p, double* g) {
    const double x = p[0], y = p[1], xx = x * x, xy = x * y;
    g[0] = 6 * xx - 2 * xy + 3 * y * y;
    g[1] = 6 * xy - xx - 1;
    return 2 * xx * x - xx * y + 3 * xy * y - y + 1;
}

TG_MEASURED library_rosenbrock2(const double* x, double* g) { return differentiated<2>(rosenbrock, x, g); }
TG_MEASURED library_rosenbrock4(const double* x, double* g) { return differentiated<4>(rosenbrock, x, g); }
TG_MEASURED library_rosenbrock8(const double* x, double* g) { return differentiated<8>(rosenbrock, x, g); }
TG_MEASURED hand_rosenbrock2(const double* x, double* g) { return rosenbrock_by_hand<2>(x, g); }
TG_MEASURED hand_rosenbrock4(const double* x, double* g) { return rosenbrock_by_hand<4>(x, g); }
TG_MEASURED hand_rosenbrock8(const double* x, double* g) { return rosenbrock_by_hand<8>(x, g); }

TG_MEASURED library_logistic(const double* x, double* g) { return differentiated<5>(logistic, x, g); }
TG_MEASURED hand_logistic(const double* w, double* g) {
    const double z = w[0] * features[0] + w[1] * features[1] + w[2] * features[2] + w[3] * features[3] + w[4];
    const double slope = -label * tg::math::sigmoid(-label * z);
    for (int i = 0; i < 4; ++i) g[i] = slope * features[i];
    g[4] = slope;
    return tg::math::softplus(-label * z);
}

TG_MEASURED library_lennard_jones(const double* x, double* g) { return differentiated<3>(lennard_jones, x, g); }
TG_MEASURED hand_lennard_jones(const double* x, double* g) {
    const double q = x[0] * x[0] + x[1] * x[1] + x[2] * x[2];
    const double s = 1.1 / q, s6 = s * s * s;
    const double slope = 4 * 0.7 * -6 * (2 * s6 * s6 - s6) / q;
    for (int i = 0; i < 3; ++i) g[i] = slope * x[i];
    return 4 * 0.7 * (s6 * s6 - s6);
}

TG_MEASURED library_oscillation(const double* x, double* g) { return differentiated<4>(oscillation, x, g); }
TG_MEASURED hand_oscillation(const double* x, double* g) {
    const double t = 0.8, e = tg::math::exp(-t * x[1]), angle = t * x[2] + x[3];
    const double c = tg::math::cos(angle), s = tg::math::sin(angle), y = x[0] * e;
    g[0] = e * c;
    g[1] = -t * y * c;
    g[3] = -y * s;
    g[2] = t * g[3];
    return y * c;
}

TG_MEASURED library_neuron(const double* x, double* g) { return differentiated<6>(neuron, x, g); }
TG_MEASURED hand_neuron(const double* x, double* g) {
    const double h = tg::math::tanh(x[0] * 0.5 + x[1] * -1.5), k = tg::math::tanh(x[2] * 0.5 + x[3] * -1.5);
    const double error = x[4] * h + x[5] * k - 0.3, slope = 2 * error;
    const double dh = slope * x[4] * (1 - h * h), dk = slope * x[5] * (1 - k * k);
    g[0] = dh * 0.5;
    g[1] = dh * -1.5;
    g[2] = dk * 0.5;
    g[3] = dk * -1.5;
    g[4] = slope * h;
    g[5] = slope * k;
    return error * error;
}

int main() {
    const double x[8]{0.7, 1.3, -0.4, 0.9, 1.1, -0.8, 0.2, 1.7};
    bool same = true;
    const auto compare = [&](const char* name, int count, double (*library)(const double*, double*),
                             double (*hand)(const double*, double*)) {
        double a[8]{}, b[8]{};
        bool near = std::fabs(library(x, a) - hand(x, b)) < 1e-12;
        for (int i = 0; i < count; ++i) near = near && std::fabs(a[i] - b[i]) < 1e-11 * (1 + std::fabs(b[i]));
        std::printf("%-16s %s\n", name, near ? "same" : "DIFFERENT");
        same = same && near;
    };
    compare("cubic", 1, library_cubic, hand_cubic);
    compare("surface", 2, library_surface, hand_surface);
    compare("rosenbrock2", 2, library_rosenbrock2, hand_rosenbrock2);
    compare("rosenbrock4", 4, library_rosenbrock4, hand_rosenbrock4);
    compare("rosenbrock8", 8, library_rosenbrock8, hand_rosenbrock8);
    compare("logistic", 5, library_logistic, hand_logistic);
    compare("lennard_jones", 3, library_lennard_jones, hand_lennard_jones);
    compare("oscillation", 4, library_oscillation, hand_oscillation);
    compare("neuron", 6, library_neuron, hand_neuron);
    return same ? 0 : 1;
}
