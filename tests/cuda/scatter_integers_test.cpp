#include <cuda/device_array.hpp>

#include <cuda/gathered.hpp>

#include <tapegraph/cuda/ops/gather/scatter.cuh>

namespace scatter_integers_test {

/// Integers added at indexed positions, on a device against the CPU's kernels: equal bits, the same
/// errors.

using namespace tapegraph;
using namespace tapegraph::testing;
namespace kernels = tapegraph::cuda::kernels;

// Tables that fit into a block and larger ones, fewer and more updates than a block takes,
// positions that most updates go to.
TEST_CASE_TEMPLATE("scatters of integers on a device: added as they come, without scratch memory", T, std::int32_t,
                   std::int64_t) {
    constexpr int cells = kernels::integer_cells<std::make_unsigned_t<T>>;
    const auto large = [](const extents& e) {
        return filled<T>(e, [](std::int64_t i) {
            return static_cast<T>(static_cast<std::uint64_t>(i + 1) * 0x9E3779B97F4A7C15ull); // sums wrap around
        });
    };
    const gathered shapes[]{
        {{}, {}, 1, {}, {70}},           {{}, {}, 10, {}, {5003}},  {{}, {}, cells, {}, {17011}},
        {{}, {}, cells + 1, {}, {3001}}, {{}, {2}, 7, {3}, {1025}}, {{3}, {2}, cells / 4, {5}, {211}},
        {{}, {}, 6, {0}, {40}},          {{}, {0}, 6, {2}, {40}},   {{}, {}, 0, {2}, {0}}};
    for (const gathered& s : shapes) {
        CAPTURE(s.table());
        for (const std::uint32_t most : {1u, 2u, 8u}) { // one in this many goes elsewhere than to the last row
            const auto index = filled<std::int32_t>(s.index(), [&](std::int64_t i) {
                return scattered(i, most, 5) != 0
                           ? s.rows - 1
                           : static_cast<std::int64_t>(scattered(i, static_cast<std::uint32_t>(s.rows)));
            });
            check_same<scatter_add_op, T>(s.attributes(), {large(s.result()), index}, {shaped<T>(s.table())});
        }
        if (s.index() == extents{0}) continue;
        for (const std::int64_t bad : {std::int64_t{-1}, s.rows})
            check_same<scatter_add_op, T>(s.attributes(),
                                          {large(s.result()), indices<std::int64_t>(s.index(), s.rows, 39, bad)},
                                          {shaped<T>(s.table())});
    }
    for (const extents& columns : {extents{1500, 3}, extents{2, 700, 5}, extents{40, 0}}) {
        const auto axis = static_cast<std::int64_t>(columns.size()) - 2;
        extents table = columns;
        table[static_cast<std::size_t>(axis)] = 30;
        check_same<put_along_op, T>({axis}, {large(columns), indices<std::int32_t>(columns, 30)}, {shaped<T>(table)});
        if (columns.back() != 0)
            check_same<put_along_op, T>({axis}, {large(columns), indices<std::int64_t>(columns, 30, 20, 30)},
                                        {shaped<T>(table)});
    }
    const auto tuples = indices<std::int32_t>({900, 2}, 6);
    check_same<scatter_nd_op, T>({}, {large({900, 2}), tuples}, {shaped<T>({6, 6, 2})});
    check_same<scatter_nd_op, T>({}, {large({900, 2}), indices<std::int32_t>({900, 2}, 6, 301, 6)},
                                 {shaped<T>({6, 6, 2})});
}

#if defined(TG_SIMT) && !defined(SIMT_TSAN)
TEST_CASE("scatters of integers on a device: no barrier is there for nothing") {
    constexpr int count = 900;
    std::vector<std::int32_t> index(count);
    std::vector<unsigned> updates(count), want(5);
    for (std::uint32_t i = 0; i < count; ++i)
        index[i] = static_cast<int>(scattered(i, 5)), updates[i] = i, want[static_cast<std::size_t>(index[i])] += i;
    std::size_t found = 0;
    const auto unnoticed = simt::unnoticed_barriers(
        [&] {
            std::vector<unsigned> got(want.size());
            on_device::launch({{1, 1}, kernels::integer_threads}, kernels::add_integers<unsigned>,
                              kernels::scattering{1, 5, count, 1, false}, 5, 1024, 0,
                              kernels::index_view{index.data(), false}, false, kernels::fault_report{}, updates.data(),
                              got.data());
            return got == want;
        },
        found);
    CHECK(unnoticed == std::vector<std::string>{});
    CHECK(found == 2);
}
#endif

} // namespace scatter_integers_test
