#include <cuda/device_array.hpp>

#include <cuda/calls.hpp>
#include <cuda/noted_library.hpp>

#include <tapegraph/cuda/ops/cumulative/cumulative.cuh>
#include <tapegraph/cuda/ops/ordering/arg_reduce.cuh>
#include <tapegraph/cuda/ops/ordering/sort.cuh>

#include <cmath>
#include <limits>
#include <type_traits>

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
/// Numbers whose products are: powers of two that cancel, of either sign.
template <class E>
argument powers(const extents& e) {
    return filled<E>(e, [](std::int64_t i) {
        const double sign = std::is_signed_v<E> && scattered(i, 3) == 0 ? -1 : 1;
        return sign * (std::is_integral_v<E> ? scattered(i, 2) + 1.0 : i % 2 == 0 ? 2 : 0.5);
    });
}

// Lines that a thread takes, a warp, a block with one tile and with several, and lines in chunks; all ways along them. Three
// lines are enough blocks here, and 40 enough threads.
constexpr cuda::detail::line_limits small_limits{64, 40, 3, 1200};
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

// Lines in chunks, of which a library reads one pass less, for two launches a line instead of three in all.
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
    stays({1, 2500, 2}, 1, 0); // elements that are no neighbours
    stays({4, 1201}, 1, 0);    // enough lines for blocks of ours
    stays({0, 1201}, 1, 0);
    // As many bytes, then one element more.
    const std::int64_t size = sizeof(T);
    const noted costly(1201 * 2 * size); // per launch, of which two lines take four instead of three
    stays({2, 1201}, 1, 0);
    noted::calls.clear();
    check_same<cumulative_sum_op, T>({1, 0, 0}, {large({2, 1202})}, {shaped<T>({2, 1202})});
    CHECK(noted::calls.size() >= 2);
}

// Kept in double; a sum of n numbers in another order may differ by n units of the sum of magnitudes, and by the last
// rounding, which is the only one that is seen where the result is a float.
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

TEST_CASE("scans on a device: NaN and infinity spoil what is behind them only") {
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

namespace {

/// All that is awkward in an order: equal numbers, zeros of both signs, infinities, NaN of both signs.
template <class T>
argument disorder(const extents& e) {
    return filled<T>(e, [](std::int64_t i) -> T {
        if constexpr (std::is_floating_point_v<T>) {
            using limits = std::numeric_limits<T>;
            const T special[]{
                limits::quiet_NaN(),  -limits::quiet_NaN(), limits::infinity(), -limits::infinity(), T(0), -T(0),
                limits::denorm_min(), limits::lowest(),     limits::max()};
            if (scattered(i, 5, 3) == 0) return special[scattered(i, 9, 4)];
            return static_cast<T>(scattered(i, 50)) - T(24.5);
        } else {
            if (scattered(i, 9, 3) == 0)
                return i % 2 == 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
            return static_cast<T>(static_cast<std::int64_t>(scattered(i, 50)) - (std::is_signed_v<T> ? 25 : 0));
        }
    });
}

} // namespace

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

namespace {

using calls = std::vector<library_call>;

/// The first `wanted` positions of both rows of x.
outcome first_of(const argument& x, std::int64_t wanted) {
    return run_on_device<argsort_op, std::uint8_t>({0, wanted}, {x}, {shaped<std::int32_t>({2, wanted})});
}

} // namespace

// Bytes take one radix pass, so rows of more than four tiles of 2048 move less: 1 + 2 * 3 times a pair against 4 + 2 * 1.
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
    CHECK(first_of(x, 4500).out == want_half); // the same passes, of which fewer positions are taken
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

// Two launches and more a row against one more pass.
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

// Keys that have no bit to spare, so that numbers of rows are in the positions. Seven merges against five passes.
TEST_CASE("argsort on a device: several long rows of floats go to a library as one") {
    using noted = noted_library<std::uint32_t>;
    const auto x = disorder<float>({4, 131101});
    const auto result = shaped<std::int32_t>({4, 131101});
    const noted library(400000);
    CHECK(run_on_device<argsort_op, float>({1, -1}, {x}, {result}).out ==
          run_on_cpu<argsort_op, float>({1, -1}, {x}, {result}).out);
    CHECK(noted::calls == calls{{"argsort", 4 * 131101, 34}});
}

#ifdef TG_SIMT
TEST_CASE_TEMPLATE("rows as one on a device: the order of words is that of rows, keys and positions", Key,
                   std::uint32_t, std::uint64_t) {
    using pair = cuda::kernels::sort_pair<Key>;
    constexpr int width = 8 * sizeof(Key);
    constexpr std::int64_t rows = 5, length = 700;
    for (const int bits : {0, 5, width - 3, width - 2, width}) { // three bits of rows
        CAPTURE(bits);
        const cuda::kernels::row_tag tag{3, bits + 3 <= width ? bits : -1};
        std::vector<pair> want, tagged;
        for (std::int64_t row = 0; row < rows; ++row)
            for (std::int64_t i = 0; i < length; ++i) {
                const Key least = scattered(row * length + i, 90);
                // Outside of what is indexed is every bit; a key of all bits has its highest ones, too.
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
        // Ascending by key, then by position, so that each position is there once; and the key is the one that stood there.
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
#endif

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
