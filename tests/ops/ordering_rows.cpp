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
array multiplied(const array& x, std::size_t axis, bool reverse, bool exclusive) {
    array y(x.dims, 1);
    for (std::int64_t i = 0; i < x.size(); ++i) {
        extents at = unravel(i, x.dims);
        const std::int64_t here = at[axis];
        for (std::int64_t k = 0; k < x.dims[axis]; ++k) {
            at[axis] = k;
            if ((reverse ? k > here : k < here) || (k == here && !exclusive)) y[i] *= x.at(at);
        }
    }
    return y;
}
array axes_swapped(const array& x, std::size_t a, std::size_t b) {
    array y = x;
    std::swap(y.dims[a], y.dims[b]);
    for (std::int64_t i = 0; i < x.size(); ++i) {
        extents at = unravel(i, x.dims);
        std::swap(at[a], at[b]);
        y.at(at) = x[i];
    }
    return y;
}
array first_of_last(const array& x, std::int64_t k) {
    extents dims = x.dims;
    const std::int64_t n = dims.back();
    dims.back() = k;
    array y(dims);
    for (std::int64_t i = 0; i < y.size(); ++i) y[i] = x[i / k * n + i % k];
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

    const interval near_one{0.6, 1.4};
    sum_row(make_row<1>(
                "cumulative_product", [](auto x) { return cumulative_product(x); }, {near_one},
                [](const std::vector<array>& x) { return multiplied(x[0], x[0].dims.size() - 1, false, false); }),
            {{{1}}, {{7}}, {{3, 5}}, {{0}}, {{3, 0}}, {{2, 60}}});
    sum_row(make_row<1, false>(
                "cumulative_product axis 0 reverse", [](auto x) { return cumulative_product(x, 0, {.reverse = true}); },
                {near_one}, [](const std::vector<array>& x) { return multiplied(x[0], 0, true, false); }),
            {{{7}}, {{3, 5}}, {{4, 2, 3}}});
    sum_row(make_row<1, false>(
                "cumulative_product reverse exclusive",
                [](auto x) { return cumulative_product(x, 1, {.reverse = true, .exclusive = true}); }, {near_one},
                [](const std::vector<array>& x) { return multiplied(x[0], 1, true, true); }),
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
    put(make_row<1>(
            "sort axis 0", [](auto x) { return sort(x, 0); }, {},
            [](const std::vector<array>& x) {
                const std::size_t last = x[0].dims.size() - 1;
                return axes_swapped(ordered(axes_swapped(x[0], 0, last), false, false), 0, last);
            }),
        {{{7}}, {{5, 3}}, {{4, 2, 3}}, {{0, 3}}});
    put(make_row<1>(
            "top_k of 3: values", [](auto x) { return top_k(x, 3).values; }, {},
            [](const std::vector<array>& x) { return first_of_last(ordered(x[0], true, false), 3); }),
        {{{3}}, {{7}}, {{4, 5}}, {{0, 3}}, {{2, 70}}});
    put(make_row<1, false>(
            "top_k of 2, smallest, axis 0: values",
            [](auto x) { return top_k(x, 2, 0, {.largest = false}).values; }, {},
            [](const std::vector<array>& x) {
                return axes_swapped(first_of_last(ordered(axes_swapped(x[0], 0, 1), false, false), 2), 0, 1);
            }),
        {{{2, 3}}, {{7, 4}}});
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
    ties(make_row<1>(
             "argsort axis 1 of 3", [](auto x) { return argsort(x, 1); }, {},
             [](const std::vector<array>& x) {
                 return axes_swapped(ordered(axes_swapped(x[0], 1, 2), false, true), 1, 2);
             }),
         {{{2, 3, 4}}, {{1, 60, 5}}});
    // Selected up to 64, sorted beyond.
    ties(make_row<1>(
             "top_k of 60: indices", [](auto x) { return top_k(x, 60).indices; }, {},
             [](const std::vector<array>& x) { return first_of_last(ordered(x[0], true, true), 60); }),
         {{{60}}, {{3, 61}}, {{2, 1000}}});
    ties(make_row<1>(
             "top_k of 65: indices", [](auto x) { return top_k(x, 65, -1, {.largest = false}).indices; }, {},
             [](const std::vector<array>& x) { return first_of_last(ordered(x[0], false, true), 65); }),
         {{{65}}, {{3, 1000}}});
    const std::vector<std::vector<extents>> full{{{1}}, {{7}}, {{3, 5}}, {{0, 3}}, {{2, 3, 1}}, {{5, 513}}};
    ties(make_row<1>(
             "argmax", [](auto x) { return argmax(x); }, {},
             [](const std::vector<array>& x) {
                 return fold(x[0], {}, false, [](const auto& v) { return first_best(v, true); });
             }),
         {{{}}, {{1}}, {{3, 5}}, {{5, 513}}});
    ties(make_row<1>(
             "argmax axis -1 keepdims", [](auto x) { return argmax(x, -1, {.keepdims = true}); }, {},
             [](const std::vector<array>& x) {
                 return fold(x[0], {-1}, true, [](const auto& v) { return first_best(v, true); });
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
