#include "timing.hpp"

#include <tapegraph/tapegraph.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

/// Times values and gradients of functions so small that the call is most of their time: by hand, and compiled by
/// tg::function, called with std::arrays, a structure and tensors. Contestants alternate; prints medians of processor time in
/// nanoseconds. All results are first checked to be equal.
/// Usage: bench_autodiff_small_calls [seconds per function]

namespace {

namespace tg = tapegraph;

inline constexpr std::size_t ten = 10;
using numbers = std::array<double, ten>;

/// A structure as argument, and as gradient.
template <class N>
struct spring {
    N mass, stiffness, position, velocity;
};

using timing::keep;

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

[[gnu::noinline]] double energy(const spring<double>& s, spring<double>& g) {
    g = {0.5 * s.velocity * s.velocity, 0.5 * s.position * s.position, s.stiffness * s.position, s.mass * s.velocity};
    return 0.5 * s.mass * s.velocity * s.velocity + 0.5 * s.stiffness * s.position * s.position;
}

} // namespace by_hand

constexpr auto rosenbrock = [](const auto& x) {
    const auto a = slice(x, {{0, ten - 1}}), b = slice(x, {{1, ten}});
    return sum(100 * square(b - square(a)) + square(1 - a));
};
constexpr auto factors = [](const auto& x) { return prod(x); };
constexpr auto chain = [](const auto& x) { return log(1 + exp(sin(x) * x)) + sqrt(1 + square(tanh(x))); };

constexpr auto energy = [](const auto& s) {
    return 0.5 * s.mass * s.velocity * s.velocity + 0.5 * s.stiffness * s.position * s.position;
};

inline constexpr double nanoseconds = 1e9;

void check(const char* name, double ours, double theirs) {
    if (std::fabs(ours - theirs) <= 1e-12 * (1 + std::fabs(theirs))) return;
    std::fprintf(stderr, "small_calls: %s is %.17g, by hand %.17g\n", name, ours, theirs);
    std::exit(1);
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
    timing::print(
        title,
        {{"by hand", [&] { keep(by(x, g)); }}, {"arrays", [&] { keep(f(x)); }}, {"tensors", [&] { keep(f(t)); }}},
        budget, nanoseconds);
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
    timing::print("a chain of functions of one number",
                  {{"by hand", [&] { keep(by_hand::chain(x, g)); }},
                   {"numbers", [&] { keep(f(static_cast<double>(x))); }},
                   {"tensors", [&] { keep(f(t)); }}},
                  budget, nanoseconds);
}

void compare_energy(double budget) {
    auto f = tg::function<tg::graph>(tg::value_and_gradient(energy), spring<tg::spec<double>>{});
    const spring<double> s{2, 3, 0.5, 0.25};
    spring<double> g{};
    const double y = by_hand::energy(s, g);
    const auto ours = f(s);
    check("energy", ours.value, y);
    check("energy", ours.gradient.mass, g.mass);
    check("energy", ours.gradient.stiffness, g.stiffness);
    check("energy", ours.gradient.position, g.position);
    check("energy", ours.gradient.velocity, g.velocity);
    timing::print("energy of a spring, a structure",
                  {{"by hand", [&] { keep(by_hand::energy(s, g)); }}, {"structure", [&] { keep(f(s)); }}}, budget,
                  nanoseconds);
}

} // namespace

int main(int argc, char** argv) {
    const double budget = argc > 1 ? std::atof(argv[1]) : 0.5;
    const numbers x{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};
    compare("Rosenbrock's function of 10 numbers", rosenbrock, by_hand::rosenbrock, x, budget);
    compare("product of 10 numbers", factors, by_hand::product, x, budget);
    compare_chain(budget);
    compare_energy(budget);
}
