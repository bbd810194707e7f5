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
    for (const double exponent : {-0.5, 0.0, 1.0, 2.0, 2.5})
        for (const std::int64_t odd : {0, 1}) {
            const tapegraph::detail::lp_slopes slopes{p.a, exponent, odd};
            check_same<tapegraph::detail::lp_pool_gradient_op, T>(slopes, {uneven<T>(pooled), x, y},
                                                                  {shaped<T>(p.image)}, nan_bits::any);
            check_same<tapegraph::detail::lp_pool_slope_op, T>(slopes, {uneven<T>(p.image), x, y}, {shaped<T>(pooled)},
                                                               nan_bits::any);
        }
    for (const std::int64_t count_padding : {0, 1}) {
        window_attributes a = p.a;
        a.count_padding = count_padding;
        check_same<average_pool_op, T>(a, {uneven<T>(p.image)}, {shaped<T>(pooled)});
        check_same<average_pool_gradient_op, T>(a, {uneven<T>(pooled)}, {shaped<T>(p.image)});
    }
}

// Windows that do not overlap: gradients by window, and vectors of channels. Up to 16 elements lie from one window to the next, but
// for the last one here.
const pooling apart[]{
    make({2, 6, 4, 1}, 2, 2, 2, 2),
    make({2, 6, 4, 2}, 2, 2, 2, 2),
    make({3, 4, 6, 150}, 2, 2, 2, 2),
    make({1, 4, 4, 13}, 2, 2, 2, 2),
    make({2, 7, 5, 8}, 2, 2, 2, 2),             // a row and a column are in no window
    make({2, 9, 8, 6}, 2, 1, 3, 4),             // gaps between windows
    make({1, 7, 9, 4}, 2, 2, 2, 2, 1, 1, 1, 1), // windows reach over every side
    make({2, 5, 6, 12}, 2, 2, 3, 3, 1, 1, 1, 0),
    make({2, 8, 6, 10}, 1, 2, 1, 2),
    make({1, 6, 8, 16}, 2, 1, 2, 1),
    make({2, 10, 11, 4}, 3, 3, 3, 3),
    make({1, 9, 13, 8}, 4, 4, 4, 4),
    make({1, 5, 5, 8}, 4, 4, 4, 4, 3, 2, 3, 3),
    same(make({2, 7, 5, 4}, 2, 2, 2, 2)),
    make({3, 38, 4}, 1, 2, 1, 2),
    make({2, 37, 6}, 1, 3, 1, 4, 0, 1, 0, 2),
    make({1, 3, 3, 8}, 1, 1, 1, 1),
    make({4, 24, 18, 150}, 2, 2, 2, 2), // more than one block, and not a whole number of them
    make({2, 11, 10, 4}, 5, 5, 5, 5),
};

/// Images of one number, of zeros of both signs, and of few numbers with `bad` among them.
template <class T>
std::vector<argument> awkward_images(const extents& e) {
    const double infinite = std::numeric_limits<double>::infinity();
    std::vector<argument> images{filled<T>(e, [](std::int64_t) { return 2.5; }),
                                 filled<T>(e, [](std::int64_t i) { return scattered(i, 2) == 0 ? 0. : -0.; })};
    for (const double bad : {std::nan(""), -std::nan(""), infinite, -infinite, -0.})
        images.push_back(image_of<T>(e, bad));
    return images;
}

/// `shift`: bytes by which the tensors miss an alignment of 64: x, y, dy and dx.
template <class T>
void check_apart(const pooling& p, const argument& image, const std::size_t (&shift)[4] = {0, 0, 0, 0}) {
    const extents pooled = p.pooled();
    CAPTURE(p.image);
    CAPTURE(shift[0] + 100 * shift[1] + 10'000 * shift[2] + 1'000'000 * shift[3]);
    argument x = image, y = shaped<T>(pooled), dx = shaped<T>(p.image);
    argument dy = filled<T>(pooled, [](std::int64_t i) { return (scattered(i, 2001) - 1000.) / 97; });
    x.shift = shift[0], y.shift = shift[1], dy.shift = shift[2], dx.shift = shift[3];
    check_same<max_pool_op, T>(p.a, {x}, {y});
    argument averaged = y;
    y.values = run_on_cpu<max_pool_op, T>(p.a, {x}, {y}).out[0];
    check_same<max_pool_gradient_op, T>(p.a, {dy, x, y}, {dx});
    for (const std::int64_t count_padding : {0, 1}) {
        window_attributes a = p.a;
        a.count_padding = count_padding;
        check_same<average_pool_op, T>(a, {x}, {averaged}, nan_bits::any);
        check_same<average_pool_gradient_op, T>(a, {dy}, {dx});
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

TEST_CASE_TEMPLATE("pooling on a device: windows that do not overlap", T, float, double) {
    for (const pooling& p : apart)
        for (const argument& x : awkward_images<T>(p.image)) check_apart<T>(p, x);
}

TEST_CASE_TEMPLATE("pooling on a device: vectors of channels as wide as addresses allow", T, float, double) {
    for (const std::int64_t channels : {2, 8, 150}) {
        const pooling p = make({2, 5, 6, channels}, 2, 2, 2, 2);
        const argument x = image_of<T>(p.image, std::nan(""));
        for (std::size_t bytes = sizeof(T); bytes <= 16; bytes *= 2) {
            check_apart<T>(p, x, {bytes, bytes, bytes, bytes});
            check_apart<T>(p, x, {bytes, 0, 0, 0});
            check_apart<T>(p, x, {0, bytes, 0, 0});
            check_apart<T>(p, x, {0, 0, bytes, 0});
            check_apart<T>(p, x, {0, 0, 0, bytes});
        }
    }
}

TEST_CASE("pooling on a device: large images in several launches") {
    for (const std::int64_t most : {1, 20, 100}) {
        const with_value set(cuda::detail::most_elements, most);
        check<float>(poolings[6], -1);
        check_apart<float>(apart[4], image_of<float>(apart[4].image, -1));
    }
}

} // namespace pooling_test
