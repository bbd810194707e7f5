#include <cuda/device_array.hpp>

#include <cuda/calls.hpp>
#include <cuda/noted_library.hpp>

#include <tapegraph/cuda/ops/reduction/softmax.cuh>

#include <cmath>
#include <limits>

namespace cuda_softmax_test {

/// softmax, log_softmax and their gradients on a device, against the CPU's kernels.

using namespace tapegraph;
using namespace tapegraph::testing;

namespace {

// Lines for one thread, a warp, a block, a block of 1,024; all ways to handle them. 40 lines are
// enough threads here.
constexpr cuda::detail::line_limits small_limits{64, 40, 3, 1200};
const struct {
    extents shape;
    std::int64_t axis;
} lines[]{{{0}, 0},         {{1}, 0},    {{5, 7}, 1},    {{3, 64}, 1},     {{2, 65}, 1},   {{40, 70}, 1},
          {{3, 129}, 1},    {{257}, 0},  {{2, 1025}, 1}, {{2, 9001}, 1},   {{5, 7, 3}, 1}, {{2, 300, 3}, 1},
          {{2, 66, 23}, 1}, {{4, 0}, 1}, {{0, 4}, 1},    {{3, 2, 2, 2}, 0}};

template <class Op, class T>
void check_near(std::int64_t axis, const std::vector<argument>& in, const extents& shape, double scale) {
    const auto want = run_on_cpu<Op, T>({axis}, in, {shaped<T>(shape)}).template values<T>();
    const auto got = run_on_device<Op, T>({axis}, in, {shaped<T>(shape)}).template values<T>();
    CHECK(want.size() == got.size());
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (std::isnan(want[i]) && std::isnan(got[i])) continue;
        const double bound =
            scale * std::numeric_limits<T>::epsilon() * (std::abs(static_cast<double>(want[i])) + scale);
        const double off = std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i])) / bound;
        worst = off <= worst ? worst : off; // NaN stays NaN
    }
    CHECK(worst <= 1);
}

} // namespace

// Both add at most 9,001 numbers in runs of T and then in double, in different orders: some units
// of the sum.
TEST_CASE_TEMPLATE("softmax and its gradients on a device", T, float, double) {
    const with_value set(cuda::detail::limits_of_lines, small_limits);
    for (const auto& [shape, axis] : lines) {
        const auto shown_shape = shape;
        CAPTURE(shown_shape);
        const auto shown_axis = axis;
        CAPTURE(shown_axis);
        const auto x = filled<T>(shape, [](std::int64_t i) { return scattered(i, 1000) / 100.0 - 5; });
        const auto p = filled<T>(shape, [](std::int64_t i) { return scattered(i, 1000, 3) / 1e6; });
        const auto l = filled<T>(shape, [](std::int64_t i) { return -5 - scattered(i, 1000, 3) / 100.0; });
        check_near<softmax_op, T>(axis, {x}, shape, 8);
        check_near<log_softmax_op, T>(axis, {x}, shape, 8);
        check_near<softmax_gradient_op, T>(axis, {x, p}, shape, 16);
        check_near<log_softmax_gradient_op, T>(axis, {x, l}, shape, 64);
    }
    const auto odd = filled<T>({3, 70}, [](std::int64_t i) {
        constexpr double inf = std::numeric_limits<double>::infinity();
        return i == 5 ? std::nan("") : i >= 70 && i < 140 ? -inf : i == 150 ? -inf : 1;
    });
    check_near<softmax_op, T>(1, {odd}, {3, 70}, 8);
}

} // namespace cuda_softmax_test
