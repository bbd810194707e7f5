#include <cuda/device_array.hpp>

#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/gather/rows.cuh>

#include <limits>

namespace rows_test {

/// Sums over rows of equal index, and rows written into a table, on a device against the CPU's
/// kernels: equal bits, the same errors.

using namespace tapegraph;
using namespace tapegraph::testing;

namespace {

template <class Index>
argument indices(const extents& e, std::uint32_t limit) {
    return filled<Index>(e, [&](std::int64_t i) { return scattered(i, limit); });
}

/// Rows for `index` that are equal where indices are equal, [index..., width].
template <class T, class Index>
argument rows_for(const argument& index, std::int64_t width) {
    extents e(index.view.extents, index.view.extents + index.view.rank);
    e.push_back(width);
    return filled<T>(e, [&](std::int64_t i) {
        Index row;
        std::memcpy(&row, index.values.data() + static_cast<std::size_t>(i / width) * sizeof(Index), sizeof(Index));
        return (static_cast<std::int64_t>(row) * 31 + i % width) % 120;
    });
}

} // namespace

TEST_CASE_TEMPLATE("sum_of_equal_rows on a device adds in the order of the positions", Index, std::int32_t,
                   std::int64_t) {
    const auto check = [](const argument& index, const extents& rows) {
        CAPTURE(rows);
        check_same<sum_of_equal_rows_op, float>({}, {uneven<float>(rows), index}, {shaped<float>(rows)});
        check_same<sum_of_equal_rows_op, double>({}, {uneven<double>(rows), index}, {shaped<double>(rows)});
    };
    check(indices<Index>({0}, 5), {0, 4});
    check(indices<Index>({7}, 5), {7, 0});
    check(indices<Index>({}, 5), {3});
    check(indices<Index>({13}, 5), {13});
    check(indices<Index>({2, 9}, 4), {2, 9, 3});
    check(indices<Index>({301}, 1000), {301, 8});
    check(indices<Index>({5000}, 300), {5000, 2}); // more than a tile of the sort
    // Indices are compared, not used.
    check(filled<Index>({4}, [](std::int64_t i) { return i % 2 == 0 ? std::numeric_limits<Index>::min() : Index(-1); }),
          {4, 3});
    // Runs that begin and end everywhere around the positions where blocks look for them.
    for (const std::int64_t width : {1, 3, 40})
        for (const std::int64_t length : {63, 64, 65, 200})
            for (const std::int64_t begin : {0, 1, 64}) {
                const std::int64_t count = begin + length + 30;
                check(
                    filled<Index>({count}, [&](std::int64_t i) { return i < begin            ? 0
                                                                        : i < begin + length ? 2
                                                                                             : 3; }),
                    {count, width});
            }
}

// Several threads write equal rows for equal indices, which ThreadSanitizer would report.
#if defined(SIMT_TSAN)
constexpr std::int64_t most_picks = 23;
#else
constexpr std::int64_t most_picks = 1000;
#endif

TEST_CASE_TEMPLATE("assign_rows on a device", Index, std::int32_t, std::int64_t) {
    for (const std::int64_t width : {0, 1, 3, 4, 34})
        for (const extents& picks : {extents{0}, extents{1}, extents{2, 9}, extents{301}}) {
            CAPTURE(width);
            CAPTURE(picks);
            auto index = indices<Index>(picks, 23);
            if (index.view.elements() > most_picks) continue;
            if (most_picks == 23) index = filled<Index>(picks, [](std::int64_t i) { return i * 7 % 23; });
            const extents table{23, width};
            check_same<assign_rows_op, float>({}, {uneven<float>(table), index, rows_for<float, Index>(index, width)},
                                              {shaped<float>(table)});
            check_same<assign_rows_op, double>(
                {}, {uneven<double>(table), index, rows_for<double, Index>(index, width)}, {shaped<double>(table)});
            check_same<assign_rows_op, bfloat16>(
                {}, {distinct<bfloat16>(table), index, rows_for<bfloat16, Index>(index, width)},
                {shaped<bfloat16>(table)});
        }
    for (const std::int64_t bad : {-1, 23}) {
        auto index = filled<Index>({5}, [&](std::int64_t i) { return i == 3 ? bad : i; });
        const argument rows = uneven<float>({5, 2});
        CHECK(run_on_cpu<assign_rows_op, float>({}, {uneven<float>({23, 2}), index, rows}, {shaped<float>({23, 2})})
                  .error != "");
        check_same<assign_rows_op, float>({}, {uneven<float>({23, 2}), index, rows}, {shaped<float>({23, 2})});
    }
}

} // namespace rows_test
