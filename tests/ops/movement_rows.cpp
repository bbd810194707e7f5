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
array with_dims(const array& x, extents dims) { return {std::move(dims), x.values}; }
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
    put(make_row<1, false>(
            "swap_axes", [](auto x) { return swap_axes(x, 0, -1); }, {},
            [](const std::vector<array>& x) {
                std::vector<std::size_t> order(x[0].dims.size());
                for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
                std::swap(order.front(), order.back());
                return reordered(x[0], order);
            }),
        {{{5}}, {{2, 3}}, {{3, 7, 33}}, {{2, 0, 3}}});
    put(make_row<1, false>( // numpy.moveaxis(x, [0, 1], [-1, 0])
            "move_axis",
            [](auto x) {
                return move_axis(x, {0, 1}, {-1, 0});
            },
            {},
            [](const std::vector<array>& x) {
                std::vector<std::size_t> order{1};
                for (std::size_t i = 2; i < x[0].dims.size(); ++i) order.push_back(i);
                order.push_back(0);
                return reordered(x[0], order);
            }),
        {{{2, 3}}, {{2, 3, 5}}, {{2, 3, 5, 7}}, {{1, 2, 1, 2, 1, 2, 1, 3}}});
    put(make_row<1, false>(
            "ravel, then two axes", [](auto x) { return expand_dims(ravel(x), {0, -1}); }, {},
            [](const std::vector<array>& x) {
                return with_dims(x[0], {1, x[0].size(), 1});
            }),
        {{{}}, {{2, 3}}, {{2, 0}}});
    put(make_row<1, false>(
            "squeeze all", [](auto x) { return squeeze(x); }, {},
            [](const std::vector<array>& x) {
                extents dims;
                for (std::int64_t d : x[0].dims)
                    if (d != 1) dims.push_back(d);
                return with_dims(x[0], dims);
            }),
        {{{}}, {{1, 1}}, {{1, 3, 1, 2}}, {{1, 0}}});
    return rows;
}

} // namespace tapegraph::testing
