#include <cuda/device_array.hpp>

#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/reduction/softmax_cross_entropy.cuh>

#include <cmath>
#include <limits>

namespace cuda_softmax_cross_entropy_test {

/// The cross entropy of class numbers on a device, against the CPU's kernels.

using namespace tapegraph;
using namespace tapegraph::testing;

namespace {

// Rows for one thread, a warp, a block, and a block of 1,024.
constexpr cuda::detail::line_limits small_limits{64, 40, 3, 1200};
const extents shapes[]{{1}, {5, 7}, {3, 64}, {2, 65}, {40, 70}, {3, 129}, {2, 1025}, {2, 9001}, {2, 3, 66}, {0, 4}};

template <class T>
void near(const outcome& got, const outcome& want, double scale) {
    CHECK(got.error == want.error);
    const auto a = got.values<T>(), b = want.values<T>();
    CHECK(a.size() == b.size());
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::isnan(a[i]) && std::isnan(b[i])) continue;
        const double bound = scale * std::numeric_limits<T>::epsilon() * (std::abs(static_cast<double>(b[i])) + 1);
        const double off = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) / bound;
        worst = off <= worst ? worst : off; // NaN stays NaN
    }
    CHECK(worst <= 1);
}

} // namespace

// Both add at most 9,001 numbers in runs of T and then in double, in different orders, and the CPU's
// exponentials of floats err by epsilon (1 + |x|), |x| below 10.
TEST_CASE_TEMPLATE("cross entropy of class numbers on a device", T, float, double) {
    const with_value set(cuda::detail::limits_of_lines, small_limits);
    for (const auto& each : shapes) {
        const extents shape = each, rows(shape.begin(), shape.end() - 1);
        CAPTURE(shape);
        const auto classes = static_cast<std::uint32_t>(shape.back());
        const auto x = filled<T>(shape, [](std::int64_t i) { return scattered(i, 1000) / 100.0 - 5; });
        const auto dy = filled<T>(rows, [](std::int64_t i) { return scattered(i, 1000, 3) / 500.0 - 1; });
        const auto z = filled<std::int32_t>(rows, [&](std::int64_t i) { return scattered(i, classes, 5); });
        const auto wide = filled<std::int64_t>(rows, [&](std::int64_t i) { return scattered(i, classes, 7); });
        using loss = sparse_softmax_cross_entropy_op;
        using slope = sparse_softmax_cross_entropy_gradient_op;
        for (const auto& labels : {z, wide}) {
            const std::vector<argument> of_loss{shaped<T>(rows)}, of_slope{shaped<T>(shape)};
            near<T>(run_on_device<loss, T>({}, {x, labels}, of_loss), run_on_cpu<loss, T>({}, {x, labels}, of_loss), 8);
            near<T>(run_on_device<slope, T>({}, {dy, x, labels}, of_slope),
                    run_on_cpu<slope, T>({}, {dy, x, labels}, of_slope), 16);
        }
    }
}

TEST_CASE("labels outside the classes on a device: the CPU's error") {
    for (const std::int64_t classes : {4, 300}) {
        const auto x = filled<float>({3, classes}, [](std::int64_t i) { return static_cast<double>(i % 5); });
        for (const std::int32_t bad : {-1, static_cast<std::int32_t>(classes)}) {
            const auto z = filled<std::int32_t>({3}, [&](std::int64_t i) { return i == 1 ? bad : 2; });
            const auto want = run_on_cpu<sparse_softmax_cross_entropy_op, float>({}, {x, z}, {shaped<float>({3})});
            CHECK(want.error == "sparse_softmax_cross_entropy_with_logits: index " + std::to_string(bad) +
                                    " at position 1 is outside [0, " + std::to_string(classes) + ")");
            CHECK(run_on_device<sparse_softmax_cross_entropy_op, float>({}, {x, z}, {shaped<float>({3})}).error ==
                  want.error);
        }
    }
}

} // namespace cuda_softmax_cross_entropy_test
