#include <tapegraph/core/shape.hpp>

#include <doctest/doctest.h>

using tapegraph::broadcast;
using tapegraph::extent;
using tapegraph::extent_table;
using tapegraph::normalized_axis;
using tapegraph::shape;

namespace {

constexpr bool valid(const shape& a, const shape& b, const shape& expected) {
    bool forth = true, back = true;
    return broadcast(a, b, forth) == expected && broadcast(b, a, back) == expected && forth && back;
}
constexpr bool refused(const shape& a, const shape& b) {
    bool forth = true, back = true;
    broadcast(a, b, forth);
    broadcast(b, a, back);
    return !forth && !back;
}

static_assert(valid({}, {}, {}));
static_assert(valid({}, {2, 3}, {2, 3}));
static_assert(valid({3}, {2, 3}, {2, 3}));
static_assert(valid({2, 1}, {1, 3}, {2, 3}));
static_assert(valid({4, 1, 3}, {2, 1}, {4, 2, 3}));
static_assert(valid({0}, {1}, {0})); // an empty axis against one of extent 1 stays empty
static_assert(refused({2}, {3}));
static_assert(refused({2, 3}, {2, 1, 4}));
static_assert(refused({0}, {2}));

static_assert(normalized_axis(0, 3) == 0 && normalized_axis(-1, 3) == 2 && normalized_axis(-3, 3) == 0);
static_assert(normalized_axis(3, 3) == -1 && normalized_axis(-4, 3) == -1 && normalized_axis(0, 0) == -1);

constexpr bool symbols_broadcast() {
    extent_table table;
    const extent n{table.symbol("n"), &table}, m{table.symbol("m"), &table};
    shape a, b;
    a.push_back(n), a.push_back(4);
    b.push_back(1), b.push_back(4);
    bool ok = true;
    if (!(broadcast(a, b, ok) == a) || !ok || table.requirements.size() != 0) return false;
    // The same symbol is decided; another one, or a number, is required when extents are bound.
    if (!(broadcast(a, a, ok) == a) || table.requirements.size() != 0) return false;
    shape c;
    c.push_back(m), c.push_back(4);
    broadcast(a, c, ok);
    if (!ok || table.requirements.size() != 1) return false;
    shape d{7, 4};
    const shape taken = broadcast(a, d, ok);
    return ok && taken[0].value == 7 && table.requirements.size() == 2;
}
static_assert(symbols_broadcast());

constexpr bool counts() {
    extent_table table;
    shape s{2, 3};
    if (s.elements() != 6 || s.size().value != 6 || s.size(1, 2).value != 3 || shape{}.elements() != 1) return false;
    const extent n{table.symbol("n"), &table};
    s.push_back(n);
    return !s.known() && s.size() == n * 6 && s.rank() == 3 && s.table() == &table;
}
static_assert(counts());

constexpr bool overflows_politely() {
    shape s;
    for (int i = 0; i < tapegraph::max_rank; ++i) s.push_back(i);
    if (s.overflow()) return false;
    s.push_back(9);
    return s.overflow() && s.rank() == tapegraph::max_rank;
}
static_assert(overflows_politely());

} // namespace

TEST_CASE("shapes at run time") {
    CHECK(symbols_broadcast());
    CHECK(counts());
    CHECK(overflows_politely());
    CHECK(valid({4, 1, 3}, {2, 1}, {4, 2, 3}));
    CHECK(refused({2, 3}, {2, 1, 4}));
    CHECK(shape{2, 3} == shape{2, 3});
    CHECK_FALSE(shape{2, 3} == shape{3, 2});
    CHECK_FALSE(shape{2, 3} == shape{2, 3, 1});
}

TEST_CASE("shapes print with question marks for symbols") {
    extent_table table;
    shape s{2, 3};
    CHECK(to_string(s) == "[2, 3]");
    s.push_back({table.symbol("n"), &table});
    CHECK(to_string(s) == "[2, 3, ?]");
    CHECK(to_string(shape{}) == "[]");
}
