#include <ops/table.hpp>

namespace tapegraph::testing {

namespace {
// y[i] = x[from(i)], axis by axis; a place that leads nowhere (-1) has `fill`.
array chosen(const array& x, const extents& dims, real fill, const std::function<std::int64_t(std::size_t, std::int64_t)>& from) {
    array y(dims);
    for (std::int64_t i = 0; i < y.size(); ++i) {
        extents at = unravel(i, dims);
        bool outside = false;
        for (std::size_t k = 0; k < at.size(); ++k) {
            at[k] = from(k, at[k]);
            outside = outside || at[k] < 0;
        }
        y[i] = outside ? fill : x.at(at);
    }
    return y;
}
std::int64_t modulo(std::int64_t a, std::int64_t n) { return (a % n + n) % n; }
// Walks to the place one step at a time, turning where the mode says.
std::int64_t reflected(std::int64_t place, std::int64_t n, bool twice) {
    if (n == 1) return 0;
    while (place < 0 || place >= n) place = place < 0 ? -place - twice : 2 * n - 2 + twice - place;
    return place;
}
} // namespace

// Elements are moved, so values are equal; adjoints add.
std::vector<row> padding_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, std::vector<std::vector<extents>> shapes) {
        r.shapes = std::move(shapes);
        r.ulps = 0;
        rows.push_back(std::move(r));
        return &rows.back();
    };
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
    put(make_row<1, false>(
            "pad with a number, the middle axis too",
            [](auto x) {
                return pad(x, {{0, 1}, {2, 0}, {0, 0}}, {.value = -1.5});
            },
            {},
            [](const std::vector<array>& x) {
                extents dims = x[0].dims;
                dims[0] += 1, dims[1] += 2;
                return chosen(x[0], dims, -1.5, [&](std::size_t k, std::int64_t i) {
                    if (k == 1) i -= 2;
                    return i < x[0].dims[k] ? i : -1;
                });
            }),
        {{{2, 3, 2}}, {{1, 1, 1}}, {{3, 0, 5}}, {{2, 200, 3}}});
    const std::vector<std::vector<extents>> padded{{{4, 5}}, {{1, 7}}, {{2, 1, 3}}, {{3, 4, 2}}, {{30, 41}}};
    const auto mode = [&](const char* name, auto run, std::function<std::int64_t(std::int64_t, std::int64_t)> from) {
        put(make_row<1, false>(name, run, {}, [from](const std::vector<array>& x) {
                extents dims = x[0].dims;
                dims[0] += 5, dims[1] += 1;
                return chosen(x[0], dims, 0, [&](std::size_t k, std::int64_t i) {
                    return k == 0 ? from(i - 2, x[0].dims[0]) : k == 1 ? from(i - 1, x[0].dims[1]) : i;
                });
            }),
            padded);
    };
    mode(
        "pad reflect",
        [](auto x) {
            return pad(x, {{2, 3}, {1, 0}}, {.mode = pad_mode::reflect});
        },
        [](std::int64_t i, std::int64_t n) { return reflected(i, n, false); });
    mode(
        "pad symmetric",
        [](auto x) {
            return pad(x, {{2, 3}, {1, 0}}, {.mode = pad_mode::symmetric});
        },
        [](std::int64_t i, std::int64_t n) { return reflected(i, n, true); });
    mode(
        "pad edge",
        [](auto x) {
            return pad(x, {{2, 3}, {1, 0}}, {.mode = pad_mode::edge});
        },
        [](std::int64_t i, std::int64_t n) { return std::clamp<std::int64_t>(i, 0, n - 1); });
    mode(
        "pad wrap",
        [](auto x) {
            return pad(x, {{2, 3}, {1, 0}}, {.mode = pad_mode::wrap});
        },
        modulo);
    put(make_row<1>(
            "pad the last axis by reflection, many times its length",
            [](auto x) {
                return pad(x, {{11, 2000}}, {.mode = pad_mode::reflect});
            },
            {},
            [](const std::vector<array>& x) {
                return chosen(x[0], {x[0].dims[0] + 2011}, 0, [&](std::size_t, std::int64_t i) {
                    return reflected(i - 11, x[0].dims[0], false);
                });
            }),
        {{{3}}, {{1}}, {{7}}, {{2}}});
    put(make_row<1>(
            "tile",
            [](auto x) {
                return tile(x, {2, 1, 3});
            },
            {},
            [](const std::vector<array>& x) {
                array whole = x[0];
                while (whole.dims.size() < 3) whole.dims.insert(whole.dims.begin(), 1);
                extents dims = whole.dims;
                dims[dims.size() - 3] *= 2, dims.back() *= 3;
                return chosen(whole, dims, 0, [&](std::size_t k, std::int64_t i) { return i % whole.dims[k]; });
            }),
        {{{}}, {{4}}, {{2, 3}}, {{2, 3, 5}}, {{2, 1, 2, 2}}, {{2, 0}}, {{1, 2, 1, 2, 1, 2, 1, 3}}, {{3, 50, 21}}});
    put(make_row<1>(
            "repeat", [](auto x) { return repeat(x, 3, -1); }, {},
            [](const std::vector<array>& x) {
                extents dims = x[0].dims;
                dims.back() *= 3;
                return chosen(x[0], dims, 0, [&](std::size_t k, std::int64_t i) { return k + 1 == dims.size() ? i / 3 : i; });
            }),
        {{{5}}, {{2, 3}}, {{2, 0}}, {{3, 1}}, {{17, 40}}, {{40001}}});
    put(make_row<1, false>(
            "repeat an outer axis", [](auto x) { return repeat(x, 2, 0); }, {},
            [](const std::vector<array>& x) {
                extents dims = x[0].dims;
                dims[0] *= 2;
                return chosen(x[0], dims, 0, [&](std::size_t k, std::int64_t i) { return k == 0 ? i / 2 : i; });
            }),
        {{{4}}, {{2, 3}}, {{3, 2, 5}}});
    put(make_row<1>(
            "roll", [](auto x) { return roll(roll(x, 2, 0), -3, -1); }, {},
            [](const std::vector<array>& x) {
                return chosen(x[0], x[0].dims, 0, [&](std::size_t k, std::int64_t i) {
                    const std::int64_t shift = (k == 0 ? -2 : 0) + (k + 1 == x[0].dims.size() ? 3 : 0);
                    return modulo(i + shift, x[0].dims[k]);
                });
            }),
        {{{5}}, {{2, 7}}, {{3, 2, 4}}, {{1, 1}}, {{33, 70}}, {{70001}}});

    put(make_row<1>(
            "tril", [](auto x) { return tril(x) + 2 * tril(x, -1); }, {},
            [](const std::vector<array>& x) {
                array y = x[0];
                const std::int64_t m = y.dims.back(), n = y.dims[y.dims.size() - 2];
                for (std::int64_t i = 0; i < y.size(); ++i) {
                    const std::int64_t r = i / m % n, c = i % m;
                    y[i] *= (c <= r ? 1 : 0) + (c <= r - 1 ? 2 : 0);
                }
                return y;
            }),
        {{{3, 3}}, {{2, 4, 3}}, {{1, 5}}, {{2, 0}}})
        ->ulps = 4; // a sum
    put(make_row<1, false>(
            "triu", [](auto x) { return triu(x, 1); }, {},
            [](const std::vector<array>& x) {
                array y = x[0];
                const std::int64_t m = y.dims.back(), n = y.dims[y.dims.size() - 2];
                for (std::int64_t i = 0; i < y.size(); ++i)
                    if (i % m < i / m % n + 1) y[i] = 0;
                return y;
            }),
        {{{3, 3}}, {{2, 4, 3}}, {{1, 5}}});
    put(make_row<1>(
            "diag_part", [](auto x) { return diag_part(x) + 0 * take(diag_part(x, -1), 0, -1); }, {},
            [](const std::vector<array>& x) {
                extents dims(x[0].dims.begin(), x[0].dims.end() - 2);
                const std::int64_t n = x[0].dims[x[0].dims.size() - 2], m = x[0].dims.back();
                dims.push_back(std::min(n, m));
                array y(dims);
                for (std::int64_t i = 0; i < y.size(); ++i) y[i] = x[0][i / dims.back() * n * m + i % dims.back() * (m + 1)];
                return y;
            }),
        {{{3, 3}}, {{4, 3}}, {{2, 1}}, {{3, 5}}})
        ->ulps = 4;
    put(make_row<1, false>(
            "diag", [](auto x) { return diag(x, -1) + diag(x, 1); }, {},
            [](const std::vector<array>& x) {
                extents dims = x[0].dims;
                const std::int64_t n = dims.back(), side = n + 1;
                dims.back() = side;
                dims.push_back(side);
                array y(dims);
                for (std::int64_t i = 0; i < x[0].size(); ++i) {
                    const std::int64_t k = i % n, matrix = i / n * side * side;
                    y[matrix + (k + 1) * side + k] += x[0][i];
                    y[matrix + k * side + k + 1] += x[0][i];
                }
                return y;
            }),
        {{{3}}, {{2, 4}}, {{1}}});
    put(make_row<1>(
            "constants beside a handle",
            [](auto x) {
                using T = typename decltype(x)::element_type;
                const auto a = arange<T>(x, 5, 0.5, -2), b = linspace<T>(x, 1, 3, 5), c = fill<T>(x, {5}, 0.25);
                return reshape(x + zeros_like(x) - 2 * ones_like(x), {-1, 1}) * (a + b * c) +
                       take(eye<T>(x, 3, 5, 1), 2) * full_like(reshape(x, {-1, 1}), 7);
            },
            {},
            [](const std::vector<array>& x) {
                array y({x[0].size(), 5});
                for (std::int64_t i = 0; i < y.size(); ++i) {
                    const real k = static_cast<real>(i % 5);
                    y[i] = (x[0][i / 5] - 2) * (0.5L - 2 * k + (1 + k * 0.5L) * 0.25L) + (i % 5 == 3 ? 7 : 0);
                }
                return y;
            }),
        {{{3}}, {{2, 2}}, {{0}}})
        ->ulps = 8; // sums and products
    return rows;
}

} // namespace tapegraph::testing
