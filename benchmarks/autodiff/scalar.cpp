#include "contestants.hpp"
#include "scalar_by_hand.hpp"
#include "scalar_problems.hpp"
#include "timing.hpp"

#include <cstdlib>
#include <vector>

/// Times values and gradients of functions in plain loops (scalar_problems.hpp), in double on one thread: by tg::real, by
/// a gradient written by hand, and by CoDiPack and Adept where CMake was given their folders. The contestants alternate;
/// prints medians of processor time in microseconds, and bytes of tape. All gradients are first checked to be equal.
/// Usage: bench_autodiff_scalar [seconds per function]

namespace {

namespace tg = tapegraph;
using contestants::numbers;
using timing::timed;
using vector = std::vector<double>;

struct by_a_hand {
    static constexpr const char* name = "by hand";
    std::size_t bytes = 0;
    template <class F>
    double operator()(const F& f, const vector& x, vector& g) {
        return by_hand::gradient(f, x, g);
    }
};

by_a_hand hand;

template <class F>
void compare(const char* title, const F& f, const vector& x, double budget) {
    vector expected(x.size());
    by_hand::gradient(f, x, expected);
    std::vector<timed> all;
    volatile double sink = 0;
    all.push_back({"value alone", [&] { sink = f(x); }});
    contestants::enter(all, hand, f, x, expected);
    contestants::enter_all(all, f, x, expected);
    timing::print(title, std::move(all), budget);
}

// The Jacobian of 100 results by 100 numbers.
void jacobians(double budget) {
    const std::size_t n = 100;
    const vector x = numbers(n, -1, 1);
    const problems::dense f;
    volatile double sink = 0;
    std::vector<timed> all{{"tg::jacobian", [&] { sink = tg::jacobian(f)(x)[3][4]; }}};
#ifdef BENCH_CODIPACK
    vector forward(n * n);
    all.push_back({"CoDiPack, 8 directions", [&] {
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
                   }});
#endif
#ifdef BENCH_ADEPT
    vector whole(n * n);
    all.push_back({"Adept", [&] {
                       adept::Stack& stack = *adept::active_stack();
                       std::vector<adept::adouble> v(x.begin(), x.end());
                       stack.new_recording();
                       const auto y = f(v);
                       stack.independent(v.data(), v.size());
                       stack.dependent(y.data(), y.size());
                       stack.jacobian(whole.data());
                   }});
#endif
    timing::print("Jacobian 100 x 100", std::move(all), budget);
}

// The Hessian and a product with it.
void second_derivatives(double budget) {
    const auto twenty = numbers(20, -1, 1), thousand = numbers(1000, -1, 1);
    const problems::rosenbrock short_one{20}, long_one{1000};
    volatile double sink = 0;
    timing::print("second derivatives of Rosenbrock's",
                  {{"tg::hessian of 20", [&] { sink = tg::hessian(short_one)(twenty)[1][1]; }},
                   {"tg::hvp of 1,000", [&] { sink = tg::hvp(long_one)(thousand, thousand).product[0]; }}},
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
