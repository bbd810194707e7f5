#include <ops/table.hpp>

namespace tapegraph::testing {

namespace {
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

// What a function says of every place of a result of shape `dims`.
array built(const extents& dims, const std::function<real(const extents&)>& f) {
    array y(dims);
    for (std::int64_t i = 0; i < y.size(); ++i) y[i] = f(unravel(i, dims));
    return y;
}
} // namespace

// Elements are moved, so values are equal.
std::vector<row> slicing_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, std::vector<std::vector<extents>> shapes) {
        r.shapes = std::move(shapes);
        r.ulps = 0;
        rows.push_back(std::move(r));
        return &rows.back();
    };
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

    put(make_row<3>(
            "concat of seven",
            [](auto x, auto y, auto z) {
                return concat({x, y, z, x, y, z, x}, -2);
            },
            {},
            [](const std::vector<array>& x) {
                const std::size_t order[]{0, 1, 2, 0, 1, 2, 0};
                extents dims = x[0].dims;
                const std::size_t axis = dims.size() - 2;
                dims[axis] = 0;
                for (std::size_t k : order) dims[axis] += x[k].dims[axis];
                return built(dims, [&](extents at) {
                    std::size_t k = 0;
                    while (at[axis] >= x[order[k]].dims[axis]) at[axis] -= x[order[k++]].dims[axis];
                    return x[order[k]].at(at);
                });
            }),
        {{{2, 3}, {1, 3}, {3, 3}}, {{2, 2, 1}, {2, 0, 1}, {2, 1, 1}}, {{20, 37}, {3, 37}, {11, 37}}});
    put(make_row<2, false>(
            "stack", [](auto x, auto y) { return stack({x, y, x}, 1); }, {},
            [](const std::vector<array>& x) {
                extents dims = x[0].dims;
                dims.insert(dims.begin() + 1, 3);
                return built(dims, [&](extents at) {
                    const std::size_t k = at[1] == 1;
                    at.erase(at.begin() + 1);
                    return x[k].at(at);
                });
            }),
        {{{3}, {3}}, {{2, 5}, {2, 5}}, {{0, 2}, {0, 2}}});
    put(make_row<1, false>(
            "take, forwards and from the end", [](auto x) { return take(x, 1) - take(take(x, -2, 0), 0, -1) + take(x, -1); },
            {},
            [](const std::vector<array>& x) {
                extents dims(x[0].dims.begin() + 1, x[0].dims.end());
                return built(dims, [&](extents at) {
                    extents last = at;
                    last.back() = 0;
                    at.insert(at.begin(), 1), last.insert(last.begin(), x[0].dims[0] - 2);
                    extents end = at;
                    end[0] = x[0].dims[0] - 1;
                    return x[0].at(at) - x[0].at(last) + x[0].at(end);
                });
            }),
        {{{2, 3}}, {{4, 1}}});
    rows.back().ulps = 4; // a sum
    put(make_row<1>(
            "split into three", [](auto x) {
                const auto parts = split<3>(x, 1);
                return concat({parts[2], parts[0], parts[1]}, 0);
            },
            {},
            [](const std::vector<array>& x) {
                const std::int64_t n = x[0].dims[0], third = x[0].dims[1] / 3;
                extents dims = x[0].dims;
                dims[0] *= 3, dims[1] = third;
                return built(dims, [&](extents at) {
                    at[1] += (at[0] / n + 2) % 3 * third;
                    at[0] %= n;
                    return x[0].at(at);
                });
            }),
        {{{2, 6}}, {{1, 3, 2}}, {{3, 0}}, {{13, 51}}});
    put(make_row<1, false>(
            "split by sizes, unstack",
            [](auto x) {
                const auto parts = split(x, {1, 0, 4}, -1);
                const auto [a, b, c, d] = unstack<4>(parts[2], -1);
                return stack({b, a, squeeze(parts[0], -1), d, c}, 0);
            },
            {},
            [](const std::vector<array>& x) {
                extents dims{5};
                dims.insert(dims.end(), x[0].dims.begin(), x[0].dims.end() - 1);
                const std::int64_t from[]{2, 1, 0, 4, 3};
                return built(dims, [&](extents at) {
                    at.push_back(from[at[0]]);
                    at.erase(at.begin());
                    return x[0].at(at);
                });
            }),
        {{{5}}, {{3, 5}}, {{0, 5}}});
    put(make_row<1>(
            "reverse", [](auto x) { return reverse(x, {0, -1}); }, {},
            [](const std::vector<array>& x) {
                return built(x[0].dims, [&](extents at) {
                    at[0] = x[0].dims[0] - 1 - at[0];
                    if (at.size() > 1) at.back() = x[0].dims.back() - 1 - at.back();
                    return x[0].at(at);
                });
            }),
        {{{2, 7}}, {{3, 2, 37}}, {{0, 3}}, {{41, 19}}});
    put(make_row<1, false>(
            "reverse everything", [](auto x) { return reverse(x); }, {},
            [](const std::vector<array>& x) {
                array y = x[0];
                for (std::int64_t i = 0; i < y.size(); ++i) y[i] = x[0][y.size() - 1 - i];
                return y;
            }),
        {{{}}, {{9}}, {{2, 3, 5}}});
    return rows;
}

} // namespace tapegraph::testing
