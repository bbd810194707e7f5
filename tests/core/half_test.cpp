#include <tapegraph/core/half.hpp>
#include <tapegraph/cpu/widen.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

/// Conversions of the 16-bit types: every pattern, and rounding against a reference that searches the neighbours.

namespace tg = tapegraph;

namespace {

template <class T>
struct format;
template <>
struct format<tg::half> {
    static constexpr int fraction = 10, bias = 15, infinity = 0x7C00;
};
template <>
struct format<tg::bfloat16> {
    static constexpr int fraction = 7, bias = 127, infinity = 0x7F80;
};

// What a finite pattern without its sign stands for, from the definition. The pattern of infinity counts as the next power
// of two, which is what rounding compares with.
template <class T>
long double value_of(int pattern) {
    using f = format<T>;
    const int field = pattern >> f::fraction, fraction = pattern & ((1 << f::fraction) - 1);
    return field == 0 ? std::ldexp(static_cast<long double>(fraction), 1 - f::bias - f::fraction)
                      : std::ldexp(static_cast<long double>(fraction + (1 << f::fraction)), field - f::bias - f::fraction);
}

// The nearest pattern, ties to even, by bisection over all of them.
template <class T, class Number>
std::uint16_t rounded(Number x) {
    const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000 : 0);
    const auto magnitude = std::abs(static_cast<long double>(x));
    int low = 0, high = format<T>::infinity; // value_of(low) <= magnitude < value_of(high), unless beyond
    if (magnitude >= value_of<T>(high)) return static_cast<std::uint16_t>(sign | high);
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        (value_of<T>(middle) <= magnitude ? low : high) = middle;
    }
    const long double below = magnitude - value_of<T>(low), above = value_of<T>(high) - magnitude;
    const int nearest = below < above || (below == above && low % 2 == 0) ? low : high;
    return static_cast<std::uint16_t>(sign | nearest);
}

// Rounding in a register is storing and loading.
template <class T>
bool same_in_register(float x) {
    const float kept = tg::rounded_to<T>(x), loaded = static_cast<float>(T(x));
    return std::memcmp(&kept, &loaded, sizeof kept) == 0;
}

template <class T, class Number>
bool wrong(Number x) {
    const std::uint16_t want = rounded<T>(static_cast<long double>(x));
    bool right = T(x).bits == want;
    if constexpr (std::is_same_v<Number, float>) right = right && same_in_register<T>(x);
    if (right) return false;
    FAIL_CHECK(x << " became " << T(x).bits << " instead of " << want);
    return true;
}

std::uint64_t next(std::uint64_t& state) { // splitmix64
    std::uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

template <class T>
void check_patterns() {
    int bad = 0;
    for (int i = 0; i < 65536 && bad < 5; ++i) {
        const auto pattern = static_cast<std::uint16_t>(i);
        const T x = T::from_bits(pattern);
        const float wide = static_cast<float>(x);
        const int magnitude = i & 0x7FFF, infinity = format<T>::infinity;
        const std::uint16_t quiet = magnitude > infinity ? pattern | 1 << (format<T>::fraction - 1) : pattern;
        bool right = std::signbit(wide) == (i >= 0x8000) && T(wide).bits == quiet &&
                     T(static_cast<double>(x)).bits == quiet && same_in_register<T>(wide);
        if (magnitude > infinity)
            right = right && std::isnan(wide);
        else if (magnitude == infinity)
            right = right && std::isinf(wide);
        else
            right = right && std::abs(static_cast<long double>(wide)) == value_of<T>(magnitude);
        if (right) continue;
        ++bad;
        FAIL_CHECK("pattern " << i << " is " << wide << " and comes back as " << T(wide).bits);
    }
}

// Every number and its neighbours around every midpoint: ties, just below and just above, in float and double.
template <class T>
void check_ties() {
    int bad = 0;
    for (int i = 0; i < format<T>::infinity && bad < 5; ++i) {
        const long double middle = (value_of<T>(i) + value_of<T>(i + 1)) / 2;
        const auto single = static_cast<float>(middle);
        const double exact = static_cast<double>(middle);
        REQUIRE(static_cast<long double>(exact) == middle);
        for (const double x : {exact, std::nextafter(exact, 0.0), std::nextafter(exact, INFINITY), -exact})
            bad += wrong<T>(x);
        for (const float x : {single, std::nextafter(single, 0.0f), std::nextafter(single, INFINITY), -single})
            bad += wrong<T>(x);
    }
}

template <class T>
void check_random() {
    std::uint64_t state = 7;
    int bad = 0;
    for (int i = 0; i < 200000 && bad < 5; ++i) {
        const std::uint64_t u = next(state);
        const auto f = __builtin_bit_cast(float, static_cast<std::uint32_t>(u));
        const auto d = __builtin_bit_cast(double, u);
        // Doubles of all exponents are mostly beyond the type; these are mostly inside.
        const double inside = std::ldexp(static_cast<double>(u >> 11) * 0x1p-53 + 1, static_cast<int>(u % 300) - 150);
        if (std::isnan(f)) CHECK(same_in_register<T>(f));
        bad += (!std::isnan(f) && wrong<T>(f)) + (!std::isnan(d) && wrong<T>(d)) + wrong<T>(inside);
        const auto whole = static_cast<std::int64_t>(u) >> (u % 64);
        const auto natural = u >> (u % 61);
        bad += wrong<T>(whole) + wrong<T>(natural);
    }
}

// Loops of every instruction set against the scalar conversions, lengths around and between vector widths.
template <class T>
void check_loops() {
    std::vector<T> all(65536);
    std::vector<float> wide(65536);
    for (int i = 0; i < 65536; ++i) all[static_cast<std::size_t>(i)].bits = static_cast<std::uint16_t>(i);
    std::vector<float> numbers(70001);
    std::uint64_t state = 3;
    for (float& x : numbers) x = __builtin_bit_cast(float, static_cast<std::uint32_t>(next(state)));
    for (std::size_t i = 0; i < 20000; ++i) // most floats are far outside half's range
        numbers[i] = std::ldexp(static_cast<float>(next(state) >> 40) - 0x1p23f, static_cast<int>(i % 50) - 53);
    std::vector<T> narrow(numbers.size());
    for (const auto set : {tg::cpu::instruction_set::baseline, tg::cpu::instruction_set::avx2, tg::cpu::instruction_set::avx512}) {
        tg::cpu::set_instruction_set(set);
        for (const std::int64_t count : {std::int64_t{65536}, std::int64_t{1}, std::int64_t{7}, std::int64_t{67}}) {
            tg::cpu::widen(wide.data(), all.data() + (65536 - count), count);
            int bad = 0;
            for (std::int64_t i = 0; i < count; ++i) {
                const float want = static_cast<float>(all[static_cast<std::size_t>(65536 - count + i)]);
                bad += std::memcmp(&want, &wide[static_cast<std::size_t>(i)], sizeof want) != 0;
            }
            CHECK(bad == 0);
        }
        for (const std::int64_t count : {std::int64_t{70001}, std::int64_t{1}, std::int64_t{13}}) {
            tg::cpu::narrow(narrow.data(), numbers.data(), count);
            int bad = 0;
            for (std::int64_t i = 0; i < count; ++i)
                bad += narrow[static_cast<std::size_t>(i)].bits != T(numbers[static_cast<std::size_t>(i)]).bits;
            CHECK(bad == 0);
        }
    }
    tg::cpu::set_instruction_set(tg::cpu::detail::initial_instruction_set());
}

} // namespace

TEST_CASE_TEMPLATE("16-bit types: every pattern to float and back", T, tg::bfloat16, tg::half) { check_patterns<T>(); }
TEST_CASE_TEMPLATE("16-bit types: ties and their neighbours", T, tg::bfloat16, tg::half) { check_ties<T>(); }
TEST_CASE_TEMPLATE("16-bit types: random floats, doubles and integers", T, tg::bfloat16, tg::half) { check_random<T>(); }
TEST_CASE_TEMPLATE("16-bit types: vectorised conversions", T, tg::bfloat16, tg::half) { check_loops<T>(); }

TEST_CASE("16-bit types: in constant evaluation") {
    static_assert(std::is_trivially_copyable_v<tg::half> && std::is_trivial_v<tg::bfloat16>);
    static_assert(sizeof(tg::half) == 2 && sizeof(tg::bfloat16) == 2);
    static_assert(tg::half(65504.0f).bits == 0x7BFF && tg::half(65519.99).bits == 0x7BFF && tg::half(65520.0).bits == 0x7C00);
    static_assert(tg::half(0x1p-24f).bits == 1 && tg::half(0x1p-25f).bits == 0 && tg::half(-0.0f).bits == 0x8000);
    static_assert(tg::half(1e300).bits == 0x7C00 && tg::bfloat16(-1e300).bits == 0xFF80);
    static_assert(tg::bfloat16(3.0e38f).bits == 0x7F62 && tg::bfloat16(std::numeric_limits<float>::max()).bits == 0x7F80);
    static_assert(tg::bfloat16(std::numeric_limits<double>::quiet_NaN()).bits == 0x7FC0);
    static_assert(tg::half(std::numeric_limits<float>::quiet_NaN()).bits == 0x7E00);
    static_assert(float(tg::half::from_bits(0x03FF)) == 1023 * 0x1p-24f && double(tg::bfloat16(1)) == 1.0);
    static_assert(tg::half(2049).bits == tg::half(2048).bits && tg::half(true) == tg::half(1.0f));
    // One rounding: by way of float the first would become a tie and go to the even neighbour below.
    static_assert(tg::bfloat16(1 + 0x1p-8 + 0x1p-40).bits == 0x3F81 && tg::bfloat16(1 + 0x1p-8).bits == 0x3F80);
    static_assert(float(std::numeric_limits<tg::half>::max()) == 65504 &&
                  float(std::numeric_limits<tg::bfloat16>::epsilon()) == 0x1p-7f);
    static_assert(!std::is_convertible_v<float, tg::half> && !std::is_convertible_v<tg::half, float>);
    CHECK(tg::dtype_of<tg::half> == tg::dtype::f16);
    CHECK(tg::dtype_of<tg::bfloat16> == tg::dtype::bf16);
}
