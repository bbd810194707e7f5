#include <tapegraph/tapegraph.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <time.h>
#include <vector>

/// Times values and gradients of functions so small that the call is most of their time: by hand, and compiled by
/// tg::function, called with std::arrays and with tensors. Contestants alternate; prints medians of processor time in
/// nanoseconds. All results are first checked to be equal.
/// Usage: bench_autodiff_small_calls [seconds per function]

namespace {

namespace tg = tapegraph;

inline constexpr std::size_t ten = 10;
using numbers = std::array<double, ten>;

double seconds() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Value and gradient by hand: no call is inlined, as ours is not.
namespace by_hand {

[[gnu::noinline]] double rosenbrock(const numbers& x, numbers& g) {
    double y = 0;
    g.fill(0);
    for (std::size_t i = 0; i + 1 < ten; ++i) {
        const double a = 1 - x[i], b = x[i + 1] - x[i] * x[i];
        y += 100 * b * b + a * a;
        g[i] += -400 * b * x[i] - 2 * a;
        g[i + 1] += 200 * b;
    }
    return y;
}

[[gnu::noinline]] double product(const numbers& x, numbers& g) {
    double left = 1, right = 1;
    for (std::size_t i = 0; i < ten; ++i) {
        g[i] = left;
        left *= x[i];
    }
    for (std::size_t i = ten; i-- > 0;) {
        g[i] *= right;
        right *= x[i];
    }
    return left;
}

[[gnu::noinline]] double chain(double x, double& g) {
    const double s = std::sin(x), c = std::cos(x), e = std::exp(s * x), t = std::tanh(x), root = std::sqrt(1 + t * t);
    g = e / (1 + e) * (c * x + s) + t * (1 - t * t) / root;
    return std::log(1 + e) + root;
}

} // namespace by_hand

constexpr auto rosenbrock = [](const auto& x) {
    const auto a = slice(x, {{0, ten - 1}}), b = slice(x, {{1, ten}});
    return sum(100 * square(b - square(a)) + square(1 - a));
};
constexpr auto factors = [](const auto& x) { return prod(x); };
constexpr auto chain = [](const auto& x) { return log(1 + exp(sin(x) * x)) + sqrt(1 + square(tanh(x))); };

struct timed {
    std::string name;
    std::function<void(int)> call; ///< so many calls
    std::vector<double> times;
};

template <class F>
std::function<void(int)> repeated(const F& f) {
    return [f](int calls) {
        for (int i = 0; i < calls; ++i) f();
    };
}

void print(const char* title, std::vector<timed> all, double budget) {
    constexpr int calls = 2000;
    const double until = seconds() + budget;
    while (seconds() < until || all[0].times.size() < 5)
        for (timed& one : all) {
            const double start = seconds();
            one.call(calls);
            one.times.push_back((seconds() - start) / calls);
        }
    std::printf("%-36s", title);
    for (timed& one : all) {
        const auto middle = one.times.begin() + static_cast<std::ptrdiff_t>(one.times.size() / 2);
        std::nth_element(one.times.begin(), middle, one.times.end());
        std::printf("  %s %.0f", one.name.c_str(), 1e9 * *middle);
    }
    std::printf("\n");
}

void check(const char* name, double ours, double theirs) {
    if (std::fabs(ours - theirs) <= 1e-12 * (1 + std::fabs(theirs))) return;
    std::fprintf(stderr, "small_calls: %s is %.17g, by hand %.17g\n", name, ours, theirs);
    std::exit(1);
}

/// What a call made stays in memory.
template <class T>
void keep(const T& value) {
    asm volatile("" : : "r"(&value) : "memory");
}

template <class F>
void compare(const char* title, const F&, double (*by)(const numbers&, numbers&), const numbers& x, double budget) {
    auto f = tg::function<tg::graph>(tg::value_and_gradient(F{}), tg::spec<double, ten>{});
    const tg::tensor<double> t(x);
    numbers g;
    const double y = by(x, g);
    const auto plain = f(x);
    const auto tensors = f(t);
    check(title, plain.value, y);
    check(title, tensors.value.item(), y);
    for (std::size_t i = 0; i < ten; ++i) {
        check(title, plain.gradient[i], g[i]);
        check(title, tensors.gradient.data()[i], g[i]);
    }
    print(title,
          {{"by hand", repeated([&] { keep(by(x, g)); }), {}},
           {"arrays", repeated([&] { keep(f(x)); }), {}},
           {"tensors", repeated([&] { keep(f(t)); }), {}}},
          budget);
}

void compare_chain(double budget) {
    auto f = tg::function<tg::graph>(tg::value_and_gradient(chain), tg::spec<double>{});
    volatile double x = 0.7;
    const tg::tensor<double> t(0.7);
    double g = 0;
    const double y = by_hand::chain(x, g);
    const auto plain = f(static_cast<double>(x));
    check("chain", plain.value, y);
    check("chain", plain.gradient, g);
    print("a chain of functions of one number",
          {{"by hand", repeated([&] { keep(by_hand::chain(x, g)); }), {}},
           {"numbers", repeated([&] { keep(f(static_cast<double>(x))); }), {}},
           {"tensors", repeated([&] { keep(f(t)); }), {}}},
          budget);
}

} // namespace

int main(int argc, char** argv) {
    const double budget = argc > 1 ? std::atof(argv[1]) : 0.5;
    const numbers x{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};
    compare("Rosenbrock's function of 10 numbers", rosenbrock, by_hand::rosenbrock, x, budget);
    compare("product of 10 numbers", factors, by_hand::product, x, budget);
    compare_chain(budget);
}
