#include <cuda/device_array.hpp>

#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/attention/attention.cuh>

#include <cmath>
#include <limits>

namespace cuda_attention_test {

/// Attention and its derivative on a device, against the CPU's kernels.

using namespace tapegraph;
using namespace tapegraph::testing;

namespace {

struct setting {
    std::int64_t batch, time, heads, kv_heads, depth, steps, width;
    attention_attributes how;
    extents bias;
};
const setting cases[]{
    {1, 1, 1, 1, 1, 1, 1, {.scale = 0.5}, {1, 1, 1, 1}},
    {2, 17, 2, 2, 5, 19, 3, {.scale = 0.5}, {1, 1, 1, 1}},
    {1, 33, 4, 2, 17, 16, 129, {.scale = 0.25}, {1, 1, 1, 1}},
    {1, 7, 1, 1, 130, 40, 2, {.scale = 0.25}, {1, 1, 1, 1}},
    {1, 20, 2, 1, 4, 37, 4, {.scale = 1, .causal = 1}, {1, 1, 1, 1}},
    {1, 5, 1, 1, 4, 37, 4, {.scale = 1, .causal = 1, .offset = -1, .ends = 1}, {1, 1, 1, 1}},
    {1, 6, 2, 1, 3, 4, 2, {.scale = 1, .causal = 1, .offset = -3}, {1, 1, 1, 1}},
    {1, 6, 2, 1, 3, 4, 2, {.scale = 1, .causal = 1, .offset = -3, .equal = 1}, {1, 1, 1, 1}},
    {2, 18, 2, 1, 3, 20, 2, {.scale = 1, .biased = 1}, {2, 2, 18, 20}},
    {2, 18, 2, 1, 3, 20, 2, {.scale = 1, .biased = 1, .equal = 1}, {2, 1, 1, 20}},
    {2, 18, 2, 1, 3, 20, 2, {.scale = 1, .causal = 1, .drops = 1, .rate = 0.4}, {1, 1, 1, 1}},
    {2, 5, 1, 1, 3, 6, 2, {.scale = 1, .causal = 1, .offset = -2, .equal = 1, .drops = 1, .rate = 0.4}, {1, 1, 1, 1}},
    {0, 3, 2, 2, 2, 3, 2, {}, {1, 1, 1, 1}},
    {2, 0, 2, 2, 2, 3, 2, {}, {1, 1, 1, 1}},
    {2, 3, 2, 2, 2, 0, 2, {}, {1, 1, 1, 1}},
    {2, 3, 2, 2, 2, 3, 0, {}, {1, 1, 1, 1}},
};

template <class Op, class T>
std::vector<T> check_near(const attention_attributes& how, const std::vector<argument>& in, std::int64_t size,
                          double scale) {
    const auto want = run_on_cpu<Op, T>(how, in, {shaped<T>({size})}).template values<T>();
    const auto got = run_on_device<Op, T>(how, in, {shaped<T>({size})}).template values<T>();
    REQUIRE(want.size() == got.size());
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const double bound = scale * std::numeric_limits<T>::epsilon() * (std::abs(static_cast<double>(want[i])) + 1);
        const double off = std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i])) / bound;
        worst = off <= worst ? worst : off; // NaN stays NaN
    }
    CHECK(worst <= 1);
    return want;
}

} // namespace

// Both add at most some dozen products of numbers below 2 for a score, and as many weighted ones, in different orders.
TEST_CASE_TEMPLATE("attention and its derivative on a device", T, float, double) {
    for (const setting& s : cases) {
        CAPTURE(s.time);
        CAPTURE(s.steps);
        CAPTURE(s.how.equal);
        const auto made = [](const extents& e, std::int64_t seed) {
            return filled<T>(e, [=](std::int64_t i) { return scattered(i, 1000, seed) / 500.0 - 1; });
        };
        const extents of_q{s.batch, s.time, s.heads, s.depth}, of_k{s.batch, s.steps, s.kv_heads, s.depth},
            of_v{s.batch, s.steps, s.kv_heads, s.width};
        const auto q = made(of_q, 1), k = made(of_k, 3), v = made(of_v, 5);
        // Every fourth key is hidden, and all of those of the second record's if all queries share the mask.
        const auto bias = filled<T>(s.bias, [&](std::int64_t i) {
            const bool hidden = i % 4 == 1 || (s.bias[2] == 1 && i >= s.steps);
            return hidden ? -std::numeric_limits<double>::infinity() : scattered(i, 100, 7) / 100.0;
        });
        const auto address = filled<T>({10}, [](std::int64_t i) { return static_cast<double>(17 * i + 3); });
        const std::int64_t results = s.batch * s.time * s.heads * s.width, queries = s.batch * s.heads * s.time;
        const auto y = check_near<attention_op, T>(s.how, {q, k, v, bias, address}, results + 2 * queries, 64);
        const auto given = filled<T>({results + 2 * queries}, [&](std::int64_t i) {
            return static_cast<double>(y[static_cast<std::size_t>(i)]);
        });
        const auto dy = made({results + 2 * queries}, 11);
        const std::int64_t slopes = s.batch * (s.time * s.heads * s.depth + s.steps * s.kv_heads * (s.depth + s.width));
        check_near<attention_gradient_op, T>(s.how, {dy, q, k, v, bias, address, given}, slopes, 256);
    }
}

TEST_CASE_TEMPLATE("random numbers at an address on a device are the CPU's", T, float, double) {
    const auto address = filled<T>({10}, [](std::int64_t i) { return static_cast<double>(65535 - 1000 * i); });
    const std::vector<argument> in{address};
    const auto want = run_on_cpu<numbers_at_op, T>({}, in, {shaped<T>({3, 67})}).template values<T>();
    const auto got = run_on_device<numbers_at_op, T>({}, in, {shaped<T>({3, 67})}).template values<T>();
    CHECK(want == got);
}

} // namespace cuda_attention_test
