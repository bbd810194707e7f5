#include <cuda/device_array.hpp>

#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/attention/attention.cuh>

#include <algorithm>
#include <cmath>
#include <limits>

namespace cuda_flash_attention_test {

/// Attention by tiles on a device, in each math_mode, against the CPU's kernels.

using namespace tapegraph;
using namespace tapegraph::testing;

namespace {

struct setting {
    std::int64_t batch, time, heads, kv_heads, depth, steps, width;
    attention_attributes how;
    extents bias{1, 1, 1, 1};
    std::size_t shift = 0; ///< bytes by which operands miss an alignment
};
const setting cases[]{
    {1, 1, 1, 1, 1, 1, 1, {.scale = 0.5}},
    {1, 64, 1, 1, 64, 64, 64, {.scale = 0.125}},
    {1, 64, 2, 2, 64, 64, 64, {.scale = 0.125}, {1, 1, 1, 1}, 4},
    {2, 65, 2, 1, 64, 65, 64, {.scale = 0.125, .causal = 1}},
    {1, 130, 2, 2, 63, 130, 8, {.scale = 0.125, .causal = 1, .equal = 1}},
    {1, 17, 1, 1, 80, 130, 128, {.scale = 0.125}},
    {1, 130, 1, 1, 128, 17, 80, {.scale = 0.125, .biased = 1}, {1, 1, 130, 17}},
    {2, 65, 2, 1, 8, 64, 63, {.scale = 0.25, .biased = 1, .equal = 1}, {2, 1, 1, 64}},
    {1, 65, 4, 2, 64, 130, 64, {.scale = 0.125, .causal = 1, .ends = 1, .drops = 1, .rate = 0.4}},
    {1, 130, 1, 1, 8, 65, 8, {.scale = 0.25, .causal = 1, .offset = -70, .equal = 1, .drops = 1, .rate = 0.4}},
    {1, 200, 2, 1, 4, 70, 4, {.scale = 0.5, .causal = 1, .offset = -100}},
    {1, 3, 1, 1, 132, 66, 130, {.scale = 0.0625, .biased = 1, .drops = 1, .rate = 0.25}, {1, 1, 3, 1}},
    {1, 2, 1, 1, 200, 3, 4, {.scale = 0.0625}}, // does not fit: the plain kernels
};

/// Numbers of four bits, whose products and short sums are exact in TF32 as well.
argument made(const extents& e, std::uint32_t seed, std::size_t shift = 0) {
    argument a = filled<float>(e, [=](std::int64_t i) { return scattered(i, 17, seed) / 8.0 - 1; });
    a.shift = shift;
    return a;
}

template <class Op>
std::vector<float> on_device(math_mode mode, const attention_attributes& how, const std::vector<argument>& in,
                             std::int64_t size) {
    const math_mode_scope scope(mode);
    return run_on_device<Op, float>(how, in, {shaped<float>({size})}).template values<float>();
}

/// With exact scores, weights and slopes are rounded to 2^-11 of themselves in TF32, and so is a sum of
/// their products with numbers up to 1 relative to the largest. Floats are added in another order.
void check_near(math_mode mode, const std::vector<float>& got, const std::vector<float>& want, std::size_t begin,
                std::size_t end) {
    double largest = 1, worst = 0;
    for (std::size_t i = begin; i < end; ++i)
        if (std::isfinite(want[i])) largest = std::max(largest, std::abs(static_cast<double>(want[i])));
    for (std::size_t i = begin; i < end; ++i) {
        if (!std::isfinite(want[i])) {
            CHECK((got[i] == want[i] || (got[i] != got[i] && want[i] != want[i])));
            continue;
        }
        const double off = std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i]));
        worst = off <= worst ? worst : off; // NaN stays NaN
    }
    CHECK(worst <= largest * (mode == math_mode::tf32 ? 0x1p-10 : 0x1p-19));
}

struct attention_call {
    const setting& s;
    argument q, k, v, bias, address;
    std::int64_t results, queries;

    explicit attention_call(const setting& of)
        : s(of),
          q(made({s.batch, s.time, s.heads, s.depth}, 1, s.shift)),
          k(made({s.batch, s.steps, s.kv_heads, s.depth}, 3, s.shift)),
          v(made({s.batch, s.steps, s.kv_heads, s.width}, 5, s.shift)),
          bias(filled<float>(s.bias,
                             [&](std::int64_t i) {
                                 // Some keys are hidden, and all of the second record's if queries share the mask.
                                 const bool hidden = i % 4 == 1 || (s.bias[2] == 1 && s.bias[0] > 1 && i >= s.steps);
                                 return hidden ? -std::numeric_limits<double>::infinity() : scattered(i, 5, 7) / 4.0;
                             })),
          address(filled<float>({10}, [](std::int64_t i) { return static_cast<double>(17 * i + 3); })),
          results(s.batch * s.time * s.heads * s.width),
          queries(s.batch * s.heads * s.time) {}

    void check(math_mode mode) const {
        const std::int64_t size = results + 2 * queries;
        const std::vector<argument> in{q, k, v, bias, address};
        const auto want = run_on_cpu<attention_op, float>(s.how, in, {shaped<float>({size})}).template values<float>();
        const auto got = on_device<attention_op>(mode, s.how, in, size);
        REQUIRE(got.size() == want.size());
        const auto middle = static_cast<std::size_t>(results);
        check_near(mode, got, want, 0, middle);
        check_near(mode, got, want, middle, got.size());

        const auto given = filled<float>(
            {size}, [&](std::int64_t i) { return static_cast<double>(want[static_cast<std::size_t>(i)]); });
        const std::vector<argument> all{made({size}, 11, s.shift), q, k, v, bias, address, given};
        const std::int64_t of_q = q.view.elements(), of_k = k.view.elements(), slopes = of_q + of_k + v.view.elements();
        const auto right =
            run_on_cpu<attention_gradient_op, float>(s.how, all, {shaped<float>({slopes})}).template values<float>();
        const auto found = on_device<attention_gradient_op>(mode, s.how, all, slopes);
        REQUIRE(found.size() == right.size());
        const auto first = static_cast<std::size_t>(of_q), second = static_cast<std::size_t>(of_q + of_k);
        check_near(mode, found, right, 0, first);
        check_near(mode, found, right, first, second);
        check_near(mode, found, right, second, found.size());
    }
};

void set(argument& a, std::int64_t element, float value) {
    std::memcpy(a.values.data() + static_cast<std::size_t>(element) * sizeof value, &value, sizeof value);
}

} // namespace

TEST_CASE("flash attention and its derivative, in each math_mode") {
    for (const setting& s : cases)
        for (const math_mode mode : {math_mode::fp32, math_mode::tf32}) {
            CAPTURE(s.time);
            CAPTURE(s.steps);
            CAPTURE(s.depth);
            CAPTURE(name_of(mode));
            attention_call(s).check(mode);
        }
}

TEST_CASE("flash attention takes no notice of keys that are not seen, even infinite ones") {
    const setting s{1, 67, 2, 1, 8, 66, 6, {.scale = 0.25, .biased = 1}, {1, 1, 1, 66}};
    attention_call o(s);
    for (std::int64_t key = 1; key < s.steps; key += 4) // hidden from all queries
        for (std::int64_t c = 0; c < s.width; ++c) {
            set(o.k, key * s.depth + c, std::numeric_limits<float>::quiet_NaN());
            set(o.v, key * s.width + c, std::numeric_limits<float>::infinity());
        }
    for (const math_mode mode : {math_mode::fp32, math_mode::tf32}) o.check(mode);
}

TEST_CASE("flash attention has an infinite value only where a query sees it") {
    const setting s{1, 70, 1, 1, 4, 70, 4, {.scale = 0.25, .causal = 1}};
    attention_call o(s);
    set(o.v, 68 * s.width + 1, std::numeric_limits<float>::infinity());
    const std::vector<argument> in{o.q, o.k, o.v, o.bias, o.address};
    for (const math_mode mode : {math_mode::fp32, math_mode::tf32}) {
        const auto y = on_device<attention_op>(mode, s.how, in, o.results + 2 * o.queries);
        for (std::int64_t i = 0; i < o.results; ++i) {
            const bool sees = i / s.width >= 68 && i % s.width == 1;
            CHECK(std::isinf(y[static_cast<std::size_t>(i)]) == sees);
            CHECK(std::isfinite(y[static_cast<std::size_t>(i)]) == !sees);
        }
    }
}

#ifdef TG_SIMT
// Asynchronous copies of the executor arrive as late as they may, which hides what a barrier before them is for: in TF32,
// where tiles are fetched ahead, some are unnoticed.
TEST_CASE("flash attention needs its barriers, and has the same bits in any order of threads") {
    const setting s{1, 130, 1, 1, 4, 130, 4, {.scale = 0.25, .biased = 1}, {1, 1, 130, 130}};
    attention_call o(s);
    // Key 5 and query 7 are hidden, and products with them would be NaN.
    constexpr float infinity = std::numeric_limits<float>::infinity();
    argument dy = made({o.results + 2 * o.queries}, 11);
    for (std::int64_t i = 0; i < s.time; ++i)
        set(o.bias, i * s.steps + 5, -infinity), set(o.bias, 7 * s.steps + i, -infinity);
    set(o.k, 5 * s.depth, infinity), set(o.v, 5 * s.width, infinity);
    set(o.q, 7 * s.depth, infinity), set(dy, 7 * s.width, infinity);
    const std::int64_t size = o.results + 2 * o.queries, slopes = 3 * o.q.view.elements();
    const std::vector<argument> in{o.q, o.k, o.v, o.bias, o.address};
    for (const math_mode mode : {math_mode::fp32, math_mode::tf32}) {
        const auto y = on_device<attention_op>(mode, s.how, in, size);
        const auto given =
            filled<float>({size}, [&](std::int64_t i) { return static_cast<double>(y[static_cast<std::size_t>(i)]); });
        const std::vector<argument> all{dy, o.q, o.k, o.v, o.bias, o.address, given};
        const auto by = on_device<attention_gradient_op>(mode, s.how, all, slopes);
        std::size_t found = 0;
        std::string unnoticed;
        for (const std::string& text :
             simt::unnoticed_barriers([&] { return on_device<attention_op>(mode, s.how, in, size) == y; }, found, 2))
            unnoticed += text + "; ";
        for (const std::string& text : simt::unnoticed_barriers(
                 [&] { return on_device<attention_gradient_op>(mode, s.how, all, slopes) == by; }, found, 2))
            unnoticed += text + "; ";
        if (mode == math_mode::fp32) CHECK(unnoticed == "");
        CHECK(unnoticed.find("wrong") == std::string::npos); // with all barriers, in some order
    }
}
#endif

} // namespace cuda_flash_attention_test
