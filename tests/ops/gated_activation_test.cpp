#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace gated_activation_test {

/// gelu, its tanh form, swish and their slopes over all of float: the errors that docs/accuracy.md promises, no wrong sign in
/// the tail, NaN and infinities, and the same bits in kernels of every instruction set, in scalars and in constants.

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

// Constant evaluation must not meet an overflow, however large the operand is.
static_assert(tg::gelu(1000.0f) == 1000 && tg::gelu(-1000.0f) == 0 && tg::gelu(0.0f) == 0 && tg::gelu(1e38f) == 1e38f);
static_assert(tg::swish(1000.0f) == 1000 && tg::swish(-1000.0f) == 0 && tg::swish(-1e300) == 0);
static_assert(tg::gelu(1000.0f, tg::approximate) == 1000 && tg::gelu(-1e300, tg::approximate) == 0);
static_assert(tg::gradient([](auto x) { return tg::gelu(x); })(-1000.0f) == 0);
static_assert(tg::gradient([](auto x) { return tg::swish(x); })(1000.0f) == 1);

using wide = double;
wide sigmoid(wide x) { return 1 / (1 + std::exp(-x)); }
wide argument(wide x) { return 1.5957691216057308 * (x + 0.044715 * x * x * x); }
wide argument_slope(wide x) { return 1.5957691216057308 * (1 + 0.134145 * x * x); }
wide normal(wide x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }
wide density(wide x) { return 0.39894228040143268 * std::exp(-x * x / 2); }

// Floats from all of the range, a prime number of bits apart.
template <class F>
void for_floats(F f) {
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 1031) {
        const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        if (!std::isnan(x)) f(x);
    }
}

struct worst {
    double error = 0;
    float at = 0;
    void take(double e, float x) {
        if (!(e <= error)) error = e, at = x;
    }
};

// The largest error in units of 2^-23 of `size(x)`, where x is in [low, high].
template <class Op, class Reference, class Size>
worst largest_error(Reference reference, Size size, double low, double high) {
    worst w;
    for_floats([&](float x) {
        if (!(x >= low && x <= high)) return;
        const double error = std::abs(Op::value(x) - reference(static_cast<wide>(x)));
        // Numbers that are not normal are as far apart as the smallest normal ones.
        w.take(error / std::max(size(static_cast<wide>(x)), 0x1p-126) * 0x1p23, x);
    });
    return w;
}

#define CHECK_LARGEST(limit, ...)                                                                                      \
    do {                                                                                                               \
        const worst found = __VA_ARGS__;                                                                               \
        CHECK_MESSAGE(found.error <= (limit), found.error << " at " << found.at);                                      \
    } while (false)

template <class Op>
struct apply_body {
    template <class Isa>
    TG_INLINE static void run(const float* x, float* y, std::int64_t n) {
        TG_SIMD
        for (std::int64_t i = 0; i < n; ++i) y[i] = Op::value(x[i]);
    }
};

template <class Op>
void check_bits() {
    std::vector<float> x{0,     -0.0f,  inf, -inf, nan,   40,     -40, 1e-40f, -1e-40f,
                         88.4f, -88.4f, 89,  -89,  10.1f, -10.1f, 6,   1e30f,  -1e30f};
    for (int i = 0; i < 5003; ++i) x.push_back(static_cast<float>(-50 + 0.02 * i));
    const auto before = cpu::active_instruction_set();
    for (const auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512}) {
        cpu::set_instruction_set(set);
        std::vector<float> y(x.size());
        cpu::dispatch<apply_body<Op>>(static_cast<const float*>(x.data()), y.data(),
                                      static_cast<std::int64_t>(x.size()));
        int different = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const float alone = Op::value(x[i]);
            different += std::bit_cast<std::uint32_t>(alone) != std::bit_cast<std::uint32_t>(y[i]) &&
                         !(std::isnan(alone) && std::isnan(y[i]));
        }
        CHECK_MESSAGE(different == 0, Op::name << ", set " << static_cast<int>(set));
    }
    cpu::set_instruction_set(before);
    CHECK(std::isnan(Op::value(nan)));
}

} // namespace

TEST_CASE("gelu in float: errors over the whole range") {
    using op = tg::gelu_op;
    const auto reference = [](wide x) { return std::isinf(x) ? std::max(x, wide(0)) : x * normal(x); };
    const auto value = [&](wide x) { return std::abs(reference(x)); };
    const auto operand = [](wide x) { return std::abs(x); };
    CHECK_LARGEST(8, largest_error<op>(reference, value, -1, 3.4e38));
    CHECK_LARGEST(16, largest_error<op>(reference, value, -2, -1));
    CHECK_LARGEST(6e-4 * 0x1p23, largest_error<op>(reference, value, -6, -2)); // of the value
    CHECK_LARGEST(4, largest_error<op>(reference, operand, -3.4e38, 3.4e38));  // of the operand
    CHECK_LARGEST(1e-4, largest_error<op>(
                            reference, [](wide) { return wide(1); }, -3.4e38, -6)); // 1e-11
    CHECK(op::value(inf) == inf);
    CHECK(op::value(-inf) == 0);
    int wrong = 0;
    for_floats([&](float x) { wrong += x < 0 && !(op::value(x) <= 0); });
    CHECK(wrong == 0);
    CHECK(std::signbit(op::value(-0.0f)));
}

TEST_CASE("the slope of gelu in float: errors over the whole range") {
    using op = tg::detail::gelu_slope_op;
    const auto reference = [](wide x) { return std::isinf(x) ? wide(x > 0) : normal(x) + x * density(x); };
    const auto terms = [](wide x) { return normal(x) + std::abs(x) * density(x); };
    CHECK_LARGEST(8, largest_error<op>(reference, terms, -1, 3.4e38));
    CHECK_LARGEST(24, largest_error<op>(reference, terms, -3, -1));
    CHECK_LARGEST(6e-4 * 0x1p23, largest_error<op>(reference, terms, -6, -3));
    CHECK_LARGEST(0.4, largest_error<op>(
                           reference, [](wide) { return wide(1); }, -3.4e38, -6)); // 4.8e-8
    CHECK(op::value(inf) == 1);
    CHECK(op::value(-inf) == 0);
    CHECK(op::value(0.0f) == 0.5f);
}

TEST_CASE("the tanh form of gelu, swish and their slopes in float: errors over the whole range") {
    const auto tanh_form = [](wide x) { return std::isinf(x) ? std::max(x, wide(0)) : x * sigmoid(argument(x)); };
    // The rounding of the gate's argument u counts u times.
    const auto of_argument = [](wide x) {
        const wide a = std::min(std::abs(x), wide(30));
        return std::abs(x) * sigmoid(argument(std::max(x, wide(-30)))) * (x > 0 ? 1 : 1 + argument(a) / 4);
    };
    CHECK_LARGEST(8, largest_error<tg::gelu_tanh_op>(tanh_form, of_argument, -9.9, 3.4e38));
    CHECK_LARGEST(1e-20, largest_error<tg::gelu_tanh_op>(
                             tanh_form, [](wide) { return wide(1); }, -3.4e38, -9.9));
    const auto tanh_slope = [](wide x) {
        if (std::abs(x) > 30) return wide(x > 0);
        return sigmoid(argument(x)) * (1 + x * argument_slope(x) * sigmoid(-argument(x)));
    };
    CHECK_LARGEST(4, largest_error<tg::detail::gelu_tanh_slope_op>(
                         tanh_slope, [](wide) { return wide(1); }, -3.4e38, 3.4e38));
    const auto swish = [](wide x) { return std::isinf(x) ? std::max(x, wide(0)) : x * sigmoid(x); };
    const auto of_swish = [&](wide x) { return std::abs(swish(x)); };
    CHECK_LARGEST(2.5, largest_error<tg::swish_op>(swish, of_swish, -88, 3.4e38));
    CHECK_LARGEST(1e-20, largest_error<tg::swish_op>(
                             swish, [](wide) { return wide(1); }, -3.4e38, -88));
    const auto swish_slope = [](wide x) {
        if (std::abs(x) > 200) return wide(x > 0);
        return sigmoid(x) * (1 + x * sigmoid(-x));
    };
    const auto of_terms = [](wide x) { return sigmoid(x) * (1 + std::abs(std::max(x, wide(-200)))); };
    CHECK_LARGEST(4, largest_error<tg::detail::swish_slope_op>(swish_slope, of_terms, -88, 100));
    for (const float x : {inf, 1e30f}) {
        CHECK(tg::swish_op::value(x) == x);
        CHECK(tg::swish_op::value(-x) == 0);
        CHECK(tg::gelu_tanh_op::value(x) == x);
        CHECK(tg::gelu_tanh_op::value(-x) == 0);
        CHECK(tg::detail::swish_slope_op::value(x) == 1);
        CHECK(tg::detail::swish_slope_op::value(-x) == 0);
        CHECK(tg::detail::gelu_tanh_slope_op::value(x) == 1);
        CHECK(tg::detail::gelu_tanh_slope_op::value(-x) == 0);
    }
}

TEST_CASE("gated activations have the same bits in kernels of every instruction set and in scalars") {
    check_bits<tg::gelu_op>();
    check_bits<tg::gelu_tanh_op>();
    check_bits<tg::swish_op>();
    check_bits<tg::mish_op>();
    check_bits<tg::detail::gelu_slope_op>();
    check_bits<tg::detail::gelu_tanh_slope_op>();
    check_bits<tg::detail::swish_slope_op>();
}

} // namespace gated_activation_test
