#include <ops/table.hpp>

namespace tapegraph::testing {

namespace {
// Pooling in one dimension is pooling of height 1.
array pool1d(const array& x, std::int64_t taps, const window& w, real (*f)(const std::vector<real>&)) {
    extents dims = x.dims;
    dims.insert(dims.begin() + 1, 1);
    array y = pool({dims, x.values}, 1, taps, {}, w, f);
    y.dims.erase(y.dims.begin() + 1);
    return y;
}
} // namespace

// Sums of some dozens of numbers of order one.
std::vector<row> pooling_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, std::vector<std::vector<extents>> shapes) {
        r.shapes = std::move(shapes);
        r.ulps = 32;
        r.floor = 4;
        r.why = "sums";
        rows.push_back(std::move(r));
    };
    put(make_row<1>(
            "max_pooling2d", [](auto x) { return max_pooling2d(x); }, {},
            [](const std::vector<array>& x) { return pool(x[0], 2, 2, {2}, {2}, max_of); }),
        {{{1, 2, 2, 1}}, {{2, 5, 4, 3}}, {{1, 13, 9, 17}}});
    put(make_row<1>(
            "max_pooling2d 3x2 same, overlapping",
            [](auto x) {
                return max_pooling2d(x, {.pool_size = {3, 2}, .stride = {2, 1}, .padding = padding::same()});
            },
            {},
            [](const std::vector<array>& x) {
                return pool(x[0], 3, 2, {2, 1, 0, 0, true}, {1, 1, 0, 0, true}, max_of);
            }),
        {{{1, 4, 3, 2}}, {{1, 1, 1, 1}}, {{2, 7, 5, 3}}});
    const auto length = [](const auto& v, real p) {
        real sum = 0;
        for (const real x : v) sum += std::pow(std::abs(x), p);
        return std::pow(sum, 1 / p);
    };
    put(make_row<1>(
            "lp_pooling2d 2",
            [](auto x) {
                return lp_pooling2d(x, 2, {.pool_size = {2, 3}});
            },
            {},
            [=](const std::vector<array>& x) {
                return pool(x[0], 2, 3, {2}, {3}, [=](const auto& v) { return length(v, 2); });
            }),
        {{{1, 2, 3, 1}}, {{2, 5, 7, 3}}, {{1, 13, 9, 17}}});
    put(make_row<1>(
            "lp_pooling2d 3.5 same, overlapping",
            [](auto x) {
                return lp_pooling2d(x, 3.5, {.pool_size = {3, 2}, .stride = {1, 2}, .padding = padding::same()});
            },
            {positive},
            [=](const std::vector<array>& x) {
                return pool(x[0], 3, 2, {1, 1, 0, 0, true}, {2, 1, 0, 0, true},
                            [=](const auto& v) { return length(v, 3.5); });
            }),
        {{{1, 4, 3, 2}}, {{1, 1, 1, 1}}, {{2, 7, 5, 3}}});
    put(make_row<1>(
            "average_pooling2d",
            [](auto x) {
                return average_pooling2d(x, {.pool_size = {2, 3}});
            },
            {}, [](const std::vector<array>& x) { return pool(x[0], 2, 3, {2}, {3}, mean_of); }),
        {{{1, 2, 3, 1}}, {{2, 5, 7, 3}}, {{1, 13, 9, 17}}});
    put(make_row<1>(
            "average_pooling2d same, overlapping",
            [](auto x) {
                return average_pooling2d(x, {.pool_size = {3, 2}, .stride = {1, 2}, .padding = padding::same()});
            },
            {},
            [](const std::vector<array>& x) {
                return pool(x[0], 3, 2, {1, 1, 0, 0, true}, {2, 1, 0, 0, true}, mean_of);
            }),
        {{{1, 4, 3, 2}}, {{1, 1, 1, 1}}});
    put(make_row<1, false>(
            "max_pooling2d dilated, explicit padding",
            [](auto x) {
                return max_pooling2d(x, {.pool_size = {2, 3},
                                         .stride = {1, 2},
                                         .padding = padding::amounts(1, 0, 2, 3),
                                         .dilation = {2, 2}});
            },
            {},
            [](const std::vector<array>& x) {
                return pool(x[0], 2, 3, {1, 2, 1, 0}, {2, 2, 2, 3}, max_of);
            }),
        {{{1, 4, 3, 2}}, {{2, 7, 5, 19}}});
    put(make_row<1>(
            "average_pooling2d dilated",
            [](auto x) {
                return average_pooling2d(
                    x, {.pool_size = {2, 2}, .stride = {2, 1}, .padding = padding::same(), .dilation = {1, 3}});
            },
            {},
            [](const std::vector<array>& x) {
                return pool(x[0], 2, 2, {2, 1, 0, 0, true}, {1, 3, 0, 0, true}, mean_of);
            }),
        {{{1, 4, 5, 2}}, {{2, 3, 7, 17}}, {{0, 3, 7, 2}}});
    put(make_row<1>(
            "average_pooling2d, padding counted",
            [](auto x) {
                return average_pooling2d(x, {.pool_size = {3, 2},
                                             .stride = {2, 1},
                                             .padding = padding::amounts(1, 2, 1, 1),
                                             .count_include_pad = true});
            },
            {},
            [](const std::vector<array>& x) {
                return pool(x[0], 3, 2, {2, 1, 1, 2}, {1, 1, 1, 1},
                            [](const std::vector<real>& v) { return sum_of(v) / 6; });
            }),
        {{{1, 4, 3, 2}}, {{1, 1, 1, 1}}, {{2, 5, 7, 17}}});
    put(make_row<1>(
            "max_pooling1d",
            [](auto x) { return max_pooling1d(x, {.pool_size = 3, .stride = 2, .padding = padding::same()}); }, {},
            [](const std::vector<array>& x) {
                return pool1d(x[0], 3, {2, 1, 0, 0, true}, max_of);
            }),
        {{{1, 5, 1}}, {{2, 8, 3}}, {{1, 1, 17}}});
    put(make_row<1, false>(
            "max_pooling1d by default, and dilated",
            [](auto x) {
                return concat(max_pooling1d(x), max_pooling1d(x, {.pool_size = 3, .stride = 1, .dilation = 2}), 1);
            },
            {},
            [](const std::vector<array>& x) {
                array y = pool1d(x[0], 2, {2}, max_of);
                const array z = pool1d(x[0], 3, {1, 2}, max_of);
                y.dims[1] += z.dims[1]; // of one image
                y.values.insert(y.values.end(), z.values.begin(), z.values.end());
                return y;
            }),
        {{{1, 5, 1}}, {{1, 8, 3}}});
    put(make_row<1>(
            "average_pooling1d",
            [](auto x) { return average_pooling1d(x, {.pool_size = 3, .padding = padding::amounts(0, 0, 1, 1)}); }, {},
            [](const std::vector<array>& x) {
                return pool1d(x[0], 3, {3, 1, 1, 1}, mean_of);
            }),
        {{{1, 4, 1}}, {{2, 11, 3}}});
    put(make_row<1, false>(
            "average_pooling1d, padding counted",
            [](auto x) {
                return average_pooling1d(
                    x, {.pool_size = 3, .padding = padding::amounts(0, 0, 1, 1), .count_include_pad = true});
            },
            {},
            [](const std::vector<array>& x) {
                return pool1d(x[0], 3, {3, 1, 1, 1}, [](const std::vector<real>& v) { return sum_of(v) / 3; });
            }),
        {{{1, 4, 1}}, {{2, 11, 3}}});
    put(make_row<1>(
            "global_max_pooling2d", [](auto x) { return global_max_pooling2d(x); }, {},
            [](const std::vector<array>& x) { return fold(x[0], {1, 2}, false, max_of); }),
        {{{1, 1, 1, 1}}, {{2, 3, 5, 7}}});
    put(make_row<1>(
            "global_average_pooling2d", [](auto x) { return global_average_pooling2d(x, {.keepdims = true}); }, {},
            [](const std::vector<array>& x) { return fold(x[0], {1, 2}, true, mean_of); }),
        {{{1, 1, 1, 1}}, {{2, 3, 5, 7}}});
    put(make_row<1, false>(
            "global pooling 1d",
            [](auto x) { return global_average_pooling1d(x) + global_max_pooling1d(x); }, {},
            [](const std::vector<array>& x) {
                return map({fold(x[0], {1}, false, mean_of), fold(x[0], {1}, false, max_of)},
                           [](const real* v) { return v[0] + v[1]; });
            }),
        {{{1, 1, 1}}, {{2, 5, 3}}});
    return rows;
}

} // namespace tapegraph::testing
