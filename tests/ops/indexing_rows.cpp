#include <ops/table.hpp>

namespace tapegraph::testing {

namespace {
std::int64_t whole(real v) { return static_cast<std::int64_t>(v); }
} // namespace

// Elements are moved, so values are equal; what is scattered adds.
std::vector<row> indexing_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, std::vector<std::vector<extents>> shapes) {
        r.shapes = std::move(shapes);
        r.ulps = 0;
        rows.push_back(std::move(r));
        return &rows.back();
    };
    // Indices are drawn as numbers and cast; they are not differentiated.
    const auto indexed = [&](row r, double largest, std::vector<std::vector<extents>> shapes) {
        r.domains[1] = {0, largest};
        r.watched = 1;
        return put(std::move(r), std::move(shapes));
    };
    const auto gathered = [](const std::vector<array>& x) {
        extents dims = x[1].dims;
        dims.insert(dims.end(), x[0].dims.begin() + 1, x[0].dims.end());
        array y(dims);
        const std::int64_t width = x[0].dims[0] == 0 ? 0 : x[0].size() / x[0].dims[0];
        for (std::int64_t i = 0; i < x[1].size(); ++i)
            for (std::int64_t k = 0; k < width; ++k) y[i * width + k] = x[0][whole(x[1][i]) * width + k];
        return y;
    };
    indexed(make_row<2>(
                "gather", [](auto x, auto i) { return gather(x, cast<std::int32_t>(i)); }, {}, gathered),
            5, {{{5, 2}, {3}}, {{5}, {2, 3}}, {{5, 2, 3}, {}}, {{5, 2}, {0}}, {{5, 700}, {31}}});
    indexed(make_row<2, false>(
                "gather by int64", [](auto x, auto i) { return gather(x, cast<std::int64_t>(i)); }, {}, gathered),
            5, {{{5, 2}, {7}}});
    indexed(make_row<2>(
                "scatter_add",
                [](auto x, auto i) {
                    return scatter_add(x, cast<std::int32_t>(i), {5, 2});
                },
                {},
                [](const std::vector<array>& x) {
                    array y({5, 2});
                    for (std::int64_t i = 0; i < x[1].size(); ++i)
                        for (std::int64_t k = 0; k < 2; ++k) y.at({whole(x[1][i]), k}) += x[0][i * 2 + k];
                    return y;
                }),
            5, {{{3, 2}, {3}}, {{2, 3, 2}, {2, 3}}, {{0, 2}, {0}}, {{40, 2}, {40}}})
        ->ulps = 4;
    rows.back().floor = 8; // up to forty rows meet in five
    indexed(make_row<2>(
                "take_along", [](auto x, auto i) { return take_along(x, cast<std::int32_t>(i)); }, {},
                [](const std::vector<array>& x) {
                    array y(x[1].dims);
                    for (std::int64_t i = 0; i < y.size(); ++i) {
                        extents at = unravel(i, y.dims);
                        at.back() = whole(x[1][i]);
                        y[i] = x[0].at(at);
                    }
                    return y;
                }),
            4, {{{4}, {7}}, {{3, 4}, {3, 2}}, {{2, 3, 4}, {2, 3, 5}}, {{3, 4}, {3, 0}}});
    row hot = make_row<1>(
        "one_hot", [](auto i) { return one_hot<float>(cast<std::int32_t>(i), 5); }, {{0, 5}},
        [](const std::vector<array>& x) {
            extents dims = x[0].dims;
            dims.push_back(5);
            array y(dims);
            for (std::int64_t i = 0; i < x[0].size(); ++i) y[i * 5 + whole(x[0][i])] = 1;
            return y;
        });
    hot.whole = true;
    hot.derivatives = 0;
    put(std::move(hot), {{{}}, {{3}}, {{2, 3}}, {{0}}});
    indexed(make_row<2>(
                "gather along axis 1", [](auto x, auto i) { return gather(x, cast<std::int32_t>(i), 1); }, {},
                [](const std::vector<array>& x) {
                    extents dims{x[0].dims[0]};
                    dims.insert(dims.end(), x[1].dims.begin(), x[1].dims.end());
                    dims.insert(dims.end(), x[0].dims.begin() + 2, x[0].dims.end());
                    array y(dims);
                    const std::int64_t n = x[0].dims[1], picks = x[1].size();
                    std::int64_t inner = 1;
                    for (std::size_t k = 2; k < x[0].dims.size(); ++k) inner *= x[0].dims[k];
                    for (std::int64_t i = 0; i < y.size(); ++i)
                        y[i] = x[0][(i / inner / picks * n + whole(x[1][i / inner % picks])) * inner + i % inner];
                    return y;
                }),
            4, {{{2, 4}, {3}}, {{3, 4, 2}, {2, 2}}, {{3, 4, 7}, {5}}, {{2, 4, 3}, {}}, {{2, 4, 0}, {3}}, {{0, 4}, {2}},
                {{21, 4, 65}, {11}}});
    indexed(make_row<2, false>(
                "gather within batches", [](auto x, auto i) { return gather(x, cast<std::int64_t>(i), 2, 1); }, {},
                [](const std::vector<array>& x) { // x [b, o, n], i [b, m]
                    const std::int64_t o = x[0].dims[1], n = x[0].dims[2], m = x[1].dims[1];
                    array y({x[0].dims[0], o, m});
                    for (std::int64_t i = 0; i < y.size(); ++i)
                        y[i] = x[0][i / m * n + whole(x[1][i / m / o * m + i % m])];
                    return y;
                }),
            4, {{{2, 3, 4}, {2, 5}}, {{1, 1, 4}, {1, 1}}, {{3, 2, 4}, {3, 0}}});
    indexed(make_row<2, false>(
                "scatter_add along axis 1",
                [](auto x, auto i) {
                    return scatter_add(x, cast<std::int32_t>(i), {x.shape()[0].value, 4, 3}, 1);
                },
                {},
                [](const std::vector<array>& x) {
                    array y({x[0].dims[0], 4, 3});
                    const std::int64_t m = x[1].dims[0];
                    for (std::int64_t i = 0; i < x[0].size(); ++i)
                        y.at({i / 3 / m, whole(x[1][i / 3 % m]), i % 3}) += x[0][i];
                    return y;
                }),
            4, {{{2, 5, 3}, {5}}, {{1, 1, 3}, {1}}, {{2, 0, 3}, {0}}})
        ->ulps = 16; // five elements may meet
    indexed(make_row<2>(
                "gather_nd", [](auto x, auto i) { return gather_nd(x, cast<std::int32_t>(i)); }, {},
                [](const std::vector<array>& x) {
                    const auto depth = static_cast<std::size_t>(x[1].dims.back());
                    extents dims(x[1].dims.begin(), x[1].dims.end() - 1);
                    dims.insert(dims.end(), x[0].dims.begin() + static_cast<std::ptrdiff_t>(depth), x[0].dims.end());
                    array y(dims);
                    std::int64_t width = 1;
                    for (std::size_t k = depth; k < x[0].dims.size(); ++k) width *= x[0].dims[k];
                    for (std::int64_t i = 0; i < y.size(); ++i) {
                        std::int64_t flat = 0;
                        for (std::size_t k = 0; k < depth; ++k)
                            flat = flat * x[0].dims[k] +
                                   whole(x[1][i / width * static_cast<std::int64_t>(depth) + static_cast<std::int64_t>(k)]);
                        y[i] = x[0][flat * width + i % width];
                    }
                    return y;
                }),
            3, {{{3, 3, 2}, {4, 2}}, {{3, 3}, {2, 3, 2}}, {{3, 5}, {1}}, {{3, 3, 3}, {0, 3}}, {{3, 4, 2}, {5, 1}}});
    indexed(make_row<2, false>(
                "scatter_nd",
                [](auto x, auto i) {
                    return scatter_nd(x, cast<std::int64_t>(i), {3, 4, 2});
                },
                {},
                [](const std::vector<array>& x) {
                    array y({3, 4, 2});
                    for (std::int64_t i = 0; i < x[0].size(); ++i)
                        y.at({whole(x[1][i / 2 * 2]), whole(x[1][i / 2 * 2 + 1]), i % 2}) += x[0][i];
                    return y;
                }),
            3, {{{7, 2}, {7, 2}}, {{2, 3, 2}, {2, 3, 2}}, {{0, 2}, {0, 2}}})
        ->ulps = 16;
    indexed(make_row<2, false>(
                "take_along an axis in front", [](auto x, auto i) { return take_along(x, cast<std::int64_t>(i), 0); }, {},
                [](const std::vector<array>& x) {
                    array y(x[1].dims);
                    for (std::int64_t i = 0; i < y.size(); ++i) {
                        extents at = unravel(i, y.dims);
                        at.front() = whole(x[1][i]);
                        y[i] = x[0].at(at);
                    }
                    return y;
                }),
            4, {{{4}, {7}}, {{4, 3}, {2, 3}}, {{4, 2, 3}, {5, 2, 3}}, {{4, 3}, {0, 3}}, {{4, 300}, {9, 300}}});
    indexed(make_row<2, false>(
                "put_along",
                [](auto x, auto i) {
                    return put_along(x, cast<std::int32_t>(i), {2, 4, x.shape()[2].value}, 1);
                },
                {},
                [](const std::vector<array>& x) {
                    array y({2, 4, x[0].dims[2]});
                    for (std::int64_t i = 0; i < x[0].size(); ++i) {
                        extents at = unravel(i, x[0].dims);
                        at[1] = whole(x[1][i]);
                        y.at(at) += x[0][i];
                    }
                    return y;
                }),
            4, {{{2, 5, 3}, {2, 5, 3}}, {{2, 0, 3}, {2, 0, 3}}, {{2, 3, 1}, {2, 3, 1}}})
        ->ulps = 16;
    row warm = make_row<1>(
        "one_hot, on and off, in front",
        [](auto i) { return one_hot<double>(cast<std::int64_t>(i), 5, {.on = 2, .off = -0.5, .axis = 0}); }, {{0, 5}},
        [](const std::vector<array>& x) {
            extents dims = x[0].dims;
            dims.insert(dims.begin(), 5);
            array y(dims, -0.5L);
            for (std::int64_t i = 0; i < x[0].size(); ++i) y[whole(x[0][i]) * x[0].size() + i] = 2;
            return y;
        });
    warm.whole = true;
    warm.derivatives = 0;
    put(std::move(warm), {{{}}, {{3}}, {{2, 3}}, {{0}}});
    return rows;
}

} // namespace tapegraph::testing
