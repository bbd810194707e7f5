#include <cuda/device_array.hpp>

#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/reduction/length.cuh>

#include <limits>
#include <type_traits>

namespace cuda_length_test {

/// Lengths on a device have the bits of the CPU's: rows and columns, of which some are gone over again.

using namespace tapegraph;
using namespace tapegraph::testing;

TEST_CASE_TEMPLATE("lengths on a device", T, float, double) {
    constexpr bool wide = std::is_same_v<T, double>;
    constexpr double small = wide ? 1e-200 : 1e-30, large = wide ? 1e200 : 1e30, smallest = wide ? 4e-320 : 1e-43;
    const struct {
        extents x, sums;
    } shapes[]{{{5, 7}, {5, 1}}, {{7, 5}, {1, 5}}, {{2, 3, 4}, {1, 3, 1}}, {{300}, {1}}, {{3, 5000}, {3, 1}},
               {{0, 3}, {1, 3}}, {{3, 0}, {3, 1}}, {{2, 3}, {2, 3}},       {{1}, {1}}};
    for (const auto& each : shapes)
        for (const double scale : {1.0, small, large, smallest, 0.0, std::numeric_limits<double>::infinity()}) {
            const extents &of = each.x, &kept = each.sums;
            CAPTURE(of);
            CAPTURE(scale);
            const auto x = filled<T>(of, [&](std::int64_t i) {
                return static_cast<T>((scattered(i, 9, 1) + 1.0) * (i % 3 == 0 ? 1 : scale));
            });
            // Good sums, and ones that are not, whatever the numbers are.
            const auto sums = filled<T>(kept, [](std::int64_t i) {
                const T all[]{1,
                              0,
                              T(wide ? 1e-300 : 1e-36),
                              std::numeric_limits<T>::infinity(),
                              std::numeric_limits<T>::quiet_NaN(),
                              T(wide ? 1e290 : 3e38),
                              3};
                return all[i % 7];
            });
            check_same<tapegraph::detail::length_op, T>({}, {x, sums}, {shaped<T>(kept)}, nan_bits::any);
        }
}

} // namespace cuda_length_test
