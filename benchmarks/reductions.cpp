#include "fma_peak.hpp"

#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/ops/ops.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

/// Times reductions, scans and selections in eager mode relative to the cost of reading memory: the
/// operand summed in 64-byte lanes, with nothing written. The two alternate. Usage: reductions
/// [threads] [elements...]

namespace {

namespace tg = tapegraph;
using tensor = tg::tensor<float>;

template <class T = float>
tg::tensor<T> ramp(const tg::shape& dims, double step) {
    auto t = tg::tensor<T>::uninitialized(dims);
    T* const to = t.mutable_data();
    for (std::int64_t i = 0; i < t.size(); ++i)
        to[i] = static_cast<T>(0.5 + step * static_cast<double>(i * 7919 % 9973));
    return t;
}

/// The lower bound of a read: eight accumulators of 64 bytes, the loop unrolled by the compiler's
/// own rules.
struct read_body {
    template <class Isa>
    TG_INLINE static void run(const float* x, std::int64_t count, float* result) {
        typedef float vector __attribute__((vector_size(64)));
        vector sum[8] = {};
        std::int64_t i = 0;
        for (; i + 128 <= count; i += 128)
            for (int k = 0; k < 8; ++k) {
                vector v;
                __builtin_memcpy(&v, x + i + 16 * k, sizeof(v));
                sum[k] += v;
            }
        for (int k = 1; k < 8; ++k) sum[0] += sum[k];
        *result = sum[0][0];
    }
};

int thread_number = 1;
tensor roof; // read for comparison

void read_roof() {
    const std::int64_t size = roof.size(), part = (size + thread_number - 1) / thread_number;
    const float* const from = roof.data();
    tg::cpu::parallel_team(thread_number > 1 && size >= 32768, [&](int thread, int threads) {
        const std::int64_t share = threads == 1 ? size : part;
        const std::int64_t first = std::min(size, thread * share), last = std::min(size, first + share);
        float result = 0;
        tg::cpu::dispatch<read_body>(from + first, last - first, &result);
        __asm__ volatile("" : : "m"(result) : "memory"); // keeps the result alive
    });
}

/// `bytes`: read and written per element of the domain.
template <class F>
void report(const char* name, std::int64_t elements, double bytes, const F& f) {
    const auto repeats = static_cast<int>(std::max<std::int64_t>(1, 50000 / elements));
    const auto timed = [&](const auto& what) {
        return benchmarks::seconds_of([&] {
                   for (int i = 0; i < repeats; ++i) what();
               }) /
               repeats;
    };
    for (int i = 0; i < 3; ++i) f(), read_roof();
    std::vector<double> times, roofs;
    for (double spent = 0; spent < 0.2 || times.size() < 7;) {
        times.push_back(timed(f));
        roofs.push_back(timed(read_roof));
        spent += times.back() * repeats;
    }
    const double time = benchmarks::median(times), roof_time = benchmarks::median(roofs);
    const double rate = bytes * static_cast<double>(elements) / time / 1e9;
    const double roof_rate = 4 * static_cast<double>(roof.size()) / roof_time / 1e9;
    std::printf("| %s | %lld | %.3f | %.1f | %.1f | %.0f %% |\n", name, static_cast<long long>(elements),
                time / static_cast<double>(elements) * 1e9, rate, roof_rate, 100 * rate / roof_rate);
    std::fflush(stdout);
}

/// The loss of class numbers and its derivative: reads x; reads x, writes dx.
void cross_entropies(std::int64_t n) {
    for (const std::int64_t classes : {10, 1000, 50000}) {
        const std::int64_t rows = std::max<std::int64_t>(1, n / classes);
        const tensor x = ramp({rows, classes}, 1e-5);
        tg::tensor<std::int32_t> labels = tg::tensor<std::int32_t>::uninitialized({rows});
        for (std::int64_t r = 0; r < rows; ++r)
            labels.mutable_data()[r] = static_cast<std::int32_t>(r * 7919 % classes);
        char title[64];
        std::snprintf(title, sizeof title, "cross entropy of %lld classes", static_cast<long long>(classes));
        report(title, x.size(), 4, [&] { tensor r = mean(tg::sparse_softmax_cross_entropy_with_logits(x, labels)); });
        std::snprintf(title, sizeof title, "cross entropy of %lld classes, gradient", static_cast<long long>(classes));
        report(title, x.size(), 12, [&] {
            tg::gradient_tape tape;
            tensor h = x;
            tape.watch(h);
            const tensor loss = mean(tg::sparse_softmax_cross_entropy_with_logits(h, labels));
            tensor dx = tape.gradient(loss, h);
        });
    }
}

/// Normalization with factors and offsets, and its three derivatives: reads x, writes y; reads dy and x twice, writes dx.
void normalizations(std::int64_t n) {
    const auto row = [](const char* name, const tensor& x, const tg::normalization_attributes& how) {
        const tensor gamma = ramp({x.shape()[x.rank() - 1].value}, 1e-3), beta = gamma;
        const auto normalized = [&](const tensor& h, const tensor& factor, const tensor& offset) {
            return tg::invoke<tg::normalization_op>(how, nullptr, std::source_location::current(), h, factor, offset);
        };
        char title[64];
        report(name, x.size(), 8, [&] { tensor r = normalized(x, gamma, beta); });
        std::snprintf(title, sizeof title, "%s, gradients", name);
        report(title, x.size(), 28, [&] {
            tg::gradient_tape tape;
            tensor h = x, factor = gamma, offset = beta;
            tape.watch(h, factor, offset);
            const tensor y = normalized(h, factor, offset);
            auto [dx, dfactor, doffset] = tape.gradient(y, h, factor, offset);
        });
    };
    constexpr double epsilon = 1e-3;
    for (const std::int64_t width : {64, 256, 1000}) {
        char name[64];
        std::snprintf(name, sizeof name, "layer normalization of %lld", static_cast<long long>(width));
        row(name, ramp({std::max<std::int64_t>(1, n / width), width}, 1e-5),
            {.first = 1, .last = 1, .epsilon = epsilon});
    }
    const tensor images = ramp({std::max<std::int64_t>(1, n / 65536), 1024, 64}, 1e-5);
    row("group normalization, 8 of 64", images, {.first = 1, .last = 2, .groups = 8, .epsilon = epsilon});
    row("group normalization, 32 of 64", images, {.first = 1, .last = 2, .groups = 32, .epsilon = epsilon});
    row("instance normalization, 64", images, {.first = 1, .last = 2, .groups = 64, .epsilon = epsilon});
}

void measure(std::int64_t n) {
    const tensor x = ramp({n}, 1e-5), y = ramp({n}, 2e-5);
    roof = ramp({n}, 1e-5);
    report("sum", n, 4, [&] { tensor r = sum(x); });
    report("max", n, 4, [&] { tensor r = max(x); });
    report("mean", n, 4, [&] { tensor r = mean(x); });
    report("prod", n, 4, [&] { tensor r = prod(x); });
    report("sum of x y", n, 8, [&] { tensor r = sum(x * y); });
    report("sum of squares", n, 4, [&] { tensor r = sum(square(x)); });
    report("norm", n, 4, [&] { tensor r = norm(x); });
    report("norm of x - 1", n, 4, [&] { tensor r = norm(x - 1); });
    report("argmax", n, 4, [&] { tg::tensor<std::int32_t> r = argmax(x); });
    report("any of x > 1000", n, 4, [&] { tg::tensor<bool> r = any(x > 1000); });
    report("count_nonzero", n, 4, [&] { tg::tensor<std::int64_t> r = count_nonzero(x); });
    for (const std::int64_t width : {4, 10, 33, 150, 1000}) {
        const tensor m = ramp({std::max<std::int64_t>(1, n / width), width}, 1e-5);
        char name[64];
        const auto row = [&](const char* what, double bytes, const auto& f) {
            std::snprintf(name, sizeof name, "%s of %lld", what, static_cast<long long>(width));
            report(name, m.size(), bytes, f);
        };
        row("sum over rows", 4 + 4.0 / static_cast<double>(width), [&] { tensor r = sum(m, 1); });
        row("sum over columns, rows", 4, [&] { tensor r = sum(m, 0); });
        row("max over rows", 4 + 4.0 / static_cast<double>(width), [&] { tensor r = max(m, 1); });
        row("max over columns, rows", 4, [&] { tensor r = max(m, 0); });
        row("argmax over rows", 4 + 4.0 / static_cast<double>(width),
            [&] { tg::tensor<std::int32_t> r = argmax(m, 1); });
    }
    for (const std::int64_t width : {7, 64, 300}) {
        const tensor m = ramp({std::max<std::int64_t>(1, n / (32 * width)), 32, width}, 1e-5);
        char name[64];
        std::snprintf(name, sizeof name, "sum over the middle of [n, 32, %lld]", static_cast<long long>(width));
        report(name, m.size(), 4 + 4.0 / 32, [&] { tensor r = sum(m, 1); });
        std::snprintf(name, sizeof name, "max over the middle of [n, 32, %lld]", static_cast<long long>(width));
        report(name, m.size(), 4 + 4.0 / 32, [&] { tensor r = max(m, 1); });
    }
    const tg::tensor<double> d = ramp<double>({n / 2}, 1e-5);
    report("sum of doubles", n / 2, 8, [&] { tg::tensor<double> r = sum(d); });
    const tg::tensor<std::int32_t> k = ramp<std::int32_t>({n}, 1);
    report("sum of int32", n, 4, [&] { tg::tensor<std::int32_t> r = sum(k); });
    report("max of int32", n, 4, [&] { tg::tensor<std::int32_t> r = max(k); });
    // Operations that read more than once: one pass for the mean and one for the squares; softmax
    // reads x twice, writes and reads the exponentials, writes the quotients.
    const tensor m = ramp({std::max<std::int64_t>(1, n / 128), 128}, 1e-5);
    report("variance", n, 8, [&] { tensor r = variance(x); });
    report("logsumexp over rows of 128", m.size(), 8, [&] { tensor r = logsumexp(m, 1); });
    report("softmax over rows of 128", m.size(), 24, [&] { tensor r = softmax(m); });
    cross_entropies(n);
    normalizations(n);
    report("cumulative_sum over rows of 128", m.size(), 8, [&] { tensor r = cumulative_sum(m); });
    report("cumulative_sum over columns", m.size(), 8, [&] { tensor r = cumulative_sum(m, 0); });
    report("top_k of 5, rows of 128", m.size(), 4, [&] { auto r = top_k(m, 5); });
    report("sort rows of 128", m.size(), 8, [&] { tensor r = sort(m); });
    report("max: value and gradient", n, 24, [&] {
        tg::gradient_tape tape;
        tensor w = x;
        tape.watch(w);
        const tensor r = max(w);
        auto g = tape.gradient(r, w);
    });
}

} // namespace

int main(int argc, char** argv) {
    thread_number = argc > 1 ? std::atoi(argv[1]) : 2;
    if (thread_number < 1) {
        std::fprintf(stderr, "usage: reductions [threads]\n");
        return 2;
    }
    tg::set_thread_count(thread_number);
    benchmarks::processor_time() = thread_number == 1; // robust where others use the machine
    std::printf("%d threads (small tensors run on one)\n\n| reduction | elements | ns an element | GB/s | reading, "
                "GB/s | of it |\n"
                "| --- | ---: | ---: | ---: | ---: | ---: |\n",
                thread_number);
    for (int i = 2; i < argc; ++i) measure(std::max(1000LL, std::atoll(argv[i])));
    if (argc <= 2)
        for (const std::int64_t n : {std::int64_t{100000}, std::int64_t{30000000}}) measure(n);
}
