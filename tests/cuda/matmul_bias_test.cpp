#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/product/matmul.cuh>

#include <doctest/doctest.h>

#include <array>

namespace matmul_bias_test {

/// Matrix products with bias and relu on a device: the CPU's bits for integers, which are exact
/// before each step rounds.

namespace {

namespace tg = tapegraph;
using namespace tapegraph::testing;

template <class T>
void check_bias(const extents& a, const extents& b, const extents& c, bool transposed = false) {
    CAPTURE(tg::name_of(tg::dtype_of<T>));
    CAPTURE(c.size());
    const auto whole = [](const extents& e, std::uint32_t seed, int most) {
        return filled<T>(e, [=](std::int64_t i) {
            return static_cast<int>(scattered(i, static_cast<std::uint32_t>(2 * most + 1), seed)) - most;
        });
    };
    // One half added to a sum of hundreds, which 16 bits round.
    const auto bias =
        filled<T>({c.back()}, [](std::int64_t i) { return static_cast<int>(scattered(i, 41, 3)) * 0.5 - 10; });
    const std::vector<argument> in{whole(a, 1, 6), whole(b, 2, 6), bias}, out{shaped<T>(c)};
    check_same<tg::matmul_bias_op<false>, T>({transposed, transposed}, in, out);
    check_same<tg::matmul_bias_op<true>, T>({transposed, transposed}, in, out);
}

} // namespace

TEST_CASE_TEMPLATE("matmul with bias and relu on a device", T, float, double, tg::bfloat16, tg::half) {
    for (const auto& [a, b, c] : {std::array<extents, 3>{extents{7, 5}, {5, 3}, {7, 3}},
                                  {extents{1, 5}, {5, 33}, {1, 33}},
                                  {extents{33, 2}, {2, 1}, {33, 1}},
                                  {extents{129, 65}, {65, 130}, {129, 130}},
                                  {extents{4, 3, 5}, {5, 2}, {4, 3, 2}},             // one tall product
                                  {extents{3, 1, 2, 4}, {1, 5, 4, 2}, {3, 5, 2, 2}}, // several
                                  {extents{3, 0}, {0, 4}, {3, 4}},                   // only a bias
                                  {extents{0, 3}, {3, 4}, {0, 4}},
                                  {extents{2, 3}, {3, 0}, {2, 0}}})
        check_bias<T>(a, b, c);
    check_bias<T>({5, 7}, {3, 5}, {7, 3}, true);
    check_bias<T>({5, 1}, {3, 5}, {1, 3}, true);
}

} // namespace matmul_bias_test
