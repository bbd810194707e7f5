#include "fma_peak.hpp"

#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/ops/elementwise/activation.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/elementwise/power.hpp>
#include <tapegraph/ops/elementwise/trigonometric.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

/// Times fused elementwise formulas and reductions in eager mode relative to a triad measured in
/// the same run: nanoseconds per element and GB/s of the operands that each has to read and write.
/// Usage: elementwise [threads]

namespace {

namespace tg = tapegraph;
using tensor = tg::tensor<float>;

tensor ramp(const tg::shape& dims, float step) {
    auto t = tensor::uninitialized(dims);
    float* const to = t.mutable_data();
    for (std::int64_t i = 0; i < t.size(); ++i) to[i] = 0.5f + step * static_cast<float>(i % 97);
    return t;
}

double triad_rate = 0;

/// `streams`: floats read and written per element.
template <class F>
void report(const char* name, std::int64_t elements, double streams, const F& f) {
    for (int i = 0; i < 3; ++i) f();
    std::vector<double> times;
    const auto repeats = static_cast<int>(std::max<std::int64_t>(1, 20000 / elements));
    for (double spent = 0; spent < 0.25 || times.size() < 7;) {
        const double time = benchmarks::seconds_of([&] {
            for (int i = 0; i < repeats; ++i) f();
        });
        spent += time;
        times.push_back(time / repeats);
    }
    const double time = benchmarks::median(times);
    const double rate = streams * 4 * static_cast<double>(elements) / time / 1e9;
    std::printf("| %s | %lld | %.3f | %.1f | %.0f %% |\n", name, static_cast<long long>(elements),
                time / static_cast<double>(elements) * 1e9, rate, 100 * rate / triad_rate);
    std::fflush(stdout);
}

void measure(std::int64_t n, int threads) {
    triad_rate = benchmarks::triad(threads, static_cast<std::size_t>(3 * n) * sizeof(float), 0.1);
    std::printf("| triad a = b + s c (plain loop) | %lld | %.3f | %.1f | 100 %% |\n", static_cast<long long>(n),
                12 / triad_rate, triad_rate);
    const tensor x = ramp({n}, 1e-3f), a = ramp({n}, 2e-3f), b = ramp({n}, 3e-3f), c = ramp({n}, 1e-2f);
    report("x + a", n, 3, [&] { tensor y = x + a; });
    report("relu(x a + b)", n, 4, [&] { tensor y = relu(x * a + b); });
    report("tanh(a x + b) c", n, 5, [&] { tensor y = tanh(a * x + b) * c; });
    report("exp(-x^2 / 2)", n, 2, [&] { tensor y = exp(-(square(x) / 2)); });
    report("sigmoid(x)", n, 2, [&] { tensor y = sigmoid(x); });
    report("sum(x)", n, 1, [&] { tensor y = sum(x); });
    report("sum((x - a)^2)", n, 2, [&] { tensor y = sum(square(x - a)); });
    const std::int64_t columns = 150, rows = std::max<std::int64_t>(1, n / columns);
    const tensor m = ramp({rows, columns}, 1e-3f), bias = ramp({columns}, 1e-2f);
    report("relu(m + bias), rows of 150", rows * columns, 2, [&] { tensor y = relu(m + bias); });
    report("sum of columns, rows of 150", rows * columns, 1, [&] { tensor y = sum(m, 0); });
    report("sum of rows of 150", rows * columns, 1, [&] { tensor y = sum(m, 1); });
    // Forward, and one fused kernel for the gradients of all three operands: reads 3 + 4, writes 1 + 3.
    report("tanh(a x + b): value and gradients", n, 11, [&] {
        tg::gradient_tape tape;
        tensor p = a, q = x, r = b;
        tape.watch(p, q, r);
        const tensor y = tanh(p * q + r);
        auto [dp, dq, dr] = tape.gradient(y, p, q, r);
    });
}

} // namespace

int main(int argc, char** argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
    if (threads < 1) {
        std::fprintf(stderr, "usage: elementwise [threads]\n");
        return 2;
    }
    tg::set_thread_count(threads);
    benchmarks::processor_time() = threads == 1; // robust where others use the machine
    std::printf("%d threads (small tensors run on one)\n\n| formula, float | elements | ns an element | GB/s | of triad |\n"
                "| --- | ---: | ---: | ---: | ---: |\n",
                threads);
    for (const std::int64_t n : {std::int64_t{1000}, std::int64_t{100000}, std::int64_t{10000000}}) measure(n, threads);
}
