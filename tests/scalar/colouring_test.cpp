#include <tapegraph/number_program.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

/// The colourings that sparse Jacobians and Hessians use: valid by definition, and of known size.

namespace colouring_test {

namespace tg = tapegraph;
using pairs = std::set<std::pair<int, int>>;

tg::sparsity_pattern pattern(std::size_t rows, std::size_t columns, const pairs& places) {
    tg::sparsity_pattern p{rows, columns, {0}, {}};
    for (std::size_t i = 0; i < rows; ++i) {
        for (const auto& [row, column] : places)
            if (row == static_cast<int>(i)) p.columns.push_back(column);
        p.starts.push_back(static_cast<std::int32_t>(p.columns.size()));
    }
    return p;
}
bool has(const tg::sparsity_pattern& p, std::size_t i, std::size_t j) {
    return std::find(p.columns.begin() + p.starts[i], p.columns.begin() + p.starts[i + 1],
                     static_cast<std::int32_t>(j)) != p.columns.begin() + p.starts[i + 1];
}

// By definition: no two columns of a colour meet in a row.
void check_columns(const tg::sparsity_pattern& p, const tg::colouring& c) {
    REQUIRE(c.colours.size() == p.column_count);
    for (std::size_t j = 0; j < p.column_count; ++j)
        for (std::size_t k = 0; k < j; ++k)
            for (std::size_t i = 0; i < p.row_count; ++i)
                if (has(p, i, j) && has(p, i, k)) CHECK(c.colours[j] != c.colours[k]);
    for (std::size_t j = 0; j < p.column_count; ++j) {
        CHECK(c.colours[j] < c.count);
        bool empty = true;
        for (std::size_t i = 0; i < p.row_count; ++i) empty &= !has(p, i, j);
        CHECK((c.colours[j] < 0) == empty);
    }
}
// By definition: where a nonzero is read, no other row (column) of its colour has one.
void check_both(const tg::sparsity_pattern& p, const tg::bicolouring& c) {
    REQUIRE(c.rows.colours.size() == p.row_count);
    REQUIRE(c.columns.colours.size() == p.column_count);
    for (std::size_t i = 0; i < p.row_count; ++i)
        for (std::size_t j = 0; j < p.column_count; ++j) {
            if (!has(p, i, j)) continue;
            if (c.by_row(i, j)) {
                CHECK(c.rows.colours[i] >= 0);
                CHECK(c.rows.colours[i] < c.rows.count);
                for (std::size_t k = 0; k < p.row_count; ++k)
                    if (k != i && has(p, k, j)) CHECK(c.rows.colours[k] != c.rows.colours[i]);
            } else {
                CHECK(c.columns.colours[j] >= 0);
                CHECK(c.columns.colours[j] < c.columns.count);
                for (std::size_t k = 0; k < p.column_count; ++k)
                    if (k != j && has(p, i, k)) CHECK(c.columns.colours[k] != c.columns.colours[j]);
            }
        }
    CHECK(c.count() <= std::min(tg::colour_rows(p).count, tg::colour_columns(p).count));
}
// No path of four vertices has two colours.
void check_star(const tg::sparsity_pattern& p, const tg::colouring& c) {
    const std::size_t n = p.row_count;
    const auto edge = [&](std::size_t i, std::size_t j) { return i != j && has(p, i, j); };
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b) {
            if (!edge(a, b)) continue;
            CHECK(c.colours[a] != c.colours[b]);
            for (std::size_t d = 0; d < n; ++d) {
                if (!edge(b, d) || d == a || c.colours[d] != c.colours[a]) continue;
                for (std::size_t e = 0; e < n; ++e)
                    if (edge(d, e) && e != b && e != a) CHECK(c.colours[e] != c.colours[b]);
            }
        }
}
// No cycle has two colours: the edges between any two colours are fewer than the vertices, part by part.
void check_acyclic(const tg::sparsity_pattern& p, const tg::colouring& c) {
    const std::size_t n = p.row_count;
    for (std::int32_t x = 0; x < c.count; ++x)
        for (std::int32_t y = 0; y < x; ++y) {
            std::vector<std::size_t> root(n);
            for (std::size_t i = 0; i < n; ++i) root[i] = i;
            const auto find = [&](std::size_t i) {
                while (root[i] != i) i = root[i];
                return i;
            };
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t j = 0; j < i; ++j) {
                    if (!has(p, i, j)) continue;
                    CHECK(c.colours[i] != c.colours[j]);
                    if (std::minmax(c.colours[i], c.colours[j]) != std::minmax(x, y)) continue;
                    CHECK(find(i) != find(j));
                    root[find(i)] = find(j);
                }
        }
}

pairs symmetric(std::size_t n, const std::function<bool(int, int)>& nonzero) {
    pairs all;
    for (int i = 0; i < static_cast<int>(n); ++i)
        for (int j = 0; j < static_cast<int>(n); ++j)
            if (i == j || nonzero(std::max(i, j), std::min(i, j))) all.emplace(i, j);
    return all;
}

TEST_CASE("colourings have the known least number of colours") {
    struct known {
        const char* name;
        std::function<bool(int, int)> nonzero;
        int columns, star, acyclic;
    };
    const int n = 23;
    const known all[]{
        {"diagonal", [](int, int) { return false; }, 1, 1, 1},
        {"tridiagonal", [](int i, int j) { return i - j == 1; }, 3, 3, 2},
        {"arrowhead", [](int, int j) { return j == 0; }, n, 2, 2},
        {"arrowhead, last", [](int i, int) { return i == n - 1; }, n, 2, 2},
        {"pentadiagonal", [](int i, int j) { return i - j <= 2; }, 5, 5, 3},
        {"blocks of 4", [](int i, int j) { return i / 4 == j / 4; }, 4, 4, 4},
        {"full", [](int, int) { return true; }, n, n, n},
    };
    for (const known& k : all) {
        INFO(std::string(k.name));
        const auto p = pattern(n, n, symmetric(n, k.nonzero));
        const auto columns = tg::colour_columns(p), star = tg::colour_star(p), acyclic = tg::colour_acyclic(p);
        check_columns(p, columns);
        check_star(p, star);
        check_acyclic(p, acyclic);
        CHECK(columns.count == k.columns);
        CHECK(star.count == k.star);
        CHECK(acyclic.count == k.acyclic);
        CHECK(tg::colour_rows(p).count == k.columns);
    }
    CHECK(tg::colour_columns(tg::sparsity_pattern{}).count == 0);
    CHECK(tg::colour_star(pattern(3, 3, {})).count == 0);
    CHECK_THROWS_WITH_AS(tg::colour_star(pattern(2, 2, {{0, 1}})), doctest::Contains("not symmetric"),
                         tg::argument_error);
    CHECK_THROWS_AS(tg::colour_acyclic(pattern(2, 3, {{0, 1}})), tg::argument_error);
}

TEST_CASE("colourings of rows and columns together") {
    const int n = 23;
    struct known {
        const char* name;
        int rows, columns;
        std::function<bool(int, int)> nonzero;
        int colours, by_rows;
        bool columns_first = false;
    };
    const known all[]{
        {"diagonal", n, n, [](int i, int j) { return i == j; }, 1, 0, false},
        {"arrowhead", n, n, [](int i, int j) { return i == j || i == 0 || j == 0; }, 3, 1, false},
        {"two full rows, three full columns, a tridiagonal matrix", n, n,
         [](int i, int j) { return std::abs(i - j) <= 1 || i % 20 == 1 || j % 10 == 2; }, 2 + 3 + 3, 2, false},
        {"a full row, wide", 5, n, [](int i, int j) { return i == 2 || j % 5 == i || j == 7; }, 3, 2, true},
        {"full columns that every row has", n, 4, [](int i, int j) { return j < 3 || i == 5; }, 4, 0, false},
        {"rows alone", 3, n, [](int, int) { return true; }, 3, 3, false},
        {"full", n, n, [](int, int) { return true; }, n, 0, false},
    };
    for (const known& k : all) {
        INFO(std::string(k.name));
        pairs places;
        for (int i = 0; i < k.rows; ++i)
            for (int j = 0; j < k.columns; ++j)
                if (k.nonzero(i, j)) places.emplace(i, j);
        const auto p = pattern(static_cast<std::size_t>(k.rows), static_cast<std::size_t>(k.columns), places);
        const auto both = tg::colour_rows_and_columns(p);
        check_both(p, both);
        CHECK(both.count() == k.colours);
        CHECK(both.rows.count == k.by_rows);
        CHECK(both.columns_first == k.columns_first);
        const auto t = tg::transposed(p);
        check_both(t, tg::colour_rows_and_columns(t));
        CHECK(tg::colour_rows_and_columns(t).count() == k.colours);
    }
    // Full columns, and rows of many lengths between: the columns are taken out first.
    pairs steps;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            if (j < 2 || (i == j + i % 3 && j > 2) || i == 9) steps.emplace(i, j);
    const auto p = pattern(n, n, steps);
    check_both(p, tg::colour_rows_and_columns(p));
    CHECK(tg::colour_rows_and_columns(tg::sparsity_pattern{}).count() == 0);
    CHECK(tg::colour_rows_and_columns(pattern(3, 2, {})).count() == 0);
}

TEST_CASE("colourings of random patterns are valid") {
    std::mt19937 random(3);
    for (int round = 0; round < 60; ++round) {
        const std::size_t n = 1 + random() % 19, m = 1 + random() % 19;
        const double share = 0.02 + 0.5 * static_cast<double>(random() % 100) / 100;
        pairs rectangle, square;
        std::bernoulli_distribution nonzero(share);
        for (int i = 0; i < static_cast<int>(m); ++i)
            for (int j = 0; j < static_cast<int>(n); ++j)
                if (nonzero(random)) rectangle.emplace(i, j);
        for (int i = 0; i < static_cast<int>(n); ++i)
            for (int j = 0; j <= i; ++j)
                if (nonzero(random)) square.emplace(i, j), square.emplace(j, i);
        const auto p = pattern(m, n, rectangle), s = pattern(n, n, square);
        CHECK(tg::transposed(tg::transposed(p)) == p);
        check_columns(p, tg::colour_columns(p));
        check_columns(tg::transposed(p), tg::colour_rows(p));
        check_both(p, tg::colour_rows_and_columns(p));
        // With a full row and a full column, which neither rows nor columns alone compress
        pairs arrow = rectangle;
        for (int i = 0; i < static_cast<int>(m); ++i) arrow.emplace(i, static_cast<int>(random() % n) / 2);
        for (int j = 0; j < static_cast<int>(n); ++j) arrow.emplace(static_cast<int>(m) / 2, j);
        for (int i = 0; i < static_cast<int>(m); ++i) arrow.emplace(i, 0);
        check_both(pattern(m, n, arrow), tg::colour_rows_and_columns(pattern(m, n, arrow)));
        check_star(s, tg::colour_star(s));
        check_acyclic(s, tg::colour_acyclic(s));
        CHECK(tg::colour_acyclic(s).count <= tg::colour_star(s).count + 1); // greedy, but not far off
    }
}

} // namespace colouring_test
