#include <support/settings_guard.hpp>

#include <tapegraph/ops/pooling/cpu.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace pool_test {

namespace {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;
using support::settings_guard;

template <class T>
std::vector<T> numbers(std::int64_t count, std::uint64_t seed, double levels) {
    std::vector<T> values(static_cast<std::size_t>(count));
    std::uint64_t state = seed;
    for (auto& v : values) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        v = static_cast<T>(std::floor(levels * (static_cast<double>(state >> 40) / (1 << 24) - 0.5)) / 8);
    }
    return values;
}

template <class T>
struct answers {
    std::vector<T> maximum, gradient, selected, average, average_gradient, padded_average, padded_gradient;
};

template <class T>
answers<T> naive(const cpu::pool_geometry& g, const std::vector<T>& x, const std::vector<T>& dy,
                 const std::vector<T>& ddx) {
    answers<T> a;
    const auto pooled = dy.size();
    a.maximum = a.selected = a.average = a.padded_average = std::vector<T>(pooled, T(0));
    a.gradient = a.average_gradient = a.padded_gradient = std::vector<T>(x.size(), T(0));
    for (std::int64_t b = 0; b < g.batch; ++b)
        for (std::int64_t oy = 0; oy < g.out_height; ++oy)
            for (std::int64_t ox = 0; ox < g.out_width; ++ox)
                for (std::int64_t c = 0; c < g.channels; ++c) {
                    const auto o =
                        static_cast<std::size_t>(((b * g.out_height + oy) * g.out_width + ox) * g.channels + c);
                    std::vector<std::size_t> cells;
                    for (std::int64_t ky = 0; ky < g.window_height; ++ky)
                        for (std::int64_t kx = 0; kx < g.window_width; ++kx) {
                            const std::int64_t iy = oy * g.stride_height - g.pad_top + ky,
                                               ix = ox * g.stride_width - g.pad_left + kx;
                            if (iy >= 0 && iy < g.in_height && ix >= 0 && ix < g.in_width)
                                cells.push_back(static_cast<std::size_t>(
                                    ((b * g.in_height + iy) * g.in_width + ix) * g.channels + c));
                        }
                    std::size_t best = cells[0];
                    T sum = 0;
                    for (auto i : cells) {
                        sum += x[i];
                        if (x[best] == x[best] && (x[i] > x[best] || x[i] != x[i])) best = i;
                    }
                    a.maximum[o] = x[best];
                    a.gradient[best] += dy[o];
                    a.selected[o] = ddx[best];
                    const T count = static_cast<T>(cells.size()),
                            whole = static_cast<T>(g.window_height * g.window_width);
                    a.average[o] = sum / count;
                    a.padded_average[o] = sum / whole;
                    for (auto i : cells) {
                        a.average_gradient[i] += dy[o] / count;
                        a.padded_gradient[i] += dy[o] / whole;
                    }
                }
    return a;
}

template <class T>
bool equal(const std::vector<T>& a, const std::vector<T>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!(a[i] == b[i] || (a[i] != a[i] && b[i] != b[i]))) return false;
    return a.size() == b.size();
}

// The kernels add in the reference's order, so everything is compared exactly.
template <class T>
void check(const cpu::pool_geometry& g, bool with_nan) {
    const std::int64_t in = g.batch * g.in_height * g.in_width * g.channels,
                       out = g.batch * g.out_height * g.out_width * g.channels;
    auto x = numbers<T>(in, 1, 12); // twelve levels: most windows have ties
    if (with_nan)
        for (std::size_t i = 0; i < x.size(); i += 37) x[i] = std::numeric_limits<T>::quiet_NaN();
    const auto dy = numbers<T>(out, 2, 4096), ddx = numbers<T>(in, 3, 4096);
    const auto expected = naive(g, x, dy, ddx);
    for (auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512})
        for (int threads : {1, 2}) {
            cpu::set_instruction_set(set);
            tg::set_thread_count(threads);
            const std::vector<T> small(dy.size(), T(-77)), large(x.size(), T(-77));
            auto y = small, selected = small, average = small, padded = small;
            auto dx = large, average_dx = large, padded_dx = large;
            cpu::max_pool_forward(g, x.data(), y.data());
            CHECK(equal(y, expected.maximum));
            cpu::max_pool_gradient(g, dy.data(), x.data(), y.data(), dx.data());
            CHECK(equal(dx, expected.gradient));
            cpu::max_pool_select(g, ddx.data(), x.data(), y.data(), selected.data());
            CHECK(equal(selected, expected.selected));
            cpu::average_pool_forward(g, x.data(), average.data());
            CHECK(equal(average, expected.average));
            cpu::average_pool_forward(g, x.data(), padded.data(), true);
            CHECK(equal(padded, expected.padded_average));
            cpu::average_pool_gradient(g, dy.data(), average_dx.data());
            CHECK(equal(average_dx, expected.average_gradient));
            cpu::average_pool_gradient(g, dy.data(), padded_dx.data(), true);
            CHECK(equal(padded_dx, expected.padded_gradient));
        }
}

} // namespace

TEST_CASE_TEMPLATE("pooling: forward, gradients and selection against loops", T, float, double) {
    settings_guard guard;
    for (std::int64_t channels : {1, 3, 15, 16, 17, 37, 150}) {
        for (bool with_nan : {false, true}) {
            check<T>({2, 8, 6, channels, 4, 3, 2, 2, 2, 2, 0, 0}, with_nan);
            check<T>({1, 7, 7, channels, 3, 3, 2, 2, 2, 2, 0, 0}, with_nan);  // a row and a column uncovered
            check<T>({3, 9, 11, channels, 3, 4, 2, 2, 3, 3, 0, 0}, with_nan); // gaps between windows
            check<T>({2, 7, 5, channels, 4, 3, 3, 3, 2, 2, 1, 1}, with_nan);  // overlapping, padded
            check<T>({2, 5, 6, channels, 5, 6, 3, 2, 1, 1, 1, 0}, with_nan);
            check<T>({1, 5, 5, channels, 3, 3, 2, 2, 2, 2, 0, 0}, with_nan); // SAME: the last windows are cut
            check<T>({1, 6, 6, channels, 4, 4, 2, 2, 2, 2, 1, 1}, with_nan); // padded without overlap
            check<T>({2, 4, 3, channels, 1, 1, 4, 3, 4, 3, 0, 0}, with_nan); // global
        }
    }
    check<T>({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}, false);
    check<T>({17, 24, 20, 31, 12, 10, 2, 2, 2, 2, 0, 0}, false); // above the size for threads
    check<T>({1, 40, 30, 150, 19, 14, 3, 3, 2, 2, 0, 0}, false); // one image, cut along channels
}

TEST_CASE("pooling: nothing in, nothing out; no windows leave a gradient of zeros") {
    cpu::max_pool_forward<float>({0, 4, 4, 3, 2, 2, 2, 2, 2, 2, 0, 0}, nullptr, nullptr);
    std::vector<float> x(12, 1), dx(12, -77);
    cpu::max_pool_gradient<float>({1, 2, 2, 3, 0, 0, 3, 3, 3, 3, 0, 0}, nullptr, x.data(), nullptr, dx.data());
    CHECK(dx == std::vector<float>(12, 0));
}

} // namespace pool_test
