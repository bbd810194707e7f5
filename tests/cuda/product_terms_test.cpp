#include <cuda/device_array.hpp>

#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/cumulative/product_terms.cuh>

namespace cuda_product_terms_test {

/// Derivatives of products on a device give the bits of the CPU's kernels: they are the same functions.

using namespace tapegraph;
using namespace tapegraph::testing;

namespace {

// Along one axis or several; of no elements, of one, of more than a block.
const struct {
    extents shape;
    std::int64_t axes;
} lines[]{{{1}, 1},   {{5, 7}, 2},   {{7, 5}, 1}, {{2, 3, 4}, 5}, {{3, 67}, 2},
          {{130}, 1}, {{70, 19}, 1}, {{0, 3}, 1}, {{3, 0}, 1}};

} // namespace

TEST_CASE_TEMPLATE("derivatives of products on a device", T, float, double) {
    using tapegraph::detail::product_gradient_op, tapegraph::detail::product_terms_op;
    for (const auto& [shape, axes] : lines)
        for (const std::int64_t way : {0, 1, 2, 3, 4}) { // total, or a running product
            const auto shown_shape = shape;
            CAPTURE(shown_shape);
            CAPTURE(way);
            if (way != 0 && (axes & (axes - 1)) != 0) continue;
            extents kept = shape;
            for (std::size_t i = 0; i < kept.size(); ++i)
                if (way == 0 && (axes >> i & 1) != 0) kept[i] = 1;
            const tapegraph::detail::product_attributes a{axes, way == 0, (way & 1) != 0 && way != 0, way >= 3};
            const auto numbers = [](const extents& of, unsigned seed) { // zeros among them, and what overflows
                return filled<T>(of, [seed](std::int64_t i) {
                    const double x = scattered(i, 9, seed) - 4.0;
                    return x > 2 ? x * 1e30 : x;
                });
            };
            const auto x = numbers(shape, 1), v = numbers(shape, 2), w = numbers(shape, 3), dy = numbers(kept, 4);
            const auto check = [&]<class Op>(Op, const std::vector<argument>& in, const extents& result) {
                const auto want = run_on_cpu<Op, T>(a, in, {shaped<T>(result)}).template values<T>();
                const auto got = run_on_device<Op, T>(a, in, {shaped<T>(result)}).template values<T>();
                REQUIRE(want.size() == got.size());
                int differ = 0;
                for (std::size_t i = 0; i < got.size(); ++i)
                    differ += !(want[i] == got[i] || (want[i] != want[i] && got[i] != got[i]));
                CHECK(differ == 0);
            };
            check(product_gradient_op<0>{}, {dy, x}, shape);
            check(product_gradient_op<2>{}, {dy, x, v, w}, shape);
            check(product_terms_op<1>{}, {x, v}, kept);
        }
}

} // namespace cuda_product_terms_test
