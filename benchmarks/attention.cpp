#include <tapegraph/ops/attention/attention.hpp>
#include <tapegraph/tapegraph.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <string_view>
#include <vector>

/// Measures attention and its gradient in eager mode, 8 heads of 64 features, float, one record: median
/// milliseconds of processor time of all threads for the value, and for the value and all derivatives;
/// and of the formula of two products and a softmax up to a length of 2,048. attention.py is the same
/// in PyTorch, and runs this in turns.
///
/// Usage: attention [--threads 1] [--length 0] [--causal 0] [--rounds 5]   (length 0: 128 to 8,192)

namespace {

namespace tg = tapegraph;

double now() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}
template <class F>
double median(int rounds, const F& f) {
    std::vector<double> times;
    f();
    for (int i = 0; i < rounds; ++i) {
        const double begin = now();
        f();
        times.push_back(now() - begin);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

} // namespace

int main(int count, char** words) {
    int threads = 1, length = 0, causal = 0, rounds = 5;
    for (int i = 1; i + 1 < count; i += 2) {
        const std::string_view name = words[i], value = words[i + 1];
        int& to = name == "--threads" ? threads : name == "--length" ? length : name == "--causal" ? causal : rounds;
        std::from_chars(value.data(), value.data() + value.size(), to);
    }
    tg::set_thread_count(threads);
    const bool hides = causal != 0;
    for (const std::int64_t n : {128, 256, 512, 1024, 2048, 4096, 8192}) {
        if (length != 0 && length != n) continue;
        const auto q = tg::random::normal<float>({1, n, 8, 64}, {.seed = 1}),
                   k = tg::random::normal<float>({1, n, 8, 64}, {.seed = 2}),
                   v = tg::random::normal<float>({1, n, 8, 64}, {.seed = 3}),
                   dy = tg::random::normal<float>({1, n, 8, 64}, {.seed = 4});
        const auto f = [&](auto a, auto b, auto c) { return tg::attention(a, b, c, {.causal = hides}); };
        const auto formula = [&](auto a, auto b, auto c) {
            const auto x = tg::transpose(a, {0, 2, 1, 3}), y = tg::transpose(b, {0, 2, 1, 3}),
                       z = tg::transpose(c, {0, 2, 1, 3});
            const auto weights = tg::softmax(tg::matmul(tg::eval(x * 0.125), y, {.transpose_b = true}), -1);
            return tg::transpose(tg::matmul(weights, z), {0, 2, 1, 3});
        };
        const auto slopes = [&](const auto& of) {
            return tg::gradient([&](auto a, auto b, auto c) { return sum(of(a, b, c) * dy); });
        };
        const double value = median(rounds, [&] { const tg::tensor<float> y = f(q, k, v); }),
                     all = median(rounds, [&] { slopes(f)(q, k, v); }),
                     before = n <= 2048 && !hides ? median(rounds, [&] { slopes(formula)(q, k, v); }) : 0;
        std::printf("length %5d value %9.3f all %9.3f formula %9.3f\n", static_cast<int>(n), value, all, before);
        std::fflush(stdout);
    }
}
