#include <support/storage.hpp>

#include <tapegraph/eager/random.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

namespace storage_contraction_test {

/// Products, convolutions, reductions and movement of 16-bit elements against references in long double.
///
/// Sums are of float: n products of a float sum err by at most about n 2^-24 of the sum of magnitudes, whatever the order
/// (Higham, gamma_n; the blocks and lanes of a kernel make it far less). What is left is one rounding to the type.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

array magnitudes(const array& x) {
    array y = x;
    for (real& v : y.values) v = std::abs(v);
    return y;
}

template <tg::storage_type T>
void check_sum(const tg::tensor<T>& got, const array& want, const array& sizes, std::int64_t terms, const std::string& what) {
    REQUIRE(extents_of(got.shape()) == want.dims);
    const agreement a = compared(got, want, static_cast<real>(terms + 2) * 0x1p-24L, &sizes);
    CHECK_MESSAGE(a.wrong == 0, what << ": " << a.wrong << " of " << a.elements << ", " << a.first);
    CHECK_MESSAGE(a.beside * 20 <= a.elements, what << ": " << a.beside << " of " << a.elements << " are not nearest");
}

template <class T>
void check_matmul() {
    struct product {
        std::int64_t m, n, k;
    };
    // One row, one column, below and above the tiles of every instruction set, several blocks of k, m and n.
    for (const auto [m, n, k] : {product{1, 1, 1}, {5, 7, 3}, {1, 40, 33}, {37, 1, 50}, {13, 33, 17}, {3, 5, 1100}, {130, 70, 19},
                                 {1, 2100, 5}, {1030, 40, 9}, {2, 3, 0}, {0, 3, 2}, {97, 1100, 6}})
        for (int flags = 0; flags < 4; ++flags) {
            const bool ta = flags % 2 != 0, tb = flags / 2 != 0;
            const auto a = drawn<T>(ta ? tg::shape{k, m} : tg::shape{m, k}, 1), b = drawn<T>(tb ? tg::shape{n, k} : tg::shape{k, n}, 2);
            const tg::tensor<T> got = tg::matmul(a, b, {ta, tb});
            check_sum(got, matmul(plain(a), plain(b), ta, tb), matmul(magnitudes(plain(a)), magnitudes(plain(b)), ta, tb), k,
                      "matmul " + std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k) + " " + std::to_string(flags));
        }
    // Batches that broadcast.
    const auto a = drawn<T>({3, 1, 4, 5}, 3), b = drawn<T>({2, 5, 6}, 4);
    check_sum(tg::tensor<T>(tg::matmul(a, b)), matmul(plain(a), plain(b)), matmul(magnitudes(plain(a)), magnitudes(plain(b))), 5, "batched");
}

template <class T>
void check_convolution(const tg::conv2d_options& o, const tg::shape& xs, const tg::shape& ws, const window& v, const window& h,
                       const std::string& what) {
    auto x = drawn<T>(xs, 1), w = drawn<T>(ws, 2);
    tg::gradient_tape tape;
    tape.watch(x, w);
    const tg::tensor<T> y = tg::conv2d(x, w, o);
    const std::int64_t window_size = ws[0].value * ws[1].value * ws[2].value;
    check_sum(y, convolution(plain(x), plain(w), v, h, o.groups), convolution(magnitudes(plain(x)), magnitudes(plain(w)), v, h, o.groups),
              window_size, what + " forward");
    const auto dy = drawn<T>(y.shape(), 3);
    const tg::tensor<T> loss = y * dy; // seeded by ones: what arrives at y is dy itself
    const auto [dx, dw] = tape.gradient(loss, x, w);
    // The convolution is linear in both operands: the adjoints by unit vectors would be slow, so they are spelled out here.
    const array px = plain(x), pw = plain(w), pd = plain(dy);
    array gx(px.dims), gw(pw.dims), mx = gx, mw = gw;
    const std::int64_t per = ws[3].value / o.groups, top = v.front(px.dims[1], pw.dims[0]), left = h.front(px.dims[2], pw.dims[1]);
    for (std::int64_t i = 0; i < pd.size(); ++i) {
        const extents at = unravel(i, pd.dims);
        for (std::int64_t p = 0; p < pw.dims[0]; ++p)
            for (std::int64_t q = 0; q < pw.dims[1]; ++q) {
                const std::int64_t r = at[1] * v.stride + p * v.dilation - top, s = at[2] * h.stride + q * h.dilation - left;
                if (r < 0 || r >= px.dims[1] || s < 0 || s >= px.dims[2]) continue;
                for (std::int64_t u = 0; u < pw.dims[2]; ++u) {
                    const extents image{at[0], r, s, at[3] / per * pw.dims[2] + u}, filter{p, q, u, at[3]};
                    gx.at(image) += pd[i] * pw.at(filter);
                    gw.at(filter) += pd[i] * px.at(image);
                    mx.at(image) += std::abs(pd[i] * pw.at(filter));
                    mw.at(filter) += std::abs(pd[i] * px.at(image));
                }
            }
    }
    check_sum(dx, gx, mx, window_size * per, what + " by x");
    check_sum(dw, gw, mw, pd.dims[0] * pd.dims[1] * pd.dims[2], what + " by w");
}

} // namespace

TEST_CASE_TEMPLATE("16-bit elements: matrix products", T, tg::bfloat16, tg::half) { check_matmul<T>(); }

TEST_CASE_TEMPLATE("16-bit elements: convolutions and their gradients", T, tg::bfloat16, tg::half) {
    check_convolution<T>({}, {2, 6, 7, 3}, {3, 2, 3, 5}, {}, {}, "plain");
    check_convolution<T>({.stride = {2, 1}, .padding = tg::padding::same(), .dilation = {1, 2}}, {2, 7, 9, 4}, {3, 3, 4, 6},
                         {.stride = 2, .same = true}, {.dilation = 2, .same = true}, "same");
    check_convolution<T>({.groups = 2}, {1, 5, 5, 4}, {2, 2, 2, 6}, {}, {}, "groups");
    check_convolution<T>({.padding = tg::padding::same(), .groups = 5}, {3, 5, 4, 5}, {3, 3, 1, 5}, {.same = true}, {.same = true},
                         "depthwise");
}

TEST_CASE_TEMPLATE("16-bit elements: reductions sum in float and round at the end", T, tg::bfloat16, tg::half) {
    for (const tg::shape& s : {tg::shape{3, 5, 7}, {1, 1, 1}, {40, 33, 70}, {2, 5000, 3}}) {
        const auto x = drawn<T>(s, 1, -1, 1.5);
        const array p = plain(x);
        for (const std::vector<int>& axes : {std::vector<int>{0}, {1}, {2}, {0, 2}, {0, 1, 2}}) {
            tg::axes over = axes[0];
            if (axes.size() == 2) over = {axes[0], axes[1]};
            if (axes.size() == 3) over = {};
            const std::string what = tg::to_string(s) + " over " + std::to_string(axes.size()) + " from " + std::to_string(axes[0]);
            const array size = fold(magnitudes(p), axes, false, sum_of);
            const std::int64_t terms = 64; // of a lane's sum; tiles are added in double
            check_sum(tg::tensor<T>(sum(x, over)), fold(p, axes, false, sum_of), size, terms, "sum " + what);
            const tg::tensor<T> squares = sum(square(x), over); // the squares are rounded before they are added
            const tg::tensor<T> kept = square(x);
            check_sum(squares, fold(plain(kept), axes, false, sum_of), fold(magnitudes(plain(kept)), axes, false, sum_of), terms,
                      "sum of squares " + what);
            const array average = fold(magnitudes(p), axes, false, mean_of);
            check_sum(tg::tensor<T>(mean(x, over)), fold(p, axes, false, mean_of), average, terms, "mean " + what);
            CHECK(difference({tg::tensor<T>(max(x, over))}, {tg::tensor<T>(tg::cast<T>(max(tg::cast<float>(x), over)))}).empty());
        }
    }
    // 80000 elements: half has no such count, and their sum is beyond it.
    const auto many = tg::full<T>({80000}, T(2));
    CHECK(static_cast<float>(tg::tensor<T>(mean(many)).item()) == 2);
}

TEST_CASE_TEMPLATE("16-bit elements: movement, order, pooling", T, tg::bfloat16, tg::half) {
    const auto x = drawn<T>({37, 19, 5}, 1);
    const tg::tensor<float> wide = tg::cast<float>(x);
    const auto same = [](const tg::tensor<T>& narrow, const tg::tensor<float>& reference) {
        return difference({narrow}, {tg::tensor<T>(tg::cast<T>(reference))}).empty();
    };
    CHECK(same(transpose(x, {2, 0, 1}), transpose(wide, {2, 0, 1})));
    CHECK(same(transpose(x, {1, 0, 2}), transpose(wide, {1, 0, 2})));
    CHECK(same(concat(x, x, 1), concat(wide, wide, 1)));
    CHECK(same(reshape(x, {5, 37, 19}), reshape(wide, {5, 37, 19})));
    CHECK(same(sort(x), sort(wide)));
    CHECK(same(cumulative_sum(x, 0), cumulative_sum(wide, 0)));
    CHECK(difference({argmax(x, 1)}, {argmax(wide, 1)}).empty());
    const tg::tensor<std::int32_t> rows{3, 0, 3, 36};
    CHECK(same(gather(x, rows), gather(wide, rows)));
    const tg::tensor<T> picked = gather(x, rows);
    CHECK(same(scatter_add(picked, rows, {37, 19, 5}), scatter_add(tg::cast<float>(picked), rows, {37, 19, 5})));
    const tg::tensor<std::int32_t> ends{1, 1, 1, 0};
    const auto weights = drawn<T>({4}, 3);
    const tg::tensor<float> wide_weights = tg::cast<float>(weights);
    CHECK(same(gather_scatter_add(x, rows, ends, {2, 19, 5}), gather_scatter_add(wide, rows, ends, {2, 19, 5})));
    CHECK(same(gather_scatter_add(x, rows, ends, weights, {2, 19, 5}),
               gather_scatter_add(wide, rows, ends, wide_weights, {2, 19, 5})));
    const auto image = drawn<T>({2, 7, 9, 3}, 2);
    const tg::tensor<float> wide_image = tg::cast<float>(image);
    CHECK(same(max_pooling2d(image), max_pooling2d(wide_image)));
    CHECK(same(average_pooling2d(image), average_pooling2d(wide_image)));
    CHECK(same(softmax(x), softmax(wide)));
    CHECK(same(tg::one_hot<T>(rows, 40), tg::one_hot<float>(rows, 40)));
    CHECK(same(tg::random::normal<T>({5000}, {.seed = 3}), tg::random::normal<float>({5000}, {.seed = 3})));
    // Rounding does not reach the end that is excluded: of [0.998, 1) bfloat16 has no number.
    const tg::tensor<float> drawn_wide = tg::random::uniform<float>({70001}, {.seed = 4});
    const double below_one = static_cast<double>(tg::random::just_below(T(1)));
    CHECK(same(tg::random::uniform<T>({70001}, {.seed = 4}), tg::tensor<float>(minimum(drawn_wide, below_one))));
    CHECK_THROWS_AS(static_cast<void>(tg::tensor<T>(tg::any_tensor(wide))), tg::dtype_error);
}

} // namespace storage_contraction_test
