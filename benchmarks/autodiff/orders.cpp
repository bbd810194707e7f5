#include "timing.hpp"

#include <tapegraph/expr/derivatives.hpp>
#include <tapegraph/ops/elementwise/activation.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/elementwise/exponential.hpp>
#include <tapegraph/ops/elementwise/trigonometric.hpp>

#ifdef BENCH_CPPAD
#include <cppad/cppad.hpp>
#endif

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

/// Times nested gradients of a function of one plain number, log(1 + exp(sin(x) x)) + sqrt(1 + tanh(x)^2), up to the
/// fifth, and CppAD's fifth derivative where CMake was given its folder. Prints medians of processor time in
/// nanoseconds. Both fifth derivatives are first checked to be equal.
/// Usage: bench_autodiff_orders [seconds]

namespace {

namespace tg = tapegraph;
using timing::keep;

constexpr auto chain = [](const auto& x) {
    using std::exp, std::log, std::sin, std::sqrt, std::tanh;
    const auto t = tanh(x);
    return log(1 + exp(sin(x) * x)) + sqrt(1 + t * t);
};

} // namespace

int main(int argc, char** argv) {
    volatile double at = 0.7;
    const auto first = tg::gradient(chain);
    const auto second = tg::gradient(first);
    const auto third = tg::gradient(second);
    const auto fourth = tg::gradient(third);
    const auto fifth = tg::gradient(fourth);
    std::vector<timing::timed> all{{"value", [&] { keep(chain(static_cast<double>(at))); }},
                                   {"first", [&] { keep(first(static_cast<double>(at))); }},
                                   {"second", [&] { keep(second(static_cast<double>(at))); }},
                                   {"third", [&] { keep(third(static_cast<double>(at))); }},
                                   {"fourth", [&] { keep(fourth(static_cast<double>(at))); }},
                                   {"fifth", [&] { keep(fifth(static_cast<double>(at))); }}};
#ifdef BENCH_CPPAD
    // Recorded once and optimized; a call carries five orders of a Taylor series through the tape.
    std::vector<CppAD::AD<double>> x(1, 0.7), y(1);
    CppAD::Independent(x);
    y[0] = chain(x[0]);
    CppAD::ADFun<double> tape(x, y);
    tape.optimize();
    std::vector<double> series(6, 0.0);
    series[1] = 1;
    const auto replayed = [&] {
        series[0] = at;
        return 120 * tape.Forward(5, series)[5];
    };
    if (std::fabs(replayed() - fifth(0.7)) > 1e-11 * std::fabs(fifth(0.7))) {
        std::printf("fifth derivative %.17g, by CppAD %.17g\n", fifth(0.7), replayed());
        return 1;
    }
    all.push_back({"fifth by CppAD", [&] { keep(replayed()); }});
#endif
    timing::print("derivatives of one number", std::move(all), argc > 1 ? std::atof(argv[1]) : 0.5, 1e9);
}
