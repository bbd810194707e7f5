#include <cuda/device_array.hpp>

#include <cuda/gathered.hpp>
#include <cuda/noted_library.hpp>

#include <tapegraph/cuda/ops/gather/scatter.cuh>

namespace indexing_test {

/// Gathers by index, and their adjoints, on a device against the CPU's kernels: equal bits, the
/// same errors.

using namespace tapegraph;
using namespace tapegraph::testing;
namespace kernels = tapegraph::cuda::kernels;

namespace {

const gathered shapes[]{
    {{}, {}, 1, {}, {}},       {{}, {}, 5, {}, {13}},
    {{}, {}, 7, {3}, {2, 4}},  {{}, {}, 7, {4}, {0}},
    {{}, {}, 3, {0}, {5}},     {{}, {}, 11, {8}, {301}},
    {{}, {}, 1000, {5}, {17}}, {{}, {2, 3}, 6, {2}, {9}},
    {{3}, {}, 4, {16}, {7}},   {{2, 2}, {3}, 5, {3, 2}, {2, 3}},
    {{0}, {}, 4, {3}, {2}},
};

} // namespace

TEST_CASE_TEMPLATE("gather on a device", T, bool, bfloat16, float, double) {
    for (const gathered& s : shapes) {
        CAPTURE(s.table());
        check_same<gather_op, T>(s.attributes(), {distinct<T>(s.table()), indices<std::int32_t>(s.index(), s.rows)},
                                 {shaped<T>(s.result())});
        check_same<gather_op, T>(s.attributes(), {distinct<T>(s.table()), indices<std::int64_t>(s.index(), s.rows)},
                                 {shaped<T>(s.result())});
    }
}

TEST_CASE_TEMPLATE("scatter_add on a device adds in the order of the indices", T, float, double, std::int32_t,
                   std::uint8_t) {
    for (const gathered& s : shapes) {
        CAPTURE(s.table());
        check_same<scatter_add_op, T>(s.attributes(), {uneven<T>(s.result()), indices<std::int32_t>(s.index(), s.rows)},
                                      {shaped<T>(s.table())});
        check_same<scatter_add_op, T>(s.attributes(), {uneven<T>(s.result()), indices<std::int64_t>(s.index(), s.rows)},
                                      {shaped<T>(s.table())});
    }
}

TEST_CASE("scatter_add on a device: more indices than a tile, and an order that matters") {
    const gathered s{{}, {}, 3, {2}, {5000}};
    const auto updates = uneven<float>(s.result());
    check_same<scatter_add_op, float>(s.attributes(), {updates, indices<std::int32_t>(s.index(), s.rows)},
                                      {shaped<float>(s.table())});
    // Runs that begin and end everywhere around the positions where blocks look for them; one index
    // is outside.
    for (const std::int64_t width : {1, 3, 40})
        for (const std::int64_t length : {63, 64, 65, 128, 200})
            for (const std::int64_t begin : {0, 1, 63, 64, 100}) {
                CAPTURE(length);
                CAPTURE(begin);
                const gathered runs{{}, {2}, 4, {width}, {begin + length + 30}};
                const auto index = filled<std::int32_t>(runs.index(), [&](std::int64_t i) {
                    return i < begin ? 0 : i < begin + length ? 2 : 3;
                });
                check_same<scatter_add_op, float>(runs.attributes(), {uneven<float>(runs.result()), index},
                                                  {shaped<float>(runs.table())});
            }
    const extents long_line{4500, 2};
    const auto pad = filled<std::int64_t>(long_line, [](std::int64_t i) { return i % 7 == 0 ? 1 : 0; });
    check_same<put_along_op, double>({0}, {uneven<double>(long_line), pad}, {shaped<double>({3, 2})});
    const extents many{70, 1100}; // columns that leave no work to extra blocks
    check_same<put_along_op, float>(
        {0}, {uneven<float>(many), filled<std::int32_t>(many, [](std::int64_t i) { return i % 5 == 0 ? 1 : 0; })},
        {shaped<float>({2, 1100})});
    // The same numbers in reverse order give other bits: the test above can fail.
    const auto one_row = filled<std::int32_t>({5000}, [](std::int64_t) { return 0; });
    auto turned = updates;
    for (std::size_t i = 0; i < 10000; ++i)
        std::memcpy(turned.values.data() + (9999 - i) * 4, updates.values.data() + i * 4, 4);
    const auto sum = [&](const argument& of) {
        const gathered one{{}, {}, 1, {2}, {5000}};
        return run_on_device<scatter_add_op, float>(one.attributes(), {of, one_row}, {shaped<float>({1, 2})})
            .values<float>();
    };
    CHECK(sum(updates)[0] != sum(turned)[1]);
}

TEST_CASE("scatter_add on a device: many indices go to a library that is linked, by the bits that their axis takes") {
    using noted = noted_library<std::uint32_t>;
    REQUIRE(noted::linked());
    using calls = std::vector<library_call>;
    // Two merges move pairs more often than one pass does, and three more often than two passes.
    for (const auto& [rows, count, bits] : {std::tuple{3, 5000, 2}, {255, 5000, 8}, {256, 9000, 9}}) {
        const auto shown_rows = rows;
        CAPTURE(shown_rows);
        const gathered s{{2}, {}, rows, {3}, {count}};
        const auto updates = uneven<float>(s.result());
        const auto table = shaped<float>(s.table());
        const noted library;
        check_same<scatter_add_op, float>(s.attributes(), {updates, indices<std::int32_t>(s.index(), rows)}, {table});
        CHECK(noted::calls.size() >= 2);
        for (const library_call& c : noted::calls) CHECK(c == library_call{"scatter_add", count, bits});
        // Indices outside come last and are dropped, as after merges.
        for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{rows}}) {
            const auto index = indices<std::int64_t>(s.index(), rows, 77, bad);
            const auto run = [&] {
                return run_on_device<scatter_add_op, float>(s.attributes(), {updates, index}, {table});
            };
            noted::calls.clear();
            const outcome got = run();
            CHECK(noted::calls == calls(2, {"scatter_add", count, bits}));
            const with_value none(cuda::sort_of_library<std::uint32_t>, {});
            const outcome want = run();
            CHECK(got.error == want.error);
            CHECK(got.error != "");
            CHECK(got.out == want.out);
        }
    }
    const noted library;
    const extents columns{5000, 2};
    check_same<put_along_op, double>({0}, {uneven<double>(columns), indices<std::int32_t>(columns, 30)},
                                     {shaped<double>({30, 2})});
    CHECK(noted::calls.size() >= 2);
}

// One pass for all rows and one that removes their numbers, against three merges; a pass for each
// row takes more launches.
TEST_CASE("put_along on a device: several long rows of indices go to a library as one") {
    using noted = noted_library<std::uint32_t>;
    using calls = std::vector<library_call>;
    const extents columns{9000, 4};
    const auto updates = uneven<float>(columns);
    const auto table = shaped<float>({30, 4});
    const noted library(50000);
    check_same<put_along_op, float>({0}, {updates, indices<std::int32_t>(columns, 30)}, {table});
    CHECK(noted::calls.size() >= 1);
    for (const library_call& c : noted::calls) CHECK(c == library_call{"put_along", 36000, 7});
    for (const std::int64_t bad : {-1, 30}) { // comes last in its row, too
        const auto index = indices<std::int64_t>(columns, 30, 20011, bad);
        const auto run = [&] { return run_on_device<put_along_op, float>({0}, {updates, index}, {table}); };
        noted::calls.clear();
        const outcome got = run();
        CHECK(noted::calls == calls{{"put_along", 36000, 7}});
        const with_value none(cuda::sort_of_library<std::uint32_t>, {});
        const outcome want = run();
        CHECK(got.error == want.error);
        CHECK(got.error != "");
        CHECK(got.out == want.out);
    }
}

#if defined(TG_SIMT) && !defined(SIMT_TSAN)
TEST_CASE("scatter_add on a device: no barrier is there for nothing") {
    constexpr int count = 9000, width = 3;
    std::vector<kernels::sort_pair<std::uint32_t>> sorted(count);
    std::vector<float> updates(count * width), want(3 * width);
    for (std::uint32_t i = 0; i < count; ++i) {
        sorted[i] = {i / 3000, i};
        for (std::uint32_t c = 0; c < width; ++c) {
            updates[i * width + c] = static_cast<float>(scattered(i * width + c, 1000)) / 7;
            want[i / 3000 * width + c] += updates[i * width + c];
        }
    }
    const kernels::scattering s{1, 3, count, width, false, true};
    std::size_t found = 0;
    const auto unnoticed = simt::unnoticed_barriers(
        [&] {
            std::vector<float> got(want.size());
            on_device::launch({{(count + 63) / 64}, kernels::run_threads}, kernels::scatter_runs<float, std::uint32_t>,
                              s, 4, 0, sorted.data(), updates.data(), got.data());
            return got == want;
        },
        found);
    CHECK(unnoticed == std::vector<std::string>{});
    CHECK(found == 2);
}
#endif

TEST_CASE_TEMPLATE("gather_nd and scatter_nd on a device", Index, std::int32_t, std::int64_t) {
    const auto check = [](const extents& table, const extents& picks, std::int64_t depth) {
        CAPTURE(table);
        const auto tuples = filled<Index>(joined(picks, {depth}, {}), [&](std::int64_t i) {
            return scattered(i, static_cast<std::uint32_t>(table[static_cast<std::size_t>(i % depth)]));
        });
        const extents result = joined(picks, extents(table.begin() + depth, table.end()), {});
        check_same<gather_nd_op, float>({}, {distinct<float>(table), tuples}, {shaped<float>(result)});
        check_same<gather_nd_op, double>({}, {distinct<double>(table), tuples}, {shaped<double>(result)});
        check_same<scatter_nd_op, float>({}, {uneven<float>(result), tuples}, {shaped<float>(table)});
        check_same<scatter_nd_op, double>({}, {uneven<double>(result), tuples}, {shaped<double>(table)});
    };
    check({5}, {7}, 1);
    check({3, 4}, {}, 2);
    check({3, 4, 5}, {2, 9}, 2);
    check({2, 3, 2, 2}, {41}, 3);
    check({2, 3}, {0}, 1);
}

TEST_CASE_TEMPLATE("take_along and put_along on a device", Index, std::int32_t, std::int64_t) {
    const auto check = [](const extents& x, std::int64_t axis, std::int64_t picks) {
        CAPTURE(x);
        extents result = x;
        result[static_cast<std::size_t>(axis)] = picks;
        const auto index = indices<Index>(result, x[static_cast<std::size_t>(axis)]);
        check_same<take_along_op, std::uint8_t>({axis}, {distinct<std::uint8_t>(x), index},
                                                {shaped<std::uint8_t>(result)});
        check_same<take_along_op, half>({axis}, {distinct<half>(x), index}, {shaped<half>(result)});
        check_same<take_along_op, float>({axis}, {distinct<float>(x), index}, {shaped<float>(result)});
        check_same<put_along_op, float>({axis}, {uneven<float>(result), index}, {shaped<float>(x)});
        check_same<put_along_op, double>({axis}, {uneven<double>(result), index}, {shaped<double>(x)});
    };
    check({5}, 0, 5);
    check({5}, 0, 0);
    check({1}, 0, 67);
    check({4, 7}, 1, 3);
    check({4, 7}, 0, 9);
    check({2, 5, 3, 2}, 1, 11);
    check({0, 3}, 1, 2);
    check({3, 2}, 0, 2500); // more than a tile, from columns
}

TEST_CASE_TEMPLATE("one_hot on a device", T, bool, std::int32_t, float, double) {
    for (const std::int64_t axis : {0, 1, 2})
        for (const std::int64_t depth : {1, 6}) {
            extents result{3, 5};
            result.insert(result.begin() + axis, depth);
            check_same<one_hot_op<T>, std::int32_t>({depth, axis, 2, 0}, {indices<std::int32_t>({3, 5}, depth)},
                                                    {shaped<T>(result)});
            check_same<one_hot_op<T>, std::int64_t>({depth, axis, 1, -1}, {indices<std::int64_t>({3, 5}, depth)},
                                                    {shaped<T>(result)});
        }
    check_same<one_hot_op<T>, std::int32_t>({4, 0, 1, 0}, {indices<std::int32_t>({}, 4)}, {shaped<T>({4})});
    check_same<one_hot_op<T>, std::int32_t>({4, 1, 1, 0}, {indices<std::int32_t>({0}, 4)}, {shaped<T>({0, 4})});
}

TEST_CASE("indices outside their axis on a device: the CPU's error, and nothing beyond the operands is touched") {
    const extents picks{40};
    for (const std::int64_t bad : {-1, 6, 1 << 30, -(1 << 30)})
        for (const std::int64_t at : {0, 17, 39}) {
            const auto index = indices<std::int32_t>(picks, 6, at, bad);
            check_same<gather_op, float>({0, 0}, {distinct<float>({6, 3}), index}, {shaped<float>({40, 3})});
            check_same<scatter_add_op, float>({0, 0}, {uneven<float>({40, 3}), index}, {shaped<float>({6, 3})});
            check_same<take_along_op, float>({0}, {distinct<float>({6}), index}, {shaped<float>({40})});
            check_same<put_along_op, float>({0}, {uneven<float>({40}), index}, {shaped<float>({6})});
            check_same<one_hot_op<float>, std::int32_t>({6, 1, 1, 0}, {index}, {shaped<float>({40, 6})});
            const auto tuples = indices<std::int64_t>({20, 2}, 6, at, bad);
            check_same<gather_nd_op, float>({}, {distinct<float>({6, 6, 2}), tuples}, {shaped<float>({20, 2})});
            check_same<scatter_nd_op, float>({}, {uneven<float>({20, 2}), tuples}, {shaped<float>({6, 6, 2})});
        }
    // Slices without elements, too.
    const auto outside = indices<std::int32_t>({5}, 6, 3, 6);
    check_same<gather_op, float>({0, 0}, {distinct<float>({6, 0}), outside}, {shaped<float>({5, 0})});
    check_same<gather_op, float>({1, 0}, {distinct<float>({0, 6}), outside}, {shaped<float>({0, 5})});
    check_same<scatter_add_op, float>({0, 0}, {uneven<float>({5, 0}), outside}, {shaped<float>({6, 0})});
    // The first of several is reported, in whatever order threads reach them.
    const auto all_bad = filled<std::int64_t>({300}, [](std::int64_t i) { return 100 + i; });
    check_same<gather_op, float>({0, 0}, {distinct<float>({6}), all_bad}, {shaped<float>({300})});
    check_same<scatter_add_op, float>({0, 0}, {uneven<float>({300}), all_bad}, {shaped<float>({6})});
#ifdef TG_SIMT
    {
        const simt::with_settings set(simt::order::reverse);
        CHECK(run_on_device<gather_op, float>({0, 0}, {distinct<float>({6}), all_bad}, {shaped<float>({300})}).error ==
              "gather: index 100 at position 0 is outside [0, 6)");
    }
#endif
    // Valid indices are processed all the same: a bad index is skipped.
    const auto two = filled<std::int32_t>({3}, [](std::int64_t i) { return i == 1 ? 9 : 2; });
    const auto ones = filled<float>({3}, [](std::int64_t) { return 1; });
    CHECK(run_on_device<scatter_add_op, float>({0, 0}, {ones, two}, {shaped<float>({4})}).values<float>() ==
          std::vector<float>{0, 0, 2, 0});
    CHECK(run_on_device<gather_op, float>({0, 0}, {filled<float>({3}, [](std::int64_t i) { return i + 1; }), two},
                                          {shaped<float>({3})})
              .values<float>() == std::vector<float>{3, 0, 3});
}

TEST_CASE("a fault stays the first call's until it has been looked at") {
    using on_device::device_array;
    device_array<cuda::device_fault> fault(std::vector<cuda::device_fault>(1));
    const device_array<float> x(std::vector<float>(4)), y(2), z(2);
    const device_array<std::int32_t> first(std::vector<std::int32_t>{1, 9}), second(std::vector<std::int32_t>{-5, 0});
    const auto call_with = [&](const device_array<std::int32_t>& index, const device_array<float>& out) {
        const buffer_view in[]{on_device::view(x.data(), {4}), on_device::view(index.data(), {2})};
        const buffer_view result = on_device::view(out.data(), {2});
        const auto words = attributes_to_words<gather_op>({0, 0});
        kernel_call c;
        c.in = in, c.inputs = 2, c.out = &result, c.outputs = 1, c.attributes = words.value, c.fault = fault.data();
        cuda::kernel<gather_op, float>::run(c);
        c.fault = nullptr; // no fault to report to
        cuda::kernel<gather_op, float>::run(c);
    };
    CHECK_NOTHROW(cuda::throw_fault(fault.host()[0]));
    call_with(first, y);
    call_with(second, z);
    CHECK_THROWS_WITH_AS(cuda::throw_fault(fault.host()[0]), "gather: index 9 at position 1 is outside [0, 4)",
                         range_error);
    const cuda::device_fault none{};
    fault.assign(&none);
    call_with(second, z);
    CHECK_THROWS_WITH_AS(cuda::throw_fault(fault.host()[0]), "gather: index -5 at position 0 is outside [0, 4)",
                         range_error);
}

TEST_CASE("indexing on a device: large results in several launches") {
    for (const std::int64_t most : {1, 10, 100}) {
        const with_value set(cuda::detail::most_elements, most);
        const gathered& s = shapes[9];
        check_same<gather_op, float>(s.attributes(),
                                     {distinct<float>(s.table()), indices<std::int32_t>(s.index(), s.rows)},
                                     {shaped<float>(s.result())});
        check_same<scatter_add_op, float>(s.attributes(),
                                          {uneven<float>(s.result()), indices<std::int32_t>(s.index(), s.rows)},
                                          {shaped<float>(s.table())});
        check_same<gather_nd_op, float>({}, {distinct<float>({3, 4, 5}), indices<std::int32_t>({9, 2}, 3)},
                                        {shaped<float>({9, 5})});
        check_same<one_hot_op<float>, std::int32_t>({6, 1, 1, 0}, {indices<std::int32_t>({3, 5}, 6)},
                                                    {shaped<float>({3, 6, 5})});
        check_same<take_along_op, float>({1}, {distinct<float>({4, 7, 2}), indices<std::int32_t>({4, 3, 2}, 7)},
                                         {shaped<float>({4, 3, 2})});
    }
}

} // namespace indexing_test
