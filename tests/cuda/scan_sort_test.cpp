#include <cuda/device_array.hpp>

#include <cuda/disorder.hpp>

#include <tapegraph/cuda/ops/cumulative/cumulative.cuh>
#include <tapegraph/cuda/ops/ordering/arg_reduce.cuh>
#include <tapegraph/cuda/ops/ordering/sort.cuh>

#include <cmath>
#include <limits>

namespace scan_sort_test {

/// Scans, sorts, argmax and argmin on a device, against the CPU's kernels.

using namespace tapegraph;
using namespace tapegraph::testing;

namespace {

/// Numbers whose sums are exact in every order.
template <class E>
argument whole(const extents& e) {
    return filled<E>(e, [](std::int64_t i) { return scattered(i, 100) - (std::is_signed_v<E> ? 50.0 : 0.0); });
}
/// Numbers whose products are exact in every order: powers of two that cancel, of either sign.
template <class E>
argument powers(const extents& e) {
    return filled<E>(e, [](std::int64_t i) {
        const double sign = std::is_signed_v<E> && scattered(i, 3) == 0 ? -1 : 1;
        return sign * (std::is_integral_v<E> ? scattered(i, 2) + 1.0 : i % 2 == 0 ? 2 : 0.5);
    });
}

// All ways to handle lines, within small_limits.
const struct {
    extents shape;
    std::int64_t axis;
} lines[]{{{0}, 0},         {{1}, 0},    {{5, 7}, 1},    {{3, 64}, 1},     {{2, 65}, 1},      {{40, 70}, 1},
          {{3, 129}, 1},    {{257}, 0},  {{2, 1024}, 1}, {{2, 1025}, 1},   {{1200}, 0},       {{2, 1201}, 1},
          {{4, 1201}, 1},   {{5003}, 0}, {{5, 7, 3}, 1}, {{2, 300, 1}, 1}, {{1, 2500, 2}, 1}, {{2, 300, 3}, 1},
          {{2, 66, 23}, 1}, {{4, 0}, 1}, {{0, 4}, 1},    {{3, 2, 2, 2}, 0}};

template <class T>
std::vector<T> values_of(const argument& a) {
    std::vector<T> v(a.values.size() / sizeof(T));
    if (!v.empty()) std::memcpy(v.data(), a.values.data(), a.values.size());
    return v;
}

} // namespace

TEST_CASE_TEMPLATE("scans on a device: exact where sums and products are", T, float, double, std::int32_t, std::int64_t,
                   std::uint8_t) {
    const with_value set(cuda::detail::limits_of_lines, small_limits);
    for (const auto& line : lines) {
        const extents& shape = line.shape;
        const std::int64_t axis = line.axis;
        CAPTURE(shape);
        for (const std::int64_t way : {0, 1, 2, 3}) {
            check_same<cumulative_sum_op, T>({axis, way & 1, way >> 1}, {whole<T>(shape)}, {shaped<T>(shape)});
            check_same<cumulative_product_op, T>({axis, way & 1, way >> 1}, {powers<T>(shape)}, {shaped<T>(shape)});
        }
    }
}

// Accumulated in double; a sum of n numbers in another order may differ by n units of the sum of
// magnitudes, and by the last rounding, which is the only visible one where the result is a float.
TEST_CASE_TEMPLATE("scans on a device: accuracy", T, float, double) {
    for (const extents& e : {extents{3000}, extents{2, 20011}}) {
        const auto x = uneven<T>(e);
        const auto axis = static_cast<std::int64_t>(e.size()) - 1;
        const auto want = run_on_cpu<cumulative_sum_op, T>({axis, 0, 0}, {x}, {shaped<T>(e)}).template values<T>();
        const auto got = run_on_device<cumulative_sum_op, T>({axis, 0, 0}, {x}, {shaped<T>(e)}).template values<T>();
        const auto numbers = values_of<T>(x);
        double size = 0, worst = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
            size += std::abs(static_cast<double>(numbers[i]));
            const double bound = size * static_cast<double>(i + 1) * 1.2e-16 +
                                 std::abs(static_cast<double>(want[i])) * std::numeric_limits<T>::epsilon();
            worst = std::max(worst, std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i])) / bound);
        }
        CHECK(worst <= 1);
    }
    // Where a thread takes a line the order is the CPU's.
    check_same<cumulative_sum_op, T>({1, 0, 0}, {uneven<T>({70, 60})}, {shaped<T>({70, 60})});
    check_same<cumulative_sum_op, T>({0, 1, 1}, {uneven<T>({64, 3})}, {shaped<T>({64, 3})});
}

TEST_CASE("scans on a device: NaN and infinity affect only what follows them") {
    const auto x = filled<float>({300}, [](std::int64_t i) {
        return i == 130 ? std::numeric_limits<double>::infinity() : i == 200 ? std::nan("") : 1;
    });
    const auto y = run_on_device<cumulative_sum_op, float>({0, 0, 0}, {x}, {shaped<float>({300})}).values<float>();
    for (std::size_t i = 0; i < 300; ++i) {
        if (i < 130)
            CHECK(y[i] == static_cast<float>(i + 1));
        else if (i < 200)
            CHECK(y[i] == std::numeric_limits<float>::infinity());
        else
            CHECK(std::isnan(y[i]));
    }
}

TEST_CASE_TEMPLATE("argsort on a device: the CPU's order", T, float, double, std::int32_t, std::int64_t, std::uint8_t) {
    for (const extents& e : {extents{0}, extents{1}, extents{2}, extents{3, 0}, extents{7, 3}, extents{2, 3, 31},
                             extents{33, 64}, extents{3, 65}, extents{5, 300}, extents{1024}, extents{1025},
                             extents{2048}, extents{2, 2049}, extents{5003}}) {
        CAPTURE(e);
        for (const std::int64_t descending : {0, 1})
            check_same<argsort_op, T>({descending, -1}, {disorder<T>(e)}, {shaped<std::int32_t>(e)});
    }
}

TEST_CASE_TEMPLATE("top_k on a device", T, float, std::int64_t) {
    for (const std::int64_t length : {1, 5, 100, 2500, 6001})
        for (const std::int64_t count : {0, 1, 3, 1100, 2500}) {
            if (count > length) continue;
            CAPTURE(length);
            CAPTURE(count);
            check_same<argsort_op, T>({1, count}, {disorder<T>({2, length})}, {shaped<std::int32_t>({2, count})});
        }
}

TEST_CASE("argsort on a device: what the CPU refuses") {
    check_same<argsort_op, float>({0, 7}, {disorder<float>({2, 5})}, {shaped<std::int32_t>({2, 7})});
}

TEST_CASE("argsort on a device: many rows take several launches") {
    const with_value set(cuda::detail::most_elements, 50);
    check_same<argsort_op, float>({0, -1}, {disorder<float>({13, 20})}, {shaped<std::int32_t>({13, 20})});
    check_same<argsort_op, float>({0, -1}, {disorder<float>({2, 2100})}, {shaped<std::int32_t>({2, 2100})});
}

TEST_CASE_TEMPLATE("argmax and argmin on a device", T, float, double, std::int32_t, std::uint8_t) {
    const with_value set(cuda::detail::limits_of_lines, small_limits);
    for (const auto& line : lines) {
        const extents& shape = line.shape;
        const std::int64_t axis = line.axis;
        CAPTURE(shape);
        extents reduced = shape;
        reduced.erase(reduced.begin() + axis);
        for (const std::int64_t maximum : {0, 1}) {
            check_same<arg_reduce_op, T>({axis, maximum, 0}, {disorder<T>(shape)}, {shaped<std::int32_t>(reduced)});
            check_same<arg_reduce_op, T>({axis, maximum, 0}, {whole<T>(shape)}, {shaped<std::int32_t>(reduced)});
        }
    }
}

// Not under AddressSanitizer: a sort without a barrier reads anywhere.
#if defined(TG_SIMT) && !defined(SIMT_TSAN) && !defined(SIMT_ASAN)
namespace {

template <class Op, class T>
std::vector<std::string> unnoticed(const typename Op::attributes& a, const argument& x, const argument& y,
                                   std::size_t& found) {
    const auto want = run_on_cpu<Op, T>(a, {x}, {y});
    return simt::unnoticed_barriers([&] { return run_on_device<Op, T>(a, {x}, {y}).out == want.out; }, found);
}

} // namespace

TEST_CASE("scans, sorts and argmax on a device: no barrier is there for nothing") {
    const with_value set(cuda::detail::limits_of_lines, small_limits);
    std::size_t found = 0;
    const extents row{3000};
    CHECK(unnoticed<cumulative_sum_op, float>({0, 0, 0}, whole<float>(row), shaped<float>(row), found) ==
          std::vector<std::string>{});
    CHECK(found == 4); // three of the scan, one of the chunks' totals
    CHECK(unnoticed<argsort_op, float>({0, -1}, disorder<float>({2600}), shaped<std::int32_t>({2600}), found) ==
          std::vector<std::string>{});
    CHECK(found == 7); // three of the tiles, four of the merges
    CHECK(unnoticed<arg_reduce_op, float>({0, 1, 0}, whole<float>({900}), shaped<std::int32_t>({}), found) ==
          std::vector<std::string>{});
    CHECK(found == 1);
}
#endif

} // namespace scan_sort_test
