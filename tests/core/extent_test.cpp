#include <tapegraph/core/extent.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using tapegraph::extent;
using tapegraph::extent_table;
using tapegraph::is_symbolic;

namespace {

struct two_symbols {
    extent_table table;
    extent b{table.symbol("batch"), &table}, t{table.symbol("time"), &table};

    // Values for the symbols in the order of their atoms.
    constexpr std::int64_t at(extent e, std::int64_t batch, std::int64_t time) const {
        return table.evaluate(e.value, [&](int atom) { return atom == table.symbol_of(b.value) ? batch : time; });
    }
};

constexpr bool equal_polynomials_are_equal_numbers() {
    two_symbols s;
    const extent b = s.b, t = s.t;
    if (!((b + t) * (b - t) == b * b - t * t)) return false;
    if (!(b + b == b * 2) || !(b * t == t * b) || (b * t == b * b)) return false;
    if (!((b + 3) * 4 - b * 4 == extent(12)) || is_symbolic(((b + 3) * 4 - b * 4).value)) return false;
    return (b - b).value == 0 && (b * 0).value == 0 && (b + 0) == b && (b * 1) == b;
}

constexpr bool names_are_shared_and_nameless_symbols_are_not() {
    extent_table table;
    const auto a = table.symbol("n"), b = table.symbol("n"), c = table.symbol(""), d = table.symbol("");
    return a == b && c != d && c != a && table.atoms.size() == 3;
}

constexpr bool evaluates() {
    two_symbols s;
    const extent p = s.b * s.b * 3 - s.t * 2 + 7;
    return s.at(p, 5, 10) == 62 && s.at(p, 0, 0) == 7 && s.at(extent(9), 1, 1) == 9;
}

constexpr bool divides_with_floor() {
    two_symbols s;
    // Exact where every coefficient but the constant's divides, so flatten and windows over multiples stay polynomials.
    if (!((s.b * 6 + 4) / 2 == s.b * 3 + 2)) return false;
    if (!((s.b * 6 + 5) / 2 == s.b * 3 + 2) || !((s.b * 6 - 3) / 2 == s.b * 3 - 2)) return false;
    if (!((s.b * 6 + 1) / 2 == s.b * 3) || !((s.b * 6 - 1) / 3 == s.b * 2 - 1)) return false;
    if (!(s.b / 1 == s.b)) return false;
    const extent q = (s.b - 3) / 2;
    if (!(q == (s.b - 3) / 2) || q == (s.b - 3) / 3 || q == (s.b - 1) / 2) return false;
    for (std::int64_t n = 0; n < 9; ++n) {
        const std::int64_t d = n - 3, floor = d >= 0 ? d / 2 : -((-d + 1) / 2);
        if (s.at(q, n, 0) != floor || s.at(q * 5 + 1, n, 0) != 5 * floor + 1) return false;
    }
    // Of numbers, too: rounding is down, not toward zero.
    return (extent(-3) / 2).value == -2 && (extent(-4) / 2).value == -2 && (extent(7) / 2).value == 3;
}

constexpr bool divides_exactly_or_says_so() {
    two_symbols s;
    extent_table& table = s.table;
    const auto divide = [&](extent a, extent b) { return table.divide_exactly(a.value, b.value); };
    if (divide(s.b * s.t * 6, s.b * 2) != (s.t * 3).value) return false;
    if (divide(s.b * 6 + s.b * s.t * 2, s.b * 2) != (s.t + 3).value) return false;
    if (divide(s.b * 6, s.b) != 6 || divide(s.b * 6, extent(4)) != -1 || divide(s.b, s.t) != -1) return false;
    return divide(s.b + 1, s.b + 1) == 1 && divide(s.b + 2, s.b + 1) == -1;
}

constexpr bool knows_single_symbols() {
    two_symbols s;
    const auto& table = s.table;
    return table.symbol_of(s.b.value) == 0 && table.symbol_of(s.t.value) == 1 &&
           table.symbol_of((s.b + 1).value) == -1 && table.symbol_of((s.b * 2).value) == -1 &&
           table.symbol_of((s.b * s.t).value) == -1 && table.symbol_of(7) == -1 &&
           table.symbol_of((s.b / 2).value) == -1;
}

constexpr bool notes_requirements_once() {
    two_symbols s;
    s.table.require_equal(s.b.value, s.t.value);
    s.table.require_equal(s.b.value, s.t.value);
    s.table.require_equal(s.b.value, 5);
    return s.table.requirements.size() == 2;
}

// Floor divisions nest: what two convolutions with stride 2 make of a width.
constexpr bool nests_divisions() {
    two_symbols s;
    const extent once = (s.t - 3) / 2 + 1, twice = (once - 3) / 2 + 1;
    for (std::int64_t n = 7; n < 40; ++n) {
        const std::int64_t first = (n - 3) / 2 + 1, second = (first - 3) / 2 + 1;
        if (s.at(twice, 1, n) != second) return false;
    }
    return true;
}

// A shape of rank 8 may have a symbol on each axis, and a size.
constexpr bool multiplies_eight_symbols() {
    extent_table table;
    extent size = 1, backwards = 1;
    std::int64_t symbols[8]{};
    for (std::int64_t& s : symbols) s = table.symbol("");
    for (int i = 0; i < 8; ++i) {
        size = size * extent(symbols[i], &table);
        backwards = backwards * extent(symbols[7 - i], &table);
    }
    if (!(size == backwards) || table.symbol_of(size.value) != -1) return false;
    if (table.evaluate(size.value, [](int atom) { return atom + 1; }) != 40320) return false;
    const std::int64_t rest =
        table.divide_exactly(size.value, (extent(symbols[2], &table) * extent(symbols[7], &table)).value);
    return table.evaluate(rest, [](int atom) { return atom + 1; }) == 1680;
}

static_assert(multiplies_eight_symbols());
static_assert(equal_polynomials_are_equal_numbers());
static_assert(names_are_shared_and_nameless_symbols_are_not());
static_assert(evaluates());
static_assert(divides_with_floor());
static_assert(divides_exactly_or_says_so());
static_assert(knows_single_symbols());
static_assert(notes_requirements_once());
static_assert(nests_divisions());

} // namespace

TEST_CASE("extents are polynomials, compared as numbers") {
    CHECK(equal_polynomials_are_equal_numbers());
    CHECK(names_are_shared_and_nameless_symbols_are_not());
    CHECK(evaluates());
    CHECK(divides_with_floor());
    CHECK(divides_exactly_or_says_so());
    CHECK(knows_single_symbols());
    CHECK(notes_requirements_once());
    CHECK(nests_divisions());
    CHECK(multiplies_eight_symbols());
}

TEST_CASE("sums and products of random polynomials agree with arithmetic") {
    two_symbols s;
    std::uint32_t state = 7;
    const auto next = [&](int count) {
        return static_cast<int>((state = state * 1664525u + 1013904223u) >> 16) % count;
    };
    extent formulas[40];
    std::int64_t values[40]; // at batch 3, time 11
    formulas[0] = s.b, values[0] = 3;
    formulas[1] = s.t, values[1] = 11;
    for (int i = 2; i < 40; ++i) {
        const int a = next(i), b = next(i);
        // Products of products would pass degree eight; only symbols and numbers are multiplied on.
        switch (next(4)) {
        case 0: formulas[i] = formulas[a] + formulas[b], values[i] = values[a] + values[b]; break;
        case 1: formulas[i] = formulas[a] - formulas[b], values[i] = values[a] - values[b]; break;
        case 2: formulas[i] = formulas[a] * extent(b - 5), values[i] = values[a] * (b - 5); break;
        default: formulas[i] = formulas[next(2)] * formulas[b % 2] + 1, values[i] = s.at(formulas[i], 3, 11); break;
        }
        CHECK(s.at(formulas[i], 3, 11) == values[i]);
    }
}

TEST_CASE("a degree above eight, and more symbols than numbers for them, end with a message") {
    two_symbols s;
    const extent square = s.b * s.b, fourth = square * square, eighth = fourth * fourth;
    CHECK(s.at(eighth, 3, 0) == 6561);
    CHECK_THROWS(eighth * s.b);
    for (int i = s.table.atoms.size(); i < 255; ++i) s.table.symbol("");
    CHECK_THROWS(s.table.symbol(""));
}
