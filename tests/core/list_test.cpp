#include <tapegraph/core/list.hpp>

#include <doctest/doctest.h>

#include <utility>

using tapegraph::list;

namespace {

constexpr int sum(const list<int>& values) {
    int total = 0;
    for (int v : values) total += v;
    return total;
}

constexpr bool grows_and_keeps_its_elements() {
    list<int> values;
    for (int i = 0; i < 100; ++i)
        if (values.push_back(i) != i) return false;
    if (values.size() != 100 || values.back() != 99 || sum(values) != 4950) return false;
    // The argument may live in the block that moves.
    list<int> full(16, 7);
    full.push_back(full[3]);
    return full.size() == 17 && full[16] == 7;
}

constexpr bool copies_are_independent() {
    list<int> a{1, 2, 3};
    list<int> b = a;
    b[0] = 9;
    list<int> c;
    c = b;
    const list<int>& same = b;
    b = same;
    c.pop_back();
    return a[0] == 1 && b.size() == 3 && b[0] == 9 && c.size() == 2 && sum(c) == 11;
}

constexpr bool moves_leave_nothing_behind() {
    list<int> a{1, 2, 3};
    const list<int> b = static_cast<list<int>&&>(a);
    list<int> c{5};
    c = list<int>{6, 7};
    return a.empty() && sum(b) == 6 && sum(c) == 13;
}

constexpr bool resizes() {
    list<int> a(3, 4);
    a.resize(5, 1);
    if (sum(a) != 14) return false;
    a.resize(2);
    a.resize(4, 2); // what had been cut off does not come back
    if (sum(a) != 12) return false;
    a.clear();
    a.reserve(50);
    return a.empty();
}

static_assert(grows_and_keeps_its_elements());
static_assert(copies_are_independent());
static_assert(moves_leave_nothing_behind());
static_assert(resizes());

} // namespace

TEST_CASE("lists work at run time as they do in constant evaluation") {
    CHECK(grows_and_keeps_its_elements());
    CHECK(copies_are_independent());
    CHECK(moves_leave_nothing_behind());
    CHECK(resizes());
}
