#include <cuda/device_array.hpp>

#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/reduction/length.cuh>

#include <limits>

namespace cuda_length_test {

/// Lengths of doubles on a device have the bits of the CPU's: rows and columns, of which some are gone over again.

using namespace tapegraph;
using namespace tapegraph::testing;

TEST_CASE("lengths on a device") {
    const struct {
        extents x, sums;
    } shapes[]{{{5, 7}, {5, 1}}, {{7, 5}, {1, 5}}, {{2, 3, 4}, {1, 3, 1}}, {{300}, {1}}, {{3, 5000}, {3, 1}},
               {{0, 3}, {1, 3}}, {{3, 0}, {3, 1}}, {{2, 3}, {2, 3}},       {{1}, {1}}};
    for (const auto& each : shapes)
        for (const double scale : {1.0, 1e-200, 1e200, 4e-320, 0.0, std::numeric_limits<double>::infinity()}) {
            const extents &of = each.x, &kept = each.sums;
            CAPTURE(of);
            CAPTURE(scale);
            const auto x = filled<double>(
                of, [&](std::int64_t i) { return (scattered(i, 9, 1) + 1.0) * (i % 3 == 0 ? 1 : scale); });
            // Good sums, and ones that are not, whatever the numbers are.
            const auto sums = filled<double>(kept, [](std::int64_t i) {
                const double all[]{
                    1,     0, 1e-300, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(),
                    1e290, 3};
                return all[i % 7];
            });
            check_same<tapegraph::detail::length_op, double>({}, {x, sums}, {shaped<double>(kept)}, nan_bits::any);
        }
}

} // namespace cuda_length_test
