#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/cumulative/cumulative.cuh>
#include <tapegraph/cuda/ops/ordering/arg_reduce.cuh>
#include <tapegraph/cuda/ops/movement/movement.cuh>
#include <tapegraph/cuda/reduction.cuh>
#include <tapegraph/cuda/widened.cuh>

namespace widened_test {

/// Operations on 16-bit elements by their float kernels, on a device.

namespace {

namespace tg = tapegraph;
using namespace tapegraph::testing;

template <class T>
void check_type() {
    // An operation with floating results, one with integer results, one with its own scratch
    // memory, none.
    for (const extents& e : {extents{3, 5, 4}, {2, 1031}, {1, 0}, {1, 20001}}) {
        const auto axis = static_cast<std::int64_t>(e.size()) - 1;
        const auto x = filled<T>(e, [](std::int64_t i) { return static_cast<int>(scattered(i, 13)) - 6; });
        const extents kept(e.begin(), e.end() - 1);
        check_same<tg::cumulative_sum_op, T>({.axis = axis}, {x}, {shaped<T>(e)});
        if (e.back() > 0) {
            check_same<tg::arg_reduce_op, T>({.axis = axis}, {x}, {shaped<std::int32_t>(kept)});
            check_same<tg::max_op, T>({.axes = std::int64_t{1} << axis}, {x}, {shaped<T>(kept)});
        }
    }
    // Sums that are not exact in the type are rounded once, at the end.
    const auto ones = filled<T>({5000}, [](std::int64_t i) { return i % 3 == 0 ? 1.0f : 0.5f; });
    check_same<tg::cumulative_sum_op, T>({.axis = 0}, {ones}, {shaped<T>({5000})});
}

} // namespace

TEST_CASE("16-bit operations of a device: between conversions, rounded at the end") {
    check_type<tg::half>();
    check_type<tg::bfloat16>();
}

} // namespace widened_test
