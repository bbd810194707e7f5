#include <cuda/device_array.hpp>

#include <cuda/gathered.hpp>

#include <tapegraph/cuda/ops/gather/scatter.cuh>

namespace messages_on_device_test {

/// Sums of messages along edges on a device against the CPU's kernel: equal bits, the same errors.

using namespace tapegraph;
using namespace tapegraph::testing;

namespace {

template <bool Weighted>
using op = gather_scatter_add_op<Weighted>;

const gathered shapes[]{
    {{}, {}, 1, {}, {}},       {{}, {}, 5, {}, {13}},
    {{}, {}, 7, {3}, {2, 4}},  {{}, {}, 7, {4}, {0}},
    {{}, {}, 3, {0}, {5}},     {{}, {}, 11, {8}, {301}},
    {{}, {}, 1000, {5}, {17}}, {{}, {2, 3}, 6, {2}, {9}},
    {{3}, {}, 4, {16}, {7}},   {{2, 2}, {3}, 5, {3, 2}, {2, 3}},
    {{0}, {}, 4, {3}, {2}},    {{}, {2}, 4, {40}, {700}},
};

// The rows that sums go to: other ones than the table's.
extents sums(const gathered& s, std::int64_t rows) { return joined(joined(s.batch, s.before, {rows}), {}, s.after); }

// Most edges end in one row, so that its sum is that of a long run.
template <class Index>
argument ends(const gathered& s, std::int64_t rows) {
    return filled<Index>(s.index(), [&](std::int64_t i) {
        return i % 3 == 0 ? static_cast<std::int64_t>(scattered(i + 5, static_cast<std::uint32_t>(rows))) : rows - 1;
    });
}

} // namespace

TEST_CASE_TEMPLATE("gather_scatter_add on a device adds in the order of the edges", T, float, double, std::int32_t,
                   std::int64_t) {
    for (const gathered& s : shapes)
        for (const std::int64_t rows : {std::int64_t{1}, s.rows + 2}) {
            CAPTURE(s.table());
            CAPTURE(rows);
            const auto table = uneven<T>(s.table());
            const auto from = indices<std::int32_t>(s.index(), s.rows);
            const auto wide_from = indices<std::int64_t>(s.index(), s.rows);
            check_same<op<false>, T>(s.attributes(), {table, from, ends<std::int64_t>(s, rows)},
                                     {shaped<T>(sums(s, rows))});
            check_same<op<false>, T>(s.attributes(), {table, wide_from, ends<std::int32_t>(s, rows)},
                                     {shaped<T>(sums(s, rows))});
            if constexpr (std::is_floating_point_v<T>)
                check_same<op<true>, T>(s.attributes(),
                                        {table, from, ends<std::int32_t>(s, rows), uneven<T>(s.index())},
                                        {shaped<T>(sums(s, rows))});
        }
}

TEST_CASE("gather_scatter_add on a device: an index outside is the CPU's error") {
    const extents edges{40};
    for (const std::int64_t bad : {-1, 6, 1 << 30, -(1 << 30)})
        for (const std::int64_t at : {0, 17, 39}) {
            const auto wrong = indices<std::int32_t>(edges, 6, at, bad), right = indices<std::int32_t>(edges, 6);
            for (const std::int64_t width : {3, 0}) {
                check_same<op<false>, float>({0, 0}, {uneven<float>({6, width}), wrong, right},
                                             {shaped<float>({6, width})});
                check_same<op<false>, float>({0, 0}, {uneven<float>({6, width}), right, wrong},
                                             {shaped<float>({6, width})});
                check_same<op<true>, float>({0, 0}, {uneven<float>({6, width}), wrong, wrong, uneven<float>(edges)},
                                            {shaped<float>({6, width})});
            }
        }
    // Other edges count all the same; a source outside is a row of zeros.
    const auto from = filled<std::int32_t>({3}, [](std::int64_t i) { return i == 1 ? 9 : 2; });
    const auto to = filled<std::int32_t>({3}, [](std::int64_t i) { return i == 2 ? 7 : 1; });
    const auto table = filled<float>({3}, [](std::int64_t i) { return i + 1; });
    const auto got = run_on_device<op<false>, float>({0, 0}, {table, from, to}, {shaped<float>({2})});
    CHECK(got.values<float>() == std::vector<float>{0, 3});
    CHECK(got.error == "gather: index 9 at position 1 is outside [0, 3)");
}

} // namespace messages_on_device_test
