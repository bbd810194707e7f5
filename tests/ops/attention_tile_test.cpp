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

/// a * b + c as the instruction set has it.
float sum(float a, float b, float c) {
    if (active_instruction_set() != instruction_set::baseline || attention_detail::baseline_fuses)
        return std::fma(a, b, c);
    const float product = a * b;
    return product + c;
}

/// e^x by the same steps as attention's, each rounding where it is written.
float exponential(float x) {
    if (std::isnan(x)) return x;
    if (x < -88) return 0;
    const float magic = 0x1.8p23f; // 1.5 * 2^23: the number's low bits are the exponent
    const float t = sum(x, 1.44269504f, magic), k = t - magic;
    const float high = tapegraph::math::detail::traits<float>::ln2_high,
                low = tapegraph::math::detail::traits<float>::ln2_low;
    const float r = sum(-k, low, sum(-k, high, x));
    float q = 0.00138823956f;
    for (const float coefficient : {0.00836718082f, 0.041667223f, 0.16666539f, 0.49999997f}) q = sum(q, r, coefficient);
    return k <= -127 ? 0 : std::ldexp(sum(sum(q, r, 1), r, 1), static_cast<int>(k));
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

} // namespace attention_tile_test
