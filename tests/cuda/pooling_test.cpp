#include <cuda/device_array.hpp>

#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/pooling/lp_pooling.cuh>
#include <tapegraph/cuda/ops/pooling/pooling.cuh>

#include <cmath>

namespace pooling_test {

/// Pooling on a device against the CPU's kernels: equal bits, sums among them. Which NaN lp_pool's arithmetic gives is the
/// processor's choice.

using namespace tapegraph;
using namespace tapegraph::testing;

namespace {

struct pooling {
    extents image; ///< [batch, height, width, channels] or [batch, width, channels]
    window_attributes a;

    extents pooled() const {
        extents e = image;
        const std::size_t spatial = image.size() - 2;
        for (std::size_t i = 0; i < spatial; ++i) {
            const int at = static_cast<int>(i + 2 - spatial);
            e[i + 1] = a.output(at, image[i + 1], a.window[at]).value;
        }
        return e;
    }
};
pooling make(const extents& image, std::int64_t wh, std::int64_t ww, std::int64_t sh, std::int64_t sw,
             std::int64_t top = 0, std::int64_t left = 0, std::int64_t bottom = 0, std::int64_t right = 0,
             std::int64_t dh = 1, std::int64_t dw = 1) {
    pooling p{image, {}};
    p.a.window[0] = wh, p.a.window[1] = ww, p.a.stride[0] = sh, p.a.stride[1] = sw;
    p.a.before[0] = top, p.a.before[1] = left, p.a.after[0] = bottom, p.a.after[1] = right;
    p.a.dilation[0] = dh, p.a.dilation[1] = dw;
    return p;
}
pooling same(pooling p) {
    p.a.mode = static_cast<std::int64_t>(padding_mode::same);
    return p;
}

// One pixel, partitions with and without a rest, gaps, overlap, padding, dilation, one axis only, nothing at all.
const pooling poolings[]{
    make({1, 1, 1, 1}, 1, 1, 1, 1),
    make({2, 6, 4, 3}, 2, 2, 2, 2),
    make({1, 7, 5, 17}, 2, 2, 2, 2),
    make({2, 9, 8, 5}, 2, 1, 3, 4),
    make({2, 9, 7, 4}, 3, 3, 2, 2),
    make({1, 5, 6, 3}, 3, 2, 1, 1, 1, 1, 2, 0),
    make({1, 7, 9, 2}, 3, 4, 2, 3, 2, 1, 1, 3),
    make({2, 11, 10, 3}, 3, 2, 2, 1, 0, 0, 0, 0, 2, 3),
    make({1, 9, 9, 2}, 2, 3, 3, 2, 1, 2, 2, 3, 3, 2),
    make({1, 9, 9, 2}, 2, 2, 1, 1, 1, 1, 1, 1, 2, 1),
    same(make({2, 7, 6, 3}, 3, 3, 2, 2)),
    same(make({1, 5, 5, 2}, 4, 2, 1, 3)),
    make({3, 37, 2}, 1, 4, 1, 3, 0, 1, 0, 2),
    make({2, 8, 8, 1}, 8, 8, 8, 8),
    make({0, 4, 4, 2}, 2, 2, 2, 2),
    make({1, 4, 4, 0}, 2, 2, 2, 2),
};

/// Many equal numbers (a relu's zeros), and `bad` here and there.
template <class T>
argument image_of(const extents& e, double bad) {
    return filled<T>(e, [&](std::int64_t i) {
        const double x = static_cast<double>(scattered(i, 13)) - 6;
        return scattered(i, 23, 2) == 0 ? bad : x > 0 ? x / 3 : 0;
    });
}

template <class T>
void check(const pooling& p, double bad) {
    const extents pooled = p.pooled();
    CAPTURE(p.image);
    CAPTURE(pooled);
    const auto x = image_of<T>(p.image, bad);
    check_same<max_pool_op, T>(p.a, {x}, {shaped<T>(pooled)});
    auto y = shaped<T>(pooled);
    y.values = run_on_cpu<max_pool_op, T>(p.a, {x}, {y}).out[0];
    check_same<max_pool_gradient_op, T>(p.a, {uneven<T>(pooled), x, y}, {shaped<T>(p.image)});
    check_same<max_pool_select_op, T>(p.a, {uneven<T>(p.image), x, y}, {shaped<T>(pooled)});
    for (const double norm : {1.0, 2.0, 3.5})
        check_same<lp_pool_op, T>(lp_pool_op::attributes{p.a, norm}, {x}, {shaped<T>(pooled)}, nan_bits::any);
    for (const std::int64_t count_padding : {0, 1}) {
        window_attributes a = p.a;
        a.count_padding = count_padding;
        check_same<average_pool_op, T>(a, {uneven<T>(p.image)}, {shaped<T>(pooled)});
        check_same<average_pool_gradient_op, T>(a, {uneven<T>(pooled)}, {shaped<T>(p.image)});
    }
}

} // namespace

TEST_CASE_TEMPLATE("pooling on a device: every geometry", T, float, double) {
    for (const pooling& p : poolings) {
        check<T>(p, -1);
        check<T>(p, std::nan(""));
        check<T>(p, -std::numeric_limits<double>::infinity());
    }
}

TEST_CASE("pooling on a device: large images in several launches") {
    for (const std::int64_t most : {1, 20, 100}) {
        const with_value set(cuda::detail::most_elements, most);
        check<float>(poolings[6], -1);
    }
}

} // namespace pooling_test
