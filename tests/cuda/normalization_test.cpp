#include <cuda/device_array.hpp>

#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/reduction/normalization.cuh>

#include <cmath>
#include <limits>

namespace cuda_normalization_test {

/// Normalization and its derivatives on a device, against the CPU's kernels.

using namespace tapegraph;
using namespace tapegraph::testing;

namespace {

const struct {
    extents shape;
    normalization_attributes how;
} cases[]{
    {{3, 5}, {.first = 1, .last = 1}},
    {{4, 300}, {.first = 1, .last = 1}},
    {{2, 9001}, {.first = 1, .last = 1}},
    {{3, 34}, {.first = 1, .last = 1, .groups = 2}},
    {{2, 7, 6}, {.first = 1, .last = 2, .groups = 3}},
    {{2, 40, 33}, {.first = 1, .last = 2, .groups = 33}},
    {{2, 300, 2}, {.first = 1, .last = 2}},
    {{2, 3, 4, 8}, {.first = 1, .last = 3, .groups = 2, .centered = 0}},
    {{2, 3, 5, 4}, {.first = 2, .last = 3, .groups = 2, .examples = 1, .own = 1}},
    {{2, 3, 5, 4}, {.first = 2, .last = 3, .groups = 2, .examples = 2, .own = 1}},
    {{1100, 2}, {.first = 1, .last = 1}},
    {{0, 3}, {.first = 1, .last = 1}},
    {{3, 0}, {.first = 1, .last = 1}},
    {{2, 0, 3}, {.first = 1, .last = 2}},
};

template <class Op, class T>
std::vector<T> check_near(const normalization_attributes& how, const std::vector<argument>& in, const extents& shape,
                          double scale) {
    const auto want = run_on_cpu<Op, T>(how, in, {shaped<T>(shape)}).template values<T>();
    const auto got = run_on_device<Op, T>(how, in, {shaped<T>(shape)}).template values<T>();
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
    return want;
}

} // namespace

// Both add at most 9,001 numbers below 5 in runs of T and then in double, in different orders, and a
// mean that differs by a unit moves all numbers of its group: some units of the sum.
TEST_CASE_TEMPLATE("normalization and its derivatives on a device", T, float, double) {
    for (const auto& each : cases) {
        const extents shape = each.shape;
        CAPTURE(shape);
        normalization_attributes how = each.how;
        how.epsilon = 0.01;
        extents channels(shape.begin(), shape.begin() + how.own);
        channels.insert(channels.end(), shape.begin() + how.last, shape.end());
        const auto product = [&](std::int64_t from, std::int64_t to) {
            std::int64_t count = 1;
            for (std::int64_t i = from; i < to; ++i) count *= shape[static_cast<std::size_t>(i)];
            return count;
        };
        extents of_sums(shape.begin(), shape.begin() + how.examples);
        of_sums.push_back(2 * product(how.last, static_cast<std::int64_t>(shape.size())) +
                          4 * how.groups * product(how.examples, how.first));
        const auto x = filled<T>(shape, [](std::int64_t i) { return scattered(i, 1000) / 200.0 - 2; });
        const auto dy = filled<T>(shape, [](std::int64_t i) { return scattered(i, 1000, 7) / 400.0 - 1; });
        const auto gamma = filled<T>(channels, [](std::int64_t i) { return 0.5 + scattered(i, 100, 3) / 100.0; });
        const auto beta = filled<T>(channels, [](std::int64_t i) { return scattered(i, 100, 5) / 100.0; });
        check_near<normalization_op, T>(how, {x, gamma, beta}, shape, 16);
        const auto sums = check_near<normalization_sums_op, T>(how, {dy, x, gamma}, of_sums, 64);
        const auto given =
            filled<T>(of_sums, [&](std::int64_t i) { return static_cast<double>(sums[static_cast<std::size_t>(i)]); });
        check_near<normalization_gradient_op, T>(how, {dy, x, gamma, given}, shape, 16);
    }
}

} // namespace cuda_normalization_test
