#include <cuda/device_array.hpp>

#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/movement/fill.cuh>
#include <tapegraph/cuda/ops/movement/movement.cuh>
#include <tapegraph/cuda/row_copies.cuh>
#include <tapegraph/ops/movement/index_map.hpp>

namespace movement_test {

/// Kernels that move elements on a device, against the CPU's: equal bits.

using namespace tapegraph;
using namespace tapegraph::testing;

namespace {

transpose_op::attributes order_of(const std::vector<int>& permutation) {
    transpose_op::attributes a;
    for (int axis : permutation) a.permutation[a.rank++] = axis;
    return a;
}
template <class T>
void check_transpose(const extents& e, const std::vector<int>& permutation) {
    extents moved;
    for (int axis : permutation) moved.push_back(e[static_cast<std::size_t>(axis)]);
    CAPTURE(e);
    check_same<transpose_op, T>(order_of(permutation), {distinct<T>(e)}, {shaped<T>(moved)});
}

slice_op::attributes box_of(const extents& begin, const extents& step, double fill = 0) {
    slice_op::attributes a = tapegraph::detail::whole_slice();
    for (std::size_t i = 0; i < begin.size(); ++i) a.begin[i] = begin[i], a.step[i] = step[i];
    a.fill = fill;
    return a;
}

struct mapped_axis {
    index_map map;
    std::int64_t amount, from, to; ///< extents of the operand and the result
};
template <class T>
void check_maps(const std::vector<mapped_axis>& axes) {
    index_map_op::attributes a;
    extents from, to;
    for (const mapped_axis& axis : axes) {
        a.map[from.size()] = static_cast<std::int64_t>(axis.map), a.amount[from.size()] = axis.amount;
        from.push_back(axis.from), to.push_back(axis.to);
    }
    CAPTURE(from);
    CAPTURE(to);
    check_same<index_map_op, T>(a, {distinct<T>(from)}, {shaped<T>(to)});
    check_same<index_map_adjoint_op, T>(a, {uneven<T>(to)}, {shaped<T>(from)});
}

} // namespace

TEST_CASE_TEMPLATE("transpose on a device: sizes, ranks and tiles", T, std::uint8_t, bfloat16, float, double) {
    check_transpose<T>({}, {});
    check_transpose<T>({0, 3}, {1, 0});
    check_transpose<T>({1, 1}, {1, 0});
    check_transpose<T>({3, 5}, {1, 0});
    check_transpose<T>({8, 8}, {1, 0});
    check_transpose<T>({67, 35}, {1, 0});
    check_transpose<T>({33, 7}, {1, 0});
    check_transpose<T>({2, 37, 41}, {0, 2, 1});
    check_transpose<T>({9, 3, 10, 2}, {2, 1, 0, 3}); // runs of two, then of four, stay together
    check_transpose<T>({9, 3, 10, 4}, {2, 1, 0, 3});
    check_transpose<T>({3, 11, 2, 13}, {3, 0, 2, 1});
    check_transpose<T>({2, 3, 4, 5, 2, 2, 3, 2}, {7, 2, 5, 0, 1, 6, 3, 4});
}

#if defined(TG_SIMT) && !defined(SIMT_TSAN)
TEST_CASE("transpose on a device: no barrier is there for nothing") {
    const auto x = distinct<std::uint16_t>({65, 40});
    const auto want = run_on_cpu<transpose_op, std::uint16_t>(order_of({1, 0}), {x}, {shaped<std::uint16_t>({40, 65})});
    std::size_t found = 0;
    const auto unnoticed = simt::unnoticed_barriers(
        [&] {
            return run_on_device<transpose_op, std::uint16_t>(order_of({1, 0}), {x}, {shaped<std::uint16_t>({40, 65})})
                       .out == want.out;
        },
        found);
    CHECK(unnoticed == std::vector<std::string>{});
    CHECK(found == 1);
}
#endif

TEST_CASE_TEMPLATE("slice and embed on a device", T, bool, half, float, std::int64_t) {
    const auto check = [](const extents& large, const extents& begin, const extents& step, const extents& small) {
        CAPTURE(large);
        CAPTURE(begin);
        check_same<slice_op, T>(box_of(begin, step), {distinct<T>(large)}, {shaped<T>(small)});
        check_same<pad_op, T>(box_of(begin, step, 1), {distinct<T>(small)}, {shaped<T>(large)});
    };
    check({}, {}, {}, {});
    check({7}, {2}, {1}, {3});
    check({7}, {6}, {-2}, {4});
    check({7}, {0}, {1}, {0});
    check({4, 16}, {1, 0}, {1, 1}, {2, 16}); // wide words
    check({5, 6, 7}, {4, 1, 0}, {-2, 2, 3}, {3, 2, 3});
    check({3, 300, 4}, {0, 11, 0}, {1, 1, 1}, {3, 271, 4});
    check({6, 5}, {at_the_end + 1, 0}, {1, 1}, {2, 5});
    check({1, 2, 1, 3, 2, 1, 2, 5}, {0, 1, 0, 2, 0, 0, 1, 4}, {1, 1, 1, -1, 1, 1, -1, -2}, {1, 1, 1, 2, 2, 1, 2, 2});
    // Positions outside are refused on the host.
    check_same<slice_op, T>(box_of({5}, {1}), {distinct<T>({7})}, {shaped<T>({3})});
}

TEST_CASE("embed on a device: the number is of the element's type") {
    check_same<pad_op, float>(box_of({1}, {1}, -0.1), {distinct<float>({3})}, {shaped<float>({5})});
    check_same<pad_op, bfloat16>(box_of({1}, {1}, 0.3), {distinct<bfloat16>({3})}, {shaped<bfloat16>({5})});
}

TEST_CASE_TEMPLATE("remap and fold on a device: every rule", T, float, double, std::int32_t) {
    using enum index_map;
    for (const index_map map : {reflect, symmetric, edge, wrap})
        for (const std::int64_t n : {1, 2, 5, 13})
            for (const std::int64_t before : {0, 1, 3, 17})
                check_maps<T>({{map, before, n, n + before + 4}, {keep, 0, 3, 3}});
    for (const std::int64_t shift : {-100, -1, 0, 3, 1000003}) check_maps<T>({{wrap, shift, 7, 7}, {keep, 0, 5, 5}});
    check_maps<T>({{repeat, 3, 5, 15}, {keep, 0, 2, 2}, {repeat, 2, 4, 8}});
    check_maps<T>({{repeat, 0, 5, 0}});
    check_maps<T>({{wrap, 0, 3, 0}, {keep, 0, 2, 2}});
    check_maps<T>({{reflect, 2, 4, 9}, {symmetric, 5, 3, 11}, {edge, 1, 2, 4}, {wrap, 4, 5, 12}});
    check_maps<T>({{keep, 0, 2, 2}, {reflect, 2, 4, 8}, {keep, 0, 3, 3}, {keep, 0, 16, 16}});
    check_maps<T>({{keep, 0, 0, 0}, {edge, 2, 3, 7}});
    check_maps<T>({});
}

TEST_CASE("remap on a device: nothing to repeat is refused as on the CPU") {
    index_map_op::attributes a;
    a.map[0] = static_cast<std::int64_t>(index_map::edge), a.amount[0] = 1;
    check_same<index_map_op, float>(a, {distinct<float>({0})}, {shaped<float>({2})});
}

TEST_CASE_TEMPLATE("concat on a device", T, bool, bfloat16, float, double) {
    const auto check = [](const std::vector<extents>& parts, std::int64_t axis) {
        std::vector<argument> in;
        extents whole = parts[0];
        whole[static_cast<std::size_t>(axis)] = 0;
        for (const extents& e : parts) {
            in.push_back(distinct<T>(e));
            whole[static_cast<std::size_t>(axis)] += e[static_cast<std::size_t>(axis)];
        }
        check_same<concat_op, T>({axis}, in, {shaped<T>(whole)});
    };
    check({{3}}, 0);
    check({{3}, {0}, {5}}, 0);
    check({{2, 3, 4}, {2, 5, 4}, {2, 1, 4}}, 1);
    check({{2, 3, 4}, {2, 3, 3}}, 2);
    check({{2, 3, 16}, {2, 3, 32}}, 2);
    check({{4, 0}, {4, 0}}, 0);
}

TEST_CASE("movement on a device: addresses that are not aligned, and large results in several launches") {
    for (const std::int64_t most : {1, 7, 64}) {
        const with_value set(cuda::detail::most_elements, most);
        check_maps<float>(
            {{index_map::reflect, 2, 4, 9}, {index_map::symmetric, 5, 3, 11}, {index_map::keep, 0, 4, 4}});
        check_transpose<float>({19, 11}, {1, 0});
        check_same<pad_op, float>(box_of({1, 2}, {2, 1}, 7), {distinct<float>({3, 4})}, {shaped<float>({7, 8})});
        check_same<arange_op<float>, float>({0.1, 0.3, 9, 1}, {distinct<float>({})}, {shaped<float>({23})});
    }
    argument in = distinct<std::uint8_t>({6, 64}), out = shaped<std::uint8_t>({3, 64});
    for (const std::size_t shift : {0, 1, 2, 4, 8}) {
        in.shift = shift;
        check_same<slice_op, std::uint8_t>(box_of({1, 0}, {2, 1}), {in}, {out});
    }
}

TEST_CASE_TEMPLATE("arange, linspace and fill on a device", T, float, double, std::int32_t, std::int64_t, std::uint8_t,
                   bool, bfloat16, half) {
    for (const extents& e : {extents{}, extents{0}, extents{1}, extents{7, 43}}) {
        check_same<arange_op<T>, float>({2.5, 0, 0, 0}, {distinct<float>({})}, {shaped<T>(e)});
        check_same<arange_op<T>, float>({-3.25, 1.1, 0, 0}, {distinct<float>({})}, {shaped<T>(e)});
    }
    check_same<arange_op<T>, float>({0.1, 0.7, 100, 1}, {distinct<float>({})}, {shaped<T>({101})});
}

TEST_CASE("rows of bytes on a device: many copies in a launch, in words as wide as they lie, and zeros") {
    const auto from = on_device::whole_numbers<std::uint8_t>(40000, 1, 100);
    std::vector<std::uint8_t> want(400000, 0xFF);
    const on_device::device_array<std::uint8_t> source(from);
    on_device::device_array<std::uint8_t> result(400000);
    std::vector<runtime::row_copy> copies;
    std::size_t end = 0, begin = 0;
    for (const std::int64_t rows : {0, 1, 2, 37})
        for (const std::size_t bytes : {0, 1, 6, 8, 48, 304})
            for (const std::size_t gap : {0, 2, 16})
                for (const bool zeros : {false, true}) {
                    const std::size_t to_pitch = bytes + gap, from_pitch = bytes + 2 * gap,
                                      count = static_cast<std::size_t>(rows);
                    begin = (begin + 16) % 304;
                    const std::size_t odd = copies.size() % 14 >= 7 ? 1 : 0; // these are not aligned
                    copies.push_back({result.data() + end + odd, zeros ? nullptr : source.data() + begin + odd, rows,
                                      bytes, to_pitch, from_pitch});
                    for (std::size_t i = 0; i < count * bytes; ++i) {
                        const std::size_t row = i / bytes, column = odd + i % bytes;
                        want[end + row * to_pitch + column] = zeros ? 0 : from[begin + row * from_pitch + column];
                    }
                    end = (end + count * to_pitch + 17) / 16 * 16;
                }
    REQUIRE(end <= want.size());
    for (const std::int64_t most : {1, 2048}) {
        const with_value set(cuda::detail::most_copying_blocks, most);
        on_device::in_orders([&] {
            result.assign(std::vector<std::uint8_t>(want.size(), 0xFF).data());
            cuda::copy_rows(kernel_call{}, copies.data(), copies.size());
            CHECK(result.host() == want);
        });
    }
    const auto numbers = on_device::whole_numbers<std::uint64_t>(71, 2);
    for (const std::size_t count : {1, 32, 33, 70}) {
        const on_device::device_array<std::uint64_t> to(71);
        cuda::store_words(kernel_call{}, to.data(), numbers.data(), count);
        std::vector<std::uint64_t> expected(71, ~std::uint64_t{0});
        std::copy_n(numbers.begin(), count, expected.begin());
        CHECK(to.host() == expected);
    }
}

} // namespace movement_test
