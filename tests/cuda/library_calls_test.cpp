#include <cuda/device_array.hpp>

#include <cuda/disorder.hpp>
#include <cuda/noted_library.hpp>

#include <tapegraph/cuda/ops/cumulative/cumulative.cuh>
#include <tapegraph/cuda/ops/ordering/sort.cuh>

#include <utility>

namespace library_calls_test {

/// Tests which sorts and scans go to a linked library, and with which arguments, and that results
/// equal those of our kernels. On a GPU the library is CUB.

using namespace tapegraph;
using namespace tapegraph::testing;

// Lines in chunks: a library reads them one pass less, but takes two launches per line instead of
// three in all.
TEST_CASE_TEMPLATE("scans on a device: long lines of integers go to a library that is linked", T, std::int32_t,
                   std::int64_t) {
    using word = std::make_unsigned_t<T>;
    using noted = noted_scan<word>;
    using calls = std::vector<scan_call>;
    REQUIRE(noted::linked());
    const with_value set(cuda::detail::limits_of_lines, small_limits);
    // Sums and products that wrap around.
    const auto large = [](const extents& e) {
        return filled<T>(e, [](std::int64_t i) {
            return static_cast<T>((scattered(i, 1u << 30) | 1) * static_cast<word>(0x9E3779B97F4A7C15ull));
        });
    };
    for (const extents& e : {extents{1201}, extents{5003}, extents{2, 1201}, extents{1, 2, 2500, 1}}) {
        CAPTURE(e);
        const std::int64_t axis = e.size() == 4 ? 2 : static_cast<std::int64_t>(e.size()) - 1;
        const std::int64_t length = e[static_cast<std::size_t>(axis)], lines = e.size() == 1 ? 1 : 2;
        for (const bool exclusive : {false, true}) {
            const noted library;
            const auto goes = [&]<class Op>(Op, const std::string& name) {
                noted::calls.clear();
                check_same<Op, T>({axis, 0, exclusive}, {large(e)}, {shaped<T>(e)});
                CHECK(noted::calls.size() >= static_cast<std::size_t>(lines));
                for (const scan_call& c : noted::calls)
                    CHECK(c == scan_call{name, name == "cumulative_product", exclusive, length});
            };
            goes(cumulative_sum_op{}, "cumulative_sum");
            goes(cumulative_product_op{}, "cumulative_product");
        }
    }
    const auto stays = [&](const extents& e, std::int64_t axis, std::int64_t reverse) {
        noted::calls.clear();
        check_same<cumulative_sum_op, T>({axis, reverse, 0}, {large(e)}, {shaped<T>(e)});
        CHECK(noted::calls == calls{});
    };
    const noted library;
    stays({1201}, 0, 1);       // from the end
    stays({1200}, 0, 0);       // one chunk
    stays({1, 2500, 2}, 1, 0); // elements that are not contiguous
    stays({4, 1201}, 1, 0);    // enough lines to fill our blocks
    stays({0, 1201}, 1, 0);
    // Equally many bytes, then one element more.
    const std::int64_t size = sizeof(T);
    const noted costly(1201 * 2 * size); // per launch; two lines take four launches instead of three
    stays({2, 1201}, 1, 0);
    noted::calls.clear();
    check_same<cumulative_sum_op, T>({1, 0, 0}, {large({2, 1202})}, {shaped<T>({2, 1202})});
    CHECK(noted::calls.size() >= 2);
}

namespace {

using calls = std::vector<library_call>;

/// The first `wanted` positions of both rows of x.
outcome first_of(const argument& x, std::int64_t wanted) {
    return run_on_device<argsort_op, std::uint8_t>({0, wanted}, {x}, {shaped<std::int32_t>({2, wanted})});
}

} // namespace

// Bytes take one radix pass, so rows of more than four tiles of 2048 move less: 1 + 2 * 3 times a
// pair against 4 + 2 * 1.
TEST_CASE("argsort on a device: long rows go to a library that is linked, and come to the same order") {
    using noted = noted_library<std::uint32_t>;
    REQUIRE(noted::linked());
    const auto x = disorder<std::uint8_t>({2, 9000});
    const auto sorted = shaped<std::int32_t>({2, 9000});
    const auto merged = [&](std::int64_t wanted) {
        const with_value none(cuda::sort_of_library<std::uint32_t>, {});
        return first_of(x, wanted).out;
    };
    const auto want = merged(9000), want_half = merged(4500);
    const noted library;
    for (const std::int64_t descending : {0, 1}) check_same<argsort_op, std::uint8_t>({descending, -1}, {x}, {sorted});
    CHECK(noted::calls.size() >= 4);
    for (const library_call& c : noted::calls) CHECK(c == library_call{"argsort", 9000, 8});
    noted::calls.clear();
    CHECK(first_of(x, 9000).out == want);
    CHECK(first_of(x, 4500).out == want_half); // the same passes, with fewer positions extracted
    CHECK(noted::calls == calls(4, {"argsort", 9000, 8}));
    noted::calls.clear();
    CHECK(first_of(x, 10).out == merged(10)); // merges drop what is not wanted
    check_same<argsort_op, std::uint8_t>({0, -1}, {disorder<std::uint8_t>({8192})}, {shaped<std::int32_t>({8192})});
    const argument floats = disorder<float>({17000}); // four merges, and four passes
    check_same<argsort_op, float>({0, -1}, {floats}, {shaped<std::int32_t>({17000})});
    CHECK(noted::calls == calls{});
    check_same<argsort_op, std::uint8_t>({0, -1}, {disorder<std::uint8_t>({8193})}, {shaped<std::int32_t>({8193})});
    CHECK(noted::calls.size() >= 1);
    noted::calls.clear();
    const with_value set(cuda::detail::most_elements, 20000); // three rows in two steps
    check_same<argsort_op, std::uint8_t>({1, -1}, {disorder<std::uint8_t>({3, 9000})},
                                         {shaped<std::int32_t>({3, 9000})});
    CHECK(noted::calls.size() >= 3);
}

TEST_CASE("rows on a device: how long they are when a library that is linked sorts them") {
    const std::int64_t launch = cuda::detail::bytes_per_launch;
    const noted_library<std::uint32_t> library;
    const with_value set(cuda::detail::bytes_per_launch, launch);
    buffer_view out;
    kernel_call call;
    call.out = &out, call.outputs = 1;
    const auto goes = [&](std::int64_t rows, std::int64_t length, int bits, bool keep) {
        const cuda::detail::row_sort<std::uint32_t> sort(call, rows, length, length, bits, keep);
        return sort.workspace() > static_cast<std::size_t>(2 * rows * length) * 8;
    };
    CHECK(!goes(1, 524288, 32, false)); // floats
    CHECK(goes(1, 524289, 32, false));
    CHECK(!goes(8, 262144, 32, false));
    CHECK(goes(8, 262145, 32, false));
    CHECK(!goes(1, 131072, 15, true)); // indices into up to 32,767 places
    CHECK(goes(1, 131073, 15, true));
    CHECK(!goes(8, 109226, 15, true));
    CHECK(goes(8, 109227, 15, true));
    CHECK(!goes(1, 2048, 0, true));
    CHECK(!goes(8, 2048, 0, true));
}

// Two launches and more per row against one more pass.
TEST_CASE("argsort on a device: several long rows go to a library as one, and come to the same order") {
    using noted = noted_library<std::uint32_t>;
    const auto sorted_as = [](const argument& x, std::int64_t wanted, std::int64_t descending,
                              const library_call& want) {
        const std::int64_t rows = x.view.extents[0];
        noted::calls.clear();
        check_same<argsort_op, std::uint8_t>({descending, wanted}, {x}, {shaped<std::int32_t>({rows, wanted})});
        CHECK(noted::calls.size() >= 1);
        for (const library_call& c : noted::calls) CHECK(c == want);
    };
    const noted library(100000);
    const auto x = disorder<std::uint8_t>({5, 20011}); // three bits, and no rows 5 to 7
    for (const std::int64_t descending : {0, 1}) sorted_as(x, 20011, descending, {"argsort", 100055, 11});
    sorted_as(x, 15000, 0, {"argsort", 100055, 11});
    sorted_as(disorder<std::uint8_t>({2, 40000}), 40000, 0, {"argsort", 40000, 8}); // fewer launches are saved
    const with_value set(cuda::detail::most_elements, 90000);                       // nine rows, four at a time
    noted::calls.clear();
    check_same<argsort_op, std::uint8_t>({0, -1}, {disorder<std::uint8_t>({9, 20011})},
                                         {shaped<std::int32_t>({9, 20011})});
    REQUIRE(noted::calls.size() >= 3);
    noted::calls.resize(3);
    CHECK(noted::calls == calls{{"argsort", 80044, 10}, {"argsort", 80044, 10}, {"argsort", 20011, 10}});
}

// Keys that have no bit to spare, so that row numbers are in the positions. Seven merges against
// five passes.
TEST_CASE("argsort on a device: several long rows of floats go to a library as one") {
    using noted = noted_library<std::uint32_t>;
    const auto x = disorder<float>({4, 131101});
    const auto result = shaped<std::int32_t>({4, 131101});
    const noted library(400000);
    CHECK(run_on_device<argsort_op, float>({1, -1}, {x}, {result}).out ==
          run_on_cpu<argsort_op, float>({1, -1}, {x}, {result}).out);
    CHECK(noted::calls == calls{{"argsort", 4 * 131101, 34}});
}

// Bytes take two digits of 6 bits: 1 + 3 * 2 times a pair, and twice what is wanted, against 1 + 2 * 4 of merges.
TEST_CASE("argsort on a device: rows enough go to a library side by side, and come to the same order") {
    using noted = noted_rows<std::uint32_t>;
    REQUIRE(noted::linked());
    const auto x = disorder<std::uint8_t>({9, 16411});
    for (const auto& [descending, wanted] : {std::pair<std::int64_t, std::int64_t>{0, 16411}, {1, 16411}, {0, 16000}}) {
        const noted library(9);
        check_same<argsort_op, std::uint8_t>({descending, wanted}, {x}, {shaped<std::int32_t>({9, wanted})});
        REQUIRE(noted::calls.size() >= 1);
        CHECK(noted::calls[0] == rows_call{"argsort", 9, 16411, 8});
    }
    {
        const noted library(10); // too few rows
        check_same<argsort_op, std::uint8_t>({0, -1}, {x}, {shaped<std::int32_t>({9, 16411})});
        CHECK(noted::calls.empty());
    }
    const noted library(3);
    const argument floats = disorder<float>({3, 16411}); // six digits
    check_same<argsort_op, float>({0, -1}, {floats}, {shaped<std::int32_t>({3, 16411})});
    check_same<argsort_op, std::uint8_t>({0, 10}, {x},
                                         {shaped<std::int32_t>({9, 10})}); // merges drop what is not wanted
    CHECK(noted::calls.empty());
    const with_value set(cuda::detail::most_elements, 70000); // four rows at a time, then one
    check_same<argsort_op, std::uint8_t>({0, -1}, {x}, {shaped<std::int32_t>({9, 16411})});
    REQUIRE(noted::calls.size() >= 3);
    noted::calls.resize(3);
    CHECK(noted::calls ==
          std::vector<rows_call>{{"argsort", 4, 16411, 8}, {"argsort", 4, 16411, 8}, {"argsort", 1, 16411, 8}});
}

#ifdef TG_SIMT
TEST_CASE_TEMPLATE("rows as one on a device: the order of words is that of rows, keys and positions", Key,
                   std::uint32_t, std::uint64_t) {
    using pair = cuda::kernels::sort_pair<Key>;
    constexpr int width = 8 * sizeof(Key);
    constexpr std::int64_t rows = 5, length = 700;
    for (const int bits : {0, 5, width - 3, width - 2, width}) { // three bits of row numbers
        CAPTURE(bits);
        const cuda::kernels::row_tag tag{3, bits + 3 <= width ? bits : -1};
        std::vector<pair> want, tagged;
        for (std::int64_t row = 0; row < rows; ++row)
            for (std::int64_t i = 0; i < length; ++i) {
                const Key least = scattered(row * length + i, 90);
                // An index outside has every bit set; a key of all bits has the highest ones, too.
                const Key key = least == 0 || bits == 0 ? static_cast<Key>(-1)
                                : bits == 5             ? static_cast<Key>(least % 31)
                                : least % 2 == 0        ? least
                                                        : static_cast<Key>(least << (bits - 7));
                want.push_back({key, static_cast<std::uint32_t>(i)});
                tagged.push_back(tag.put_on(want.back(), row));
            }
        std::vector<pair> other(tagged.size());
        std::vector<char> scratch(1000);
        const int sorted_bits = (tag.key_bits < 0 ? width : bits) + 3;
        const cuda::driver::stream stream = cuda::driver::make_stream();
        const pair* const sorted = imitated_library<Key>::sort(
            "test", stream, tagged.data(), other.data(), rows * length, sorted_bits, scratch.data(), scratch.size());
        cuda::driver::wait(stream);
        cuda::driver::destroy(stream);
        std::int64_t wrong = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
            const auto begin = want.begin() + row * length;
            std::stable_sort(begin, begin + length, [](const pair& a, const pair& b) { return a.key < b.key; });
            for (std::int64_t i = 0; i < length; ++i) {
                const pair got = tag.take_off(sorted[row * length + i]);
                const Key key = tag.key_bits < 0 ? begin[i].key : begin[i].key & ((Key{1} << bits) - 1);
                wrong += got.key != key || got.position != begin[i].position;
            }
        }
        CHECK(wrong == 0);
    }
}
#endif

TEST_CASE_TEMPLATE("rows on a device: sorted by a library in a graph", Key, std::uint32_t, std::uint64_t) {
    using noted = noted_library<Key>;
    using pair = cuda::kernels::sort_pair<Key>;
    REQUIRE(noted::linked());
    constexpr std::int64_t rows = 2, length = 20011; // 4 merges of 32 bits and 5 of 64 bits against 2 or 3 passes
    for (const int bits : {9, 16, 17}) {
        CAPTURE(bits);
        const auto numbers = [&](std::uint32_t seed) {
            std::vector<Key> x(rows * length);
            for (std::size_t i = 0; i < x.size(); ++i)
                x[i] = scattered(static_cast<std::int64_t>(i), (1u << bits) - 1, seed);
            return x;
        };
        on_device::device_array<Key> x(numbers(1));
        // Ascending by key, then by position, so that each position occurs once; and the key is the
        // original one.
        const auto right = [&](const std::vector<Key>& of, const pair* at,
                               const on_device::device_array<pair>& memory) {
            const std::vector<pair> all = memory.host();
            const pair* const got = all.data() + (at - memory.data());
            std::int64_t wrong = 0;
            for (std::int64_t i = 0; i < rows * length; ++i) {
                const pair& p = got[i];
                wrong +=
                    p.position >= length || of[static_cast<std::size_t>(i / length * length + p.position)] != p.key;
                if (i % length == 0) continue;
                const pair& last = got[i - 1];
                wrong += last.key > p.key || (last.key == p.key && last.position >= p.position);
            }
            return wrong == 0;
        };
        buffer_view out;
        kernel_call call;
        call.out = &out, call.outputs = 1;
        const cuda::driver::stream stream = cuda::driver::make_stream();
        call.stream = stream;
        {
            const noted library;
            const cuda::detail::row_sort<Key> sort(call, rows, length, length, bits, true);
            const cuda::kernels::number_source<Key> source{x.data(), length, false};
            const on_device::device_array<pair> memory(static_cast<std::int64_t>(sort.workspace() / sizeof(pair)) + 1);
            CHECK(right(numbers(1), sort.run(call, "test", source, rows, nullptr, memory.data()), memory));
            CHECK(noted::calls == calls(rows, {"test", length, bits}));
            cuda::driver::begin_capture(stream);
            const pair* const at = sort.run(call, "test", source, rows, nullptr, memory.data());
            const cuda::driver::graph graph = cuda::driver::end_capture(stream);
            REQUIRE(graph != nullptr);
            for (const std::uint32_t seed : {2, 3}) {
                x.assign(numbers(seed).data());
                cuda::driver::wait(nullptr);
                cuda::driver::launch_graph(graph, stream);
                CHECK(right(numbers(seed), at, memory));
            }
            cuda::driver::destroy_graph(graph);
        }
        cuda::driver::destroy(stream);
    }
}

#ifndef TG_SIMT
// Long enough for the library by what launches cost; too long for the executor.
TEST_CASE_TEMPLATE("argsort on a GPU: CUB and the merges come to the same order", T, float, double) {
    using key = tapegraph::detail::sort_key<T>;
    using noted = noted_library<key>;
    const std::int64_t length = 3000017;
    const auto x = disorder<T>({length});
    const auto result = shaped<std::int32_t>({length});
    const auto want = run_on_cpu<argsort_op, T>({1, -1}, {x}, {result});
    {
        const noted library;
        const with_value set(cuda::detail::bytes_per_launch, std::int64_t{4} << 20);
        CHECK(run_on_device<argsort_op, T>({1, -1}, {x}, {result}).out == want.out);
        CHECK(noted::calls == calls{{"argsort", length, 8 * static_cast<int>(sizeof(T))}});
    }
    const with_value none(cuda::sort_of_library<key>, {});
    CHECK(run_on_device<argsort_op, T>({1, -1}, {x}, {result}).out == want.out);
}

TEST_CASE("argsort on a GPU: CUB sorts 264 rows of bytes side by side, by what is predicted") {
    const auto x = disorder<std::uint8_t>({264, 16385});
    const auto result = shaped<std::int32_t>({264, 16385});
    const noted_rows<std::uint32_t> library(cuda::detail::rows_of_blocks);
    CHECK(run_on_device<argsort_op, std::uint8_t>({0, -1}, {x}, {result}).out ==
          run_on_cpu<argsort_op, std::uint8_t>({0, -1}, {x}, {result}).out);
    CHECK(noted_rows<std::uint32_t>::calls == std::vector<rows_call>{{"argsort", 264, 16385, 8}});
}
#endif

} // namespace library_calls_test
