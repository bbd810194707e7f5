#pragma once

#include "timing.hpp"

#include <tapegraph/real.hpp>

#ifdef BENCH_CODIPACK
#include <codi.hpp>
#endif
#ifdef BENCH_ADEPT
#include <adept_source.h>
#endif
#ifdef BENCH_ADOLC
#include <adolc/adolc.h>
#endif

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

/// Gradients of functions of numbers in plain loops by tg::real, and by CoDiPack, Adept and ADOL-C where CMake has found
/// them. f is a template of the number's type; x has the numbers, g takes the derivatives.

namespace contestants {

namespace tg = tapegraph;
using vector = std::vector<double>;

struct reals {
    static constexpr const char* name = "tg::real";
    std::size_t bytes = 0; ///< of the tape
    template <class F>
    double operator()(const F& f, const vector& x, vector& g) {
        tg::real_tape<> tape;
        std::vector<tg::real<>> v(x.begin(), x.end());
        tape.watch(v);
        const tg::real<> y = f(v);
        tape.backward(y);
        for (std::size_t i = 0; i < x.size(); ++i) g[i] = tape.adjoint(v[i]);
        bytes = 12 * tape.operands() + 8 * tape.statements();
        return y.value();
    }
};

#ifdef BENCH_CODIPACK
struct codipack {
    static constexpr const char* name = "CoDiPack";
    std::size_t bytes = 0;
    template <class F>
    double operator()(const F& f, const vector& x, vector& g) {
        using number = codi::RealReverse;
        auto& tape = number::getTape();
        tape.reset();
        tape.setActive();
        std::vector<number> v(x.begin(), x.end());
        for (number& each : v) tape.registerInput(each);
        number y = f(v);
        tape.registerOutput(y);
        tape.setPassive();
        y.setGradient(1.0);
        tape.evaluate();
        for (std::size_t i = 0; i < x.size(); ++i) g[i] = v[i].getGradient();
        bytes = static_cast<std::size_t>(tape.getTapeValues().getUsedMemorySize());
        return y.getValue();
    }
};
#endif

#ifdef BENCH_ADEPT
/// Needs an adept::Stack, which serves all functions.
struct adept_numbers {
    static constexpr const char* name = "Adept";
    std::size_t bytes = 0;
    template <class F>
    double operator()(const F& f, const vector& x, vector& g) {
        adept::Stack& stack = *adept::active_stack();
        std::vector<adept::adouble> v(x.begin(), x.end());
        stack.new_recording();
        adept::adouble y = f(v);
        y.set_gradient(1.0);
        stack.compute_adjoint();
        for (std::size_t i = 0; i < x.size(); ++i) g[i] = v[i].get_gradient();
        bytes = static_cast<std::size_t>(stack.memory());
        return y.value();
    }
};
#endif

#ifdef BENCH_ADOLC
struct adolc_numbers {
    static constexpr const char* name = "ADOL-C";
    std::size_t bytes = 0;
    template <class F>
    double operator()(const F& f, const vector& x, vector& g) {
        constexpr short tape = 1;
        trace_on(tape);
        std::vector<adouble> v(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) v[i] <<= x[i];
        adouble y = f(v);
        double value = 0;
        y >>= value;
        trace_off();
        ::gradient(tape, static_cast<int>(x.size()), x.data(), g.data());
        return value;
    }
};
#endif

/// Ends the program if derivatives differ.
inline void check(const char* name, const vector& g, const vector& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (std::fabs(g[i] - expected[i]) <= 1e-9 * (1 + std::fabs(expected[i]))) continue;
        std::printf("%s: derivative %zu is %.17g, expected %.17g\n", name, i, g[i], expected[i]);
        std::exit(1);
    }
}

/// Adds a contestant whose gradient has been checked. f, x and the contestant outlive the measurement.
template <class Contestant, class F>
void enter(std::vector<timing::timed>& all, Contestant& contestant, const F& f, const vector& x,
           const vector& expected) {
    vector g(x.size());
    contestant(f, x, g);
    check(Contestant::name, g, expected);
    all.push_back({Contestant::name, [&contestant, &f, &x, g]() mutable { contestant(f, x, g); }, &contestant.bytes});
}

/// The same of all that there are.
template <class F>
void enter_all(std::vector<timing::timed>& all, const F& f, const vector& x, const vector& expected) {
    static reals ours;
    enter(all, ours, f, x, expected);
#ifdef BENCH_CODIPACK
    static codipack second;
    enter(all, second, f, x, expected);
#endif
#ifdef BENCH_ADEPT
    static adept_numbers third;
    enter(all, third, f, x, expected);
#endif
#ifdef BENCH_ADOLC
    static adolc_numbers fourth;
    enter(all, fourth, f, x, expected);
#endif
}

/// Numbers between two bounds, the same in every run.
inline vector numbers(std::size_t count, double low, double high, std::uint32_t state = 12345) {
    vector x(count);
    for (double& each : x) {
        state = state * 1664525u + 1013904223u;
        each = low + (high - low) * static_cast<double>(state >> 8) / 16777216.0;
    }
    return x;
}

} // namespace contestants
