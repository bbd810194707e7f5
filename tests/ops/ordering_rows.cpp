#include <ops/table.hpp>

namespace tapegraph::testing {

namespace {
array cumulated(const array& x, std::size_t axis, bool reverse, bool exclusive) {
    array y(x.dims);
    for (std::int64_t i = 0; i < x.size(); ++i) {
        extents at = unravel(i, x.dims);
        const std::int64_t here = at[axis];
        for (std::int64_t k = 0; k < x.dims[axis]; ++k) {
            const bool counts = reverse ? k > here : k < here;
            at[axis] = k;
            if (counts || (k == here && !exclusive)) y[i] += x.at(at);
        }
    }
    return y;
}
// NaN behind everything, equal elements in their old order.
bool before(real a, real b, bool descending) {
    if (std::isnan(b)) return !std::isnan(a);
    return descending ? a > b : a < b;
}
array ordered(const array& x, bool descending, bool positions) {
    array y(x.dims);
    const std::int64_t n = x.dims.back();
    for (std::int64_t row = 0; n > 0 && row < x.size() / n; ++row) {
        std::vector<std::int64_t> order(static_cast<std::size_t>(n));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
            return before(x[row * n + a], x[row * n + b], descending);
        });
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t from = order[static_cast<std::size_t>(i)];
            y[row * n + i] = positions ? static_cast<real>(from) : x[row * n + from];
        }
    }
    return y;
}
// NumPy: the first NaN wins, else the first best.
real first_best(const std::vector<real>& v, bool largest) {
    std::size_t best = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
        if (std::isnan(v[i])) return static_cast<real>(i);
        if (largest ? v[i] > v[best] : v[i] < v[best]) best = i;
    }
    return static_cast<real>(best);
}
} // namespace

std::vector<row> ordering_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, std::vector<std::vector<extents>> shapes) {
        r.shapes = std::move(shapes);
        r.ulps = 0;
        rows.push_back(std::move(r));
        return &rows.back();
    };
    const auto sum_row = [&](row r, std::vector<std::vector<extents>> shapes) {
        row* added = put(std::move(r), std::move(shapes));
        added->ulps = 16; // a running sum of some hundred terms of order one
        added->floor = 8;
        added->why = "running sums";
    };
    sum_row(make_row<1>(
                "cumulative_sum", [](auto x) { return cumulative_sum(x); }, {},
                [](const std::vector<array>& x) { return cumulated(x[0], x[0].dims.size() - 1, false, false); }),
            {{{1}}, {{7}}, {{3, 5}}, {{0}}, {{3, 0}}, {{2, 513}}});
    sum_row(make_row<1, false>(
                "cumulative_sum axis 0 reverse", [](auto x) { return cumulative_sum(x, 0, {.reverse = true}); }, {},
                [](const std::vector<array>& x) { return cumulated(x[0], 0, true, false); }),
            {{{7}}, {{3, 5}}, {{4, 2, 3}}, {{70, 33}}});
    sum_row(make_row<1, false>(
                "cumulative_sum exclusive", [](auto x) { return cumulative_sum(x, -2, {.exclusive = true}); }, {},
                [](const std::vector<array>& x) { return cumulated(x[0], x[0].dims.size() - 2, false, true); }),
            {{{3, 5}}, {{1, 4}}, {{4, 2, 3}}});
    sum_row(make_row<1, false>(
                "cumulative_sum reverse exclusive",
                [](auto x) { return cumulative_sum(x, 1, {.reverse = true, .exclusive = true}); }, {},
                [](const std::vector<array>& x) { return cumulated(x[0], 1, true, true); }),
            {{{3, 5}}, {{4, 2, 3}}});

    std::vector<std::vector<extents>> lines{{{1}}, {{7}}, {{3, 5}}, {{0}}, {{3, 0}}, {{2, 3, 1}}};
    put(make_row<1>(
            "sort", [](auto x) { return sort(x); }, {},
            [](const std::vector<array>& x) { return ordered(x[0], false, false); }),
        lines);
    put(make_row<1, false>(
            "sort descending", [](auto x) { return sort(x, {.descending = true}); }, {},
            [](const std::vector<array>& x) { return ordered(x[0], true, false); }),
        lines);
    lines.push_back(
        {{5, 513}}); // no derivatives below: so many elements come closer to each other than a difference step
    const auto ties = [&](row r, std::vector<std::vector<extents>> shapes) {
        r.whole = true; // many equal elements
        r.derivatives = 0;
        put(std::move(r), std::move(shapes));
    };
    ties(make_row<1>(
             "argsort", [](auto x) { return argsort(x); }, {},
             [](const std::vector<array>& x) { return ordered(x[0], false, true); }),
         lines);
    ties(make_row<1>(
             "argsort descending", [](auto x) { return argsort(x, {.descending = true}); }, {},
             [](const std::vector<array>& x) { return ordered(x[0], true, true); }),
         lines);
    const std::vector<std::vector<extents>> full{{{1}}, {{7}}, {{3, 5}}, {{0, 3}}, {{2, 3, 1}}, {{5, 513}}};
    ties(make_row<1>(
             "argmax", [](auto x) { return argmax(x); }, {},
             [](const std::vector<array>& x) {
                 return fold(x[0], {-1}, false, [](const auto& v) { return first_best(v, true); });
             }),
         full);
    ties(make_row<1>(
             "argmin axis 0", [](auto x) { return argmin(x, 0); }, {},
             [](const std::vector<array>& x) {
                 return fold(x[0], {0}, false, [](const auto& v) { return first_best(v, false); });
             }),
         {{{1}}, {{7}}, {{3, 5}}, {{3, 0}}, {{2, 3, 5}}, {{513, 5}}});
    return rows;
}

} // namespace tapegraph::testing
