#include <ops/table.hpp>

namespace tapegraph::testing {

namespace {
array reordered(const array& x, const std::vector<std::size_t>& order) {
    extents dims;
    for (std::size_t axis : order) dims.push_back(x.dims[axis]);
    array y(dims);
    for (std::int64_t i = 0; i < x.size(); ++i) {
        const extents from = unravel(i, x.dims);
        extents to;
        for (std::size_t axis : order) to.push_back(from[axis]);
        y.at(to) = x[i];
    }
    return y;
}
// y[i] = x[begin + step i]
array taken(const array& x, const extents& begin, const extents& step, const extents& dims) {
    array y(dims);
    for (std::int64_t i = 0; i < y.size(); ++i) {
        extents index = unravel(i, dims);
        for (std::size_t k = 0; k < index.size(); ++k) index[k] = begin[k] + step[k] * index[k];
        y[i] = x.at(index);
    }
    return y;
}
array with_dims(const array& x, extents dims) { return {std::move(dims), x.values}; }
std::int64_t whole(real v) { return static_cast<std::int64_t>(v); }
} // namespace

// Elements are moved, so values are equal; the exceptions add.
std::vector<row> movement_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, std::vector<std::vector<extents>> shapes) {
        r.shapes = std::move(shapes);
        r.ulps = 0;
        rows.push_back(std::move(r));
        return &rows.back();
    };
    put(make_row<1>(
            "reshape",
            [](auto x) {
                return reshape(x, {3, -1, 2});
            },
            {},
            [](const std::vector<array>& x) {
                return with_dims(x[0], {3, x[0].size() / 6, 2});
            }),
        {{{12}}, {{2, 3}}, {{6, 1, 5}}, {{0}}});
    put(make_row<1, false>(
            "reshape a formula to a scalar", [](auto x) { return reshape(2 * x, shape{}); }, {},
            [](const std::vector<array>& x) { return with_dims(map(x, [](const real* v) { return 2 * *v; }), {}); }),
        {{{1}}, {{1, 1}}, {{}}});
    put(make_row<1>(
            "flatten", [](auto x) { return flatten(x); }, {},
            [](const std::vector<array>& x) {
                return with_dims(x[0], {x[0].dims[0], x[0].size() / x[0].dims[0]});
            }),
        {{{3}}, {{2, 3}}, {{2, 3, 5}}, {{2, 0, 5}}});
    put(make_row<1, false>(
            "expand_dims", [](auto x) { return expand_dims(expand_dims(x, 0), -1); }, {},
            [](const std::vector<array>& x) {
                extents dims = x[0].dims;
                dims.insert(dims.begin(), 1);
                dims.push_back(1);
                return with_dims(x[0], dims);
            }),
        {{{}}, {{3}}, {{2, 0}}});
    put(make_row<1, false>(
            "squeeze", [](auto x) { return squeeze(x, -2); }, {},
            [](const std::vector<array>& x) {
                extents dims = x[0].dims;
                dims.erase(dims.end() - 2);
                return with_dims(x[0], dims);
            }),
        {{{1, 3}}, {{2, 1, 3}}});
    put(make_row<1>(
            "transpose", [](auto x) { return transpose(x); }, {},
            [](const std::vector<array>& x) {
                std::vector<std::size_t> order;
                for (std::size_t i = x[0].dims.size(); i-- > 0;) order.push_back(i);
                return reordered(x[0], order);
            }),
        {{{}}, {{5}}, {{2, 3}}, {{2, 3, 5}}, {{0, 3}}, {{67, 131}}, {{2, 3, 2, 2, 1, 3, 2, 2}}});
    put(make_row<1, false>(
            "transpose 2 0 1",
            [](auto x) {
                return transpose(x, {2, 0, -2});
            },
            {},
            [](const std::vector<array>& x) {
                return reordered(x[0], {2, 0, 1});
            }),
        {{{2, 3, 5}}, {{1, 5, 1}}, {{17, 9, 33}}});
    put(make_row<1>(
            "broadcast_to",
            [](auto x) {
                return broadcast_to(x, {4, 3, 5});
            },
            {},
            [](const std::vector<array>& x) {
                return map({x[0], array({4, 3, 5})}, [](const real* v) { return v[0]; });
            }),
        {{{}}, {{1}}, {{5}}, {{3, 1}}, {{4, 3, 5}}, {{4, 1, 1}}, {{4, 1, 5}}});
    put(make_row<1>(
            "slice",
            [](auto x) {
                return slice(x, {{1, 4}, {0, std::numeric_limits<std::int64_t>::max(), 2}});
            },
            {},
            [](const std::vector<array>& x) {
                extents dims = x[0].dims, begin(dims.size()), step(dims.size(), 1);
                begin[0] = 1, step[1] = 2;
                dims[0] = std::min<std::int64_t>(4, dims[0]) - 1;
                dims[1] = (dims[1] + 1) / 2;
                return taken(x[0], begin, step, dims);
            }),
        {{{5, 6}}, {{2, 1}}, {{3, 5, 2}}, {{70, 65}}});
    put(make_row<1, false>(
            "slice backwards",
            [](auto x) {
                return slice(x, {{-1, -100, -2}});
            },
            {},
            [](const std::vector<array>& x) {
                extents dims = x[0].dims, begin(dims.size()), step(dims.size(), 1);
                begin[0] = dims[0] - 1, step[0] = -2;
                dims[0] = (dims[0] + 1) / 2;
                return taken(x[0], begin, step, dims);
            }),
        {{{5}}, {{6}}, {{1, 3}}, {{4, 3}}});
    put(make_row<1, false>(
            "slice to nothing",
            [](auto x) {
                return slice(x, {{3, 2}});
            },
            {}, [](const std::vector<array>&) { return array(extents{0}); }),
        {{{5}}});
    put(make_row<1>(
            "pad",
            [](auto x) {
                return pad(x, {{1, 2}, {0, 3}});
            },
            {},
            [](const std::vector<array>& x) {
                array y({x[0].dims[0] + 3, x[0].dims[1] + 3});
                for (std::int64_t i = 0; i < x[0].size(); ++i) {
                    const extents at = unravel(i, x[0].dims);
                    y.at({at[0] + 1, at[1]}) = x[0][i];
                }
                return y;
            }),
        {{{2, 3}}, {{1, 1}}, {{0, 2}}, {{40, 21}}});
    put(make_row<2>(
            "concat", [](auto x, auto y) { return concat(x, y, 1); }, {},
            [](const std::vector<array>& x) {
                extents dims = x[0].dims;
                dims[1] += x[1].dims[1];
                array z(dims);
                for (std::int64_t i = 0; i < z.size(); ++i) {
                    extents at = unravel(i, dims);
                    const bool first = at[1] < x[0].dims[1];
                    if (!first) at[1] -= x[0].dims[1];
                    z[i] = first ? x[0].at(at) : x[1].at(at);
                }
                return z;
            }),
        {{{2, 3}, {2, 1}}, {{2, 0}, {2, 3}}, {{2, 3, 2}, {2, 2, 2}}, {{33, 20}, {33, 31}}});

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
    return rows;
}

} // namespace tapegraph::testing
