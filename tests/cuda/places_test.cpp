#include <cuda/device_array.hpp>

#include <cuda/disorder.hpp>
#include <cuda/noted_places.hpp>

#include <tapegraph/cuda/ops/movement/fill.cuh>
#include <tapegraph/cuda/ops/ordering/places.cuh>
#include <tapegraph/ops/ordering/kernel.hpp>

#include <algorithm>
#include <numeric>

namespace places_test {

/// searchsorted, and the parts that nonzero, unique and bincount are made of: our kernels and the
/// libraries, against the CPU's kernels and plain loops. On a GPU the libraries are CUB and Thrust.

using namespace tapegraph;
using namespace tapegraph::testing;
using places = std::vector<std::int32_t>;
using names = std::vector<std::string>;

namespace {

const std::vector<std::int64_t> lengths{0,      1, 2, 31, 257, 5003, 20011,
#ifndef TG_SIMT
                                        3000017
#endif
};

template <class Op, class T>
places found(const typename Op::attributes& a, const std::vector<argument>& in, const extents& result) {
    return run_on_device<Op, T>(a, in, {shaped<std::int32_t>(result)}).template values<std::int32_t>();
}
/// The library's result equals that of our kernels and `want`, and the library is called if it is
/// present.
template <class Op, class T, class E>
void library_same(const typename Op::attributes& a, const std::vector<argument>& in, const extents& result,
                  const places& want, const names& calls) {
    {
        const own_places<E> ours;
        CHECK(found<Op, T>(a, in, result) == want);
    }
    const noted_places<E> library;
    CHECK(found<Op, T>(a, in, result) == want);
    CHECK(places_calls == calls);
    CHECK(run_on_cpu<Op, T>(a, in, {shaped<std::int32_t>(result)}).template values<std::int32_t>() == want);
}
std::string call(const char* algorithm, std::int64_t count) { return algorithm + (" of " + std::to_string(count)); }

template <class T>
std::vector<T> values_of(const argument& a) {
    std::vector<T> v(a.values.size() / sizeof(T));
    if (!v.empty()) std::memcpy(v.data(), a.values.data(), a.values.size());
    return v;
}
template <class T>
argument sorted_rows(const extents& e) {
    auto v = values_of<T>(disorder<T>(e));
    const std::int64_t n = e.back();
    for (std::size_t i = 0; n > 0 && i < v.size(); i += static_cast<std::size_t>(n))
        std::sort(v.begin() + static_cast<std::ptrdiff_t>(i), v.begin() + static_cast<std::ptrdiff_t>(i) + n,
                  [](T a, T b) { return a < b || (b != b && a == a); });
    return filled<T>(e, [&](std::int64_t i) { return v[static_cast<std::size_t>(i)]; });
}

} // namespace

TEST_CASE_TEMPLATE("searchsorted on a device: one row goes to a library that is linked", T, float, double, std::int32_t,
                   std::int64_t) {
    REQUIRE(noted_places<T>::linked());
    for (const std::int64_t n : lengths)
        for (const std::int64_t m : {std::int64_t{0}, std::int64_t{1}, std::int64_t{509}, n})
            for (const std::int64_t right : {0, 1}) {
                CAPTURE(n);
                CAPTURE(m);
                const argument sorted = sorted_rows<T>({n}), searched = disorder<T>({m});
                const auto line = values_of<T>(sorted), values = values_of<T>(searched);
                const auto before = [](T a, T b) { return a < b || (b != b && a == a); };
                places want;
                for (const T v : values)
                    want.push_back(
                        static_cast<std::int32_t>((right != 0 ? std::upper_bound(line.begin(), line.end(), v, before)
                                                              : std::lower_bound(line.begin(), line.end(), v, before)) -
                                                  line.begin()));
                const names calls(n > 0 && m > 0 ? 1 : 0, call(right != 0 ? "upper_bound" : "lower_bound", m));
                library_same<searchsorted_op, T, T>({right}, {sorted, searched}, {m}, want, calls);
            }
    // Only equal elements.
    for (const T value : {std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()}) {
        const auto all = filled<T>({1000}, [=](std::int64_t) { return value; });
        library_same<searchsorted_op, T, T>({0}, {all, all}, {1000}, places(1000, 0), {call("lower_bound", 1000)});
        library_same<searchsorted_op, T, T>({1}, {all, all}, {1000}, places(1000, 1000), {call("upper_bound", 1000)});
    }
    const noted_places<T> library; // our kernels handle several rows
    for (const std::int64_t right : {0, 1})
        check_same<searchsorted_op, T>({right}, {sorted_rows<T>({3, 401}), disorder<T>({3, 300})},
                                       {shaped<std::int32_t>({3, 300})});
    CHECK(places_calls == names{});
}

TEST_CASE("marked places on a device: one row goes to a library that is linked") {
    REQUIRE(noted_places<float>::linked());
    for (const std::int64_t n : lengths)
        for (const unsigned rare : {1u, 2u, 50u, 100000u}) // all, many, few, hardly any
            for (const std::int64_t size : {std::int64_t{0}, std::int64_t{1}, std::int64_t{700}, n, n + 5}) {
                CAPTURE(n);
                CAPTURE(size);
                const auto marks = filled<bool>({n}, [=](std::int64_t i) { return scattered(i, rare) == 0; });
                places want(static_cast<std::size_t>(size));
                std::size_t next = 0;
                for (std::int64_t i = 0; i < n; ++i)
                    if (scattered(i, rare) == 0 && next < want.size()) want[next++] = static_cast<std::int32_t>(i + 1);
                const names calls(n > 0 && size > 0 ? 1 : 0, call("select", n));
                library_same<marked_places_op, bool, float>({size}, {marks}, {size}, want, calls);
            }
    const noted_places<float> library;
    const auto marks = [](const extents& e) {
        return filled<bool>(e, [](std::int64_t i) { return scattered(i, 3) == 0; });
    };
    for (const extents& e : {extents{3, 401}, extents{2, 5, 7}, extents{0, 4}, extents{2, 20011}}) {
        extents result = e;
        result.back() = 60;
        check_same<marked_places_op, bool>({60}, {marks(e)}, {shaped<std::int32_t>(result)});
    }
    CHECK(places_calls == names{});
}

TEST_CASE("bincount on a device: small tables go to a library that is linked") {
    REQUIRE(noted_places<float>::linked());
    using limits = std::numeric_limits<std::int32_t>;
    for (const std::int64_t n : lengths)
        for (const std::int64_t length : {0, 1, 2, 7, 100, 255, 256, 257, 4096, 4097}) {
            CAPTURE(n);
            CAPTURE(length);
            const auto check = [&](const argument& x) {
                places want(static_cast<std::size_t>(length));
                for (const std::int32_t v : values_of<std::int32_t>(x))
                    if (v >= 0 && v < length) ++want[static_cast<std::size_t>(v)];
                const names calls(n > 0 && length > 0 && length <= 256 ? 1 : 0, call("histogram", n));
                library_same<count_places_op, std::int32_t, float>({length, 0}, {x}, {length}, want, calls);
            };
            check(filled<std::int32_t>(
                {n}, [=](std::int64_t i) -> std::int32_t { // some outside, at the ends, and far away
                    const std::uint32_t k = scattered(i, static_cast<std::uint32_t>(length) + 5, 2);
                    return k == 0   ? -1
                           : k == 1 ? limits::min()
                           : k == 2 ? limits::max()
                                    : static_cast<std::int32_t>(k) - 3;
                }));
            check(filled<std::int32_t>({n}, [=](std::int64_t) { return length - 1; }));
        }
    const noted_places<float> library;
    const auto x =
        filled<std::int32_t>({3, 1501}, [](std::int64_t i) { return static_cast<int>(scattered(i, 70)) - 3; });
    check_same<count_places_op, std::int32_t>({60, 0}, {x}, {shaped<std::int32_t>({3, 60})});
    CHECK(places_calls == names{});
}

TEST_CASE("runs on a device: many of them go to a library that is linked") {
    REQUIRE(noted_places<float>::linked());
    for (const std::int64_t n : lengths)
        for (const unsigned rare : {1u, 3u, 100u, 1000000u}) // each alone, short ones, long ones, hardly more than one
            for (const std::int64_t size : {std::int64_t{5}, std::int64_t{4096}, std::int64_t{4097}, n}) {
                CAPTURE(n);
                CAPTURE(size);
                std::vector<std::int32_t> which;
                for (std::int64_t i = 0; i < n; ++i)
                    which.push_back(i == 0 ? 0 : which.back() + (scattered(i, rare) == 0 ? 1 : 0));
                const auto x =
                    filled<std::int32_t>({n}, [&](std::int64_t i) { return which[static_cast<std::size_t>(i)]; });
                places want(static_cast<std::size_t>(size));
                for (const std::int32_t v : which)
                    if (v < size) ++want[static_cast<std::size_t>(v)];
                const names calls(n > 0 && size > 4096 ? 1 : 0, call("encode", n));
                library_same<count_places_op, std::int32_t, float>({size, 1}, {x}, {size}, want, calls);
            }
}

TEST_CASE_TEMPLATE("arange on a device: integers go to a library that is linked", T, std::int32_t, std::int64_t) {
    using noted = noted_sequence<std::make_unsigned_t<T>>;
    using op = arange_op<T>;
    REQUIRE(noted::linked());
    const auto like = filled<float>({1}, [](std::int64_t) { return 0; });
    const struct { double begin, step; } lines[]{{0, 1}, {-7, 3}, {2147483000, 1}, {5, -2147483647}};
    for (const std::int64_t count : lengths)
        for (const auto& line : lines) {
            CAPTURE(count);
            const typename op::attributes a{line.begin, line.step, 0, 0};
            const argument result = shaped<T>({count});
            std::vector<T> want; // wraps around
            for (std::int64_t i = 0; i < count; ++i)
                want.push_back(static_cast<T>(static_cast<std::uint64_t>(static_cast<std::int64_t>(line.begin)) +
                                              static_cast<std::uint64_t>(static_cast<std::int64_t>(line.step)) *
                                                  static_cast<std::uint64_t>(i)));
            {
                const with_value none(cuda::sequence_of_library<std::make_unsigned_t<T>>, {});
                CHECK(run_on_device<op, float>(a, {like}, {result}).template values<T>() == want);
            }
            const noted library;
            CHECK(run_on_device<op, float>(a, {like}, {result}).template values<T>() == want);
            CHECK(places_calls == names(count > 0 ? 1 : 0, call("sequence", count)));
        }
    const noted library; // all equal, and with a separate end
    check_same<op, float>({4, 0, 0, 0}, {like}, {shaped<T>({100})});
    check_same<op, float>({0, 3, 299, 1}, {like}, {shaped<T>({100})});
    CHECK(places_calls == names{});
}

TEST_CASE("places on a device: a library's are parts of a graph") {
    const noted_places<float> library;
    constexpr std::int64_t n = 20011;
    const auto floats = [](std::uint32_t seed) {
        std::vector<float> x(n);
        for (std::size_t i = 0; i < n; ++i)
            x[i] = static_cast<float>(scattered(static_cast<std::int64_t>(i), 1000, seed));
        return x;
    };
    const auto bytes = [](std::uint32_t seed) {
        std::vector<std::uint8_t> x(n);
        for (std::size_t i = 0; i < n; ++i) x[i] = scattered(static_cast<std::int64_t>(i), 3, seed) == 0;
        return x;
    };
    const auto numbers = [](std::uint32_t seed) {
        std::vector<std::int32_t> x(n);
        for (std::size_t i = 0; i < n; ++i)
            x[i] = static_cast<std::int32_t>(scattered(static_cast<std::int64_t>(i), 120, seed)) - 10;
        return x;
    };
    const auto runs = [&](std::uint32_t seed) {
        std::vector<std::int32_t> x(n);
        const auto starts = bytes(seed);
        for (std::size_t i = 1; i < n; ++i) x[i] = x[i - 1] + starts[i];
        return x;
    };
    auto line = floats(9);
    std::sort(line.begin(), line.end());
    const on_device::device_array<float> sorted(line);
    on_device::device_array<float> searched(floats(1));
    on_device::device_array<std::uint8_t> marks(bytes(1));
    on_device::device_array<std::int32_t> counted(numbers(1)), stretches(runs(1));
    const on_device::device_array<std::int32_t> at(n), marked(n), counts(100), sizes(n);
    const auto of_marks = [&] {
        buffer_view v = on_device::view(marks.data(), {n});
        v.type = dtype::boolean;
        return v;
    }();
    const buffer_view in[]{on_device::view(sorted.data(), {n}), on_device::view(searched.data(), {n}), of_marks,
                           on_device::view(counted.data(), {n}), on_device::view(stretches.data(), {n})};
    buffer_view out[]{on_device::view(at.data(), {n}), on_device::view(marked.data(), {n}),
                      on_device::view(counts.data(), {100}), on_device::view(sizes.data(), {n})};
    const std::int64_t words[][2]{{1, 0}, {n, 0}, {100, 0}, {n, 1}};
    const runtime::kernel_functions kernels[]{
        cuda::kernel_for<searchsorted_op, float>(), cuda::kernel_for<marked_places_op, bool>(),
        cuda::kernel_for<count_places_op, std::int32_t>(), cuda::kernel_for<count_places_op, std::int32_t>()};
    const cuda::driver::stream stream = cuda::driver::make_stream();
    kernel_call call[4];
    std::size_t most = 1;
    for (int k = 0; k < 4; ++k) {
        call[k].in = in + (k == 0 ? 0 : k + 1), call[k].inputs = k == 0 ? 2 : 1;
        call[k].out = out + k, call[k].outputs = 1, call[k].attributes = words[k], call[k].stream = stream;
        most = std::max(most, kernels[k].workspace(call[k]));
    }
    const on_device::device_array<unsigned char> scratch(static_cast<std::int64_t>(most));
    const auto run = [&] {
        for (int k = 0; k < 4; ++k) {
            call[k].workspace = scratch.data();
            kernels[k].run(call[k]);
        }
    };
    run(); // a library may load its kernels on first use
    places_calls.clear();
    cuda::driver::begin_capture(stream);
    run();
    const cuda::driver::graph graph = cuda::driver::end_capture(stream);
    REQUIRE(graph != nullptr);
    CHECK(places_calls == names{"upper_bound of 20011", "select of 20011", "histogram of 20011", "encode of 20011"});
    for (const std::uint32_t seed : {2, 3}) {
        const auto x = floats(seed);
        const auto m = bytes(seed);
        const auto c = numbers(seed), r = runs(seed);
        searched.assign(x.data()), marks.assign(m.data()), counted.assign(c.data()), stretches.assign(r.data());
        cuda::driver::wait(nullptr);
        cuda::driver::launch_graph(graph, stream);
        cuda::driver::wait(stream);
        places want(n);
        cpu::search_rows<true, float>(1, n, n, line.data(), x.data(), want.data());
        CHECK(at.host() == want);
        cpu::marked_places(1, n, n, m.data(), want.data());
        CHECK(marked.host() == want);
        cpu::count_places(1, n, n, r.data(), want.data());
        CHECK(sizes.host() == want);
        want.resize(100);
        cpu::count_places(1, n, 100, c.data(), want.data());
        CHECK(counts.host() == want);
    }
    cuda::driver::destroy_graph(graph);
    cuda::driver::destroy(stream);
}

} // namespace places_test
