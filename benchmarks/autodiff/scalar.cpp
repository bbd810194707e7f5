#include "scalar_by_hand.hpp"
#include "scalar_problems.hpp"

#include <tapegraph/real.hpp>

#ifdef BENCH_CODIPACK
#include <codi.hpp>
#endif
#ifdef BENCH_ADEPT
#include <adept_source.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

/// Times values and gradients of functions in plain loops (scalar_problems.hpp), in double on one thread: by tg::real, by
/// a gradient written by hand, and by CoDiPack and Adept where CMake was given their folders. The contestants alternate;
/// prints medians of processor time in microseconds, and bytes of tape. All gradients are first checked to be equal.
/// Usage: bench_autodiff_scalar [seconds per function]

namespace {

namespace tg = tapegraph;
using vector = std::vector<double>;

double seconds() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct by_reals {
    static constexpr const char* name = "tg::real";
    std::size_t bytes = 0;
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

struct by_a_hand {
    static constexpr const char* name = "by hand";
    std::size_t bytes = 0;
    template <class F>
    double operator()(const F& f, const vector& x, vector& g) {
        return by_hand::gradient(f, x, g);
    }
};

#ifdef BENCH_CODIPACK
struct by_codipack {
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
struct by_adept {
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

by_a_hand hand;
by_reals reals;
#ifdef BENCH_CODIPACK
by_codipack codipack;
#endif
#ifdef BENCH_ADEPT
by_adept adept_numbers;
#endif

struct timed {
    std::string name;
    std::function<void()> call;
    const std::size_t* bytes;
    std::vector<double> times;
};

template <class Contestant, class F>
void enter(std::vector<timed>& all, Contestant& contestant, const F& f, const vector& x, const vector& expected) {
    vector g(x.size());
    contestant(f, x, g);
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (std::fabs(g[i] - expected[i]) <= 1e-9 * (1 + std::fabs(expected[i]))) continue;
        std::printf("%s: derivative %zu is %.17g, by hand %.17g\n", Contestant::name, i, g[i], expected[i]);
        std::exit(1);
    }
    all.push_back(
        {Contestant::name, [&contestant, &f, &x, g]() mutable { contestant(f, x, g); }, &contestant.bytes, {}});
}

// Prints the medians of calls that alternate.
void print(const char* title, std::vector<timed> all, double budget) {
    const double until = seconds() + budget;
    while (seconds() < until || all[0].times.size() < 5) {
        for (timed& one : all) {
            int calls = 0;
            const double start = seconds();
            double now = start;
            do one.call(), ++calls;
            while ((now = seconds()) < start + 1e-3);
            one.times.push_back((now - start) / calls);
        }
    }
    std::printf("%-36s", title);
    for (timed& one : all) {
        const auto middle = one.times.begin() + static_cast<std::ptrdiff_t>(one.times.size() / 2);
        std::nth_element(one.times.begin(), middle, one.times.end());
        std::printf("  %s %.2f", one.name.c_str(), 1e6 * *middle);
        if (one.bytes != nullptr && *one.bytes > 0) std::printf(" (%zu KiB)", *one.bytes / 1024);
    }
    std::printf("\n");
}

template <class F>
void compare(const char* title, const F& f, const vector& x, double budget) {
    vector expected(x.size());
    by_hand::gradient(f, x, expected);
    std::vector<timed> all;
    volatile double sink = 0;
    all.push_back({"value alone", [&] { sink = f(x); }, nullptr, {}});
    enter(all, hand, f, x, expected);
    enter(all, reals, f, x, expected);
#ifdef BENCH_CODIPACK
    enter(all, codipack, f, x, expected);
#endif
#ifdef BENCH_ADEPT
    enter(all, adept_numbers, f, x, expected);
#endif
    print(title, std::move(all), budget);
}

vector numbers(std::size_t count, double low, double high) {
    vector x(count);
    std::uint32_t state = 12345;
    for (double& each : x) {
        state = state * 1664525u + 1013904223u;
        each = low + (high - low) * static_cast<double>(state >> 8) / 16777216.0;
    }
    return x;
}

// The Jacobian of 100 results by 100 numbers.
void jacobians(double budget) {
    const std::size_t n = 100;
    const vector x = numbers(n, -1, 1);
    const problems::dense f;
    volatile double sink = 0;
    std::vector<timed> all{{"tg::jacobian", [&] { sink = tg::jacobian(f)(x)[3][4]; }, nullptr, {}}};
#ifdef BENCH_CODIPACK
    vector forward(n * n);
    all.push_back({"CoDiPack, 8 directions",
                   [&] {
                       using number = codi::RealForwardGen<double, codi::Direction<double, 8>>;
                       for (std::size_t first = 0; first < n; first += 8) {
                           const std::size_t used = std::min<std::size_t>(8, n - first);
                           std::vector<number> v(x.begin(), x.end());
                           for (std::size_t k = 0; k < used; ++k) v[first + k].gradient()[k] = 1;
                           const auto y = f(v);
                           for (std::size_t i = 0; i < n; ++i)
                               for (std::size_t k = 0; k < used; ++k)
                                   forward[i * n + first + k] = y[i].getGradient()[k];
                       }
                   },
                   nullptr,
                   {}});
#endif
#ifdef BENCH_ADEPT
    vector whole(n * n);
    all.push_back({"Adept",
                   [&] {
                       adept::Stack& stack = *adept::active_stack();
                       std::vector<adept::adouble> v(x.begin(), x.end());
                       stack.new_recording();
                       const auto y = f(v);
                       stack.independent(v.data(), v.size());
                       stack.dependent(y.data(), y.size());
                       stack.jacobian(whole.data());
                   },
                   nullptr,
                   {}});
#endif
    print("Jacobian 100 x 100", std::move(all), budget);
}

// The Hessian and a product with it.
void second_derivatives(double budget) {
    const auto twenty = numbers(20, -1, 1), thousand = numbers(1000, -1, 1);
    const problems::rosenbrock short_one{20}, long_one{1000};
    volatile double sink = 0;
    print("second derivatives of Rosenbrock's",
          {{"tg::hessian of 20", [&] { sink = tg::hessian(short_one)(twenty)[1][1]; }, nullptr, {}},
           {"tg::hvp of 1,000", [&] { sink = tg::hvp(long_one)(thousand, thousand).product[0]; }, nullptr, {}}},
          budget);
}

} // namespace

int main(int argc, char** argv) {
    const double budget = argc > 1 ? std::atof(argv[1]) : 1;
#ifdef BENCH_ADEPT
    adept::Stack stack; // one serves all functions
#endif
    const vector points = numbers(2000, -2, 2);
    compare("Rosenbrock, 1,000 numbers", problems::rosenbrock{1000}, numbers(1000, -1, 1), budget);
    compare("Lotka-Volterra, 1,000 steps", problems::lotka_volterra{1000}, {1.5, 1.0, 0.5, 3.0, 1.0, 1.0}, budget);
    compare("Newton's roots of 100 numbers", problems::newton{100}, numbers(100, 0.5, 4), budget);
    compare("functions of 1,000 numbers", problems::chain{1000}, numbers(1000, -1, 1), budget);
    compare("two layers of 64, one input", problems::layers{64}, numbers(2 * 64 * 64 + 64, -0.2, 0.2), budget);
    compare("Gaussian mixture, d 2, K 5, n 1,000", problems::mixture{2, 5, &points}, numbers(45, -0.5, 0.5), budget);
    jacobians(budget);
    second_derivatives(budget);
}
