#include <tapegraph/ops/attention/cpu_tile.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace attention_tile_test {

using namespace tapegraph::cpu;

namespace {

#if defined(__FMA__) || defined(__FP_FAST_FMA) || defined(__aarch64__) || defined(__s390x__) ||                        \
    defined(__ARM_FEATURE_FMA)
constexpr bool baseline_fuses = true;
#else
constexpr bool baseline_fuses = false;
#endif

/// a * b + c as the instruction set has it.
float sum(float a, float b, float c) {
    if (active_instruction_set() != instruction_set::baseline || baseline_fuses) return std::fma(a, b, c);
    const float product = a * b;
    return product + c;
}

/// e^x by the same steps as attention's, each rounding where it is written.
float exponential(float x) {
    if (std::isnan(x)) return x;
    const float c = std::max(x, -88.0f), magic = 0x1.8p23f + 127; // rounds to an integer
    const float k = sum(c, 1.44269504f, magic) - magic, r = sum(k, -0.693147182f, c);
    float q = 0.00831238f;
    for (const float coefficient : {0.0418914f, 0.1666712f, 0.4999922f, 1.0f, 1.0f}) q = sum(q, r, coefficient);
    return k <= -127 ? 0 : std::ldexp(q, static_cast<int>(k));
}

bool same(float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

} // namespace

TEST_CASE(
    "the exponentials of attention round where the formula says, on every instruction set and by every compiler") {
    constexpr std::int64_t keys = 37, columns = 16;
    const instruction_set before = active_instruction_set();
    for (const instruction_set set : {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
        if (!is_compiled(set)) continue;
        set_instruction_set(set);
        if (active_instruction_set() != set) continue;
        CAPTURE(static_cast<int>(set));
        std::vector<float> scores(keys * columns), largest(columns, attention_detail::not_seen<float>), total(columns),
            factor(columns);
        for (std::size_t i = 0; i < scores.size(); ++i)
            scores[i] = static_cast<float>(static_cast<int>(i * 7919 % 4001) - 2000) / 23; // -87 to 87, in no order
        scores[5] = attention_detail::not_seen<float>;
        for (int pass = 0; pass < 2; ++pass) { // the second meets sums of the first
            const std::vector<float> x = scores, old = largest, sums = total;
            detail::dispatch_fused<attention_detail::raise_body<float>>(scores.data(), keys, columns, largest.data(),
                                                                        total.data(), factor.data());
            int wrong = 0;
            for (std::int64_t c = 0; c < columns; ++c) {
                float best = old[c], added = 0;
                for (std::int64_t k = 0; k < keys; ++k) best = std::max(best, x[k * columns + c]);
                for (std::int64_t k = 0; k < keys; ++k) {
                    const float e = exponential(x[k * columns + c] - best);
                    wrong += !same(scores[k * columns + c], e);
                    added += e;
                }
                wrong += !same(factor[c], exponential(old[c] - best));
                wrong += !same(total[c], sum(sums[c], factor[c], added));
            }
            CHECK(wrong == 0);
            for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = x[i] * 1.01f + 0.3f;
        }
    }
    set_instruction_set(before);
}

TEST_CASE("the exponentials of attention are near the exact ones, and 0 where they are not seen") {
    constexpr std::int64_t keys = 10007, columns = 16;
    std::vector<float> scores(keys * columns), largest(columns, 0.0f), total(columns), factor(columns);
    for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = -88.5f * static_cast<float>(i * i % 99991) / 99991;
    scores[3] = attention_detail::not_seen<float>;
    scores[4] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> x = scores;
    detail::dispatch_fused<attention_detail::raise_body<float>>(scores.data(), keys, columns, largest.data(),
                                                                total.data(), factor.data());
    double worst = 0;
    for (std::size_t i = 5; i < x.size(); ++i) {
        const double e = std::exp(static_cast<double>(x[i]));
        if (x[i] < -88)
            CHECK(scores[i] == 0);
        else if (x[i] > -87) // normal numbers
            // The polynomial errs by 1.1e-7, ln 2 as a float by 3e-9 |x| (6e-8 |x| where products round by themselves).
            worst = std::max(worst, std::abs(static_cast<double>(scores[i]) - e) / e / (2.5e-7 - 6.5e-8 * x[i]));
    }
    CHECK(worst < 1);
    CHECK(scores[3] == 0);
    CHECK(std::isnan(scores[4]));
    CHECK(std::isnan(total[4]));
    CHECK(largest[4] == 0);
    CHECK(total[3] > 0);
    CHECK(factor[3] == 1);
}

} // namespace attention_tile_test
