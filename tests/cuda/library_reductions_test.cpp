#include <cuda/device_array.hpp>

#include <cuda/disorder.hpp>
#include <cuda/noted_reductions.hpp>

#include <tapegraph/cuda/ops/ordering/arg_reduce.cuh>
#include <tapegraph/cuda/reduction.cuh>
#include <tapegraph/ops/ops.hpp>

#include <vector>

namespace library_reductions_test {

/// Tests which reductions of whole tensors go to a linked library, and that results equal those of
/// our kernels, of the CPU's and of a plain loop. On a GPU the library is CUB.

using namespace tapegraph;
using namespace tapegraph::testing;
using calls = std::vector<reduction_call>;

namespace {

// From 16,384 elements on our kernels take two launches. A tile of CUB's is some thousands.
const std::vector<std::int64_t> long_lines{16384, 16387, 65537,
#ifndef TG_SIMT
                                           3000017
#endif
};

template <class T>
std::vector<T> values_of(const argument& a) {
    std::vector<T> v(a.values.size() / sizeof(T));
    if (!v.empty()) std::memcpy(v.data(), a.values.data(), a.values.size());
    return v;
}

/// A reduction of a tensor in memory, without a fused producer.
template <class Kernel>
struct of_operand {
    static kernel_call over(kernel_call c) {
        c.domain = c.in[0];
        return c;
    }
    static void run(const kernel_call& c) { Kernel::run(over(c)); }
    static std::size_t workspace(const kernel_call& c) { return Kernel::workspace(over(c)); }
};
template <class Kernel>
constexpr runtime::kernel_functions whole{&of_operand<Kernel>::run, &of_operand<Kernel>::workspace};
template <class T>
using in_memory = region<slots<dtype_of<T>>, results<0>>;

template <class Op, class T>
outcome reduced_on_device(std::int64_t axes, const argument& x, const argument& result) {
    return run<Op>(true, whole<cuda::reduction_kernel<Op, in_memory<T>, T>>, {axes, 0}, {x}, {result});
}
template <class Op, class T>
outcome reduced_on_cpu(std::int64_t axes, const argument& x, const argument& result) {
    return run<Op>(false, whole<runtime::reduction_kernel<Op, in_memory<T>, T>>, {axes, 0}, {x}, {result});
}
template <class Op, class T>
void check_reduced(std::int64_t axes, const argument& x, const argument& result) {
    const outcome want = reduced_on_cpu<Op, T>(axes, x, result);
    on_device::in_orders([&] { CHECK(reduced_on_device<Op, T>(axes, x, result).out == want.out); });
}

template <class T>
argument scrambled(std::int64_t count) {
    return filled<T>({count}, [](std::int64_t i) {
        return static_cast<T>((scattered(i, 1u << 31) | 1) *
                              static_cast<std::make_unsigned_t<T>>(0x9E3779B97F4A7C15ull));
    });
}
/// All awkward sets of numbers of a given length.
template <class T>
std::vector<argument> awkward(std::int64_t count) {
    const auto all = [&](T value) { return filled<T>({count}, [=](std::int64_t) { return value; }); };
    using limits = std::numeric_limits<T>;
    return {scrambled<T>(count), disorder<T>({count}), all(T(3)), all(limits::max()), all(limits::lowest())};
}

} // namespace

TEST_CASE_TEMPLATE("reductions on a device: integers of whole tensors go to a library that is linked", T, std::int32_t,
                   std::int64_t, std::uint8_t) {
    using unsigned_word = std::make_unsigned_t<T>;
    const auto goes = [&]<class Op>(Op, const argument& x) {
        using word = typename runtime::reduced_element<Op, T>::type;
        using noted = noted_reduction<word>;
        REQUIRE(noted::linked());
        const auto result = shaped<T>({});
        const std::int64_t count = x.view.extents[0];
        const auto ours = [&] {
            const with_value none(cuda::reduction_of_library<word>, {});
            return reduced_on_device<Op, T>(1, x, result).template values<T>();
        }();
        const noted library;
        const auto got = reduced_on_device<Op, T>(1, x, result).template values<T>();
        CHECK(noted::calls == calls{{std::string(Op::name), count}});
        CHECK(got == ours);
        CHECK(got == reduced_on_cpu<Op, T>(1, x, result).template values<T>());
        const auto numbers = values_of<word>(x);
        CHECK(static_cast<unsigned_word>(got[0]) ==
              static_cast<unsigned_word>(imitated_reduction<word>::folded(Op::combines, numbers.data(), count)));
    };
    for (const std::int64_t count : long_lines)
        for (const argument& x : awkward<T>(count)) {
            CAPTURE(count);
            goes(sum_op{}, x), goes(prod_op{}, x), goes(max_op{}, x), goes(min_op{}, x);
        }
}

TEST_CASE("reductions on a device: any and all of whole tensors go to a library that is linked") {
    using noted = noted_reduction<std::uint8_t>;
    for (const std::int64_t count : long_lines)
        for (const std::int64_t odd : {std::int64_t{-1}, std::int64_t{0}, count / 2, count - 1}) { // one that differs
            CAPTURE(odd);
            const noted library;
            const auto rare = filled<bool>({count}, [=](std::int64_t i) { return i == odd; });
            const auto usual = filled<bool>({count}, [=](std::int64_t i) { return i != odd; });
            check_reduced<any_op, bool>(1, rare, shaped<bool>({}));
            check_reduced<all_op, bool>(1, usual, shaped<bool>({}));
            CHECK(noted::calls.size() >= 2);
        }
}

TEST_CASE("reductions on a device: what stays with our kernels") {
    const noted_reduction<std::uint32_t> sums;
    const noted_reduction<std::int32_t> extremes;
    const auto stays = [&](const extents& e, std::int64_t axes, const extents& result) {
        const auto x = disorder<std::int32_t>(e);
        check_reduced<sum_op, std::int32_t>(axes, x, shaped<std::int32_t>(result));
        if (x.view.elements() > 0) check_reduced<max_op, std::int32_t>(axes, x, shaped<std::int32_t>(result));
        CHECK(sums.calls == calls{});
        CHECK(extremes.calls == calls{});
    };
    stays({0}, 1, {});
    stays({1}, 1, {});
    stays({127}, 1, {});
    stays({16383}, 1, {});     // one launch of ours
    stays({2, 20011}, 2, {2}); // several results
    stays({20011, 2}, 1, {2});
    stays({20011}, 0, {20011});                       // nothing is folded
    const auto x = disorder<std::int32_t>({3, 7001}); // all axes
    check_reduced<sum_op, std::int32_t>(3, x, shaped<std::int32_t>({}));
    CHECK(sums.calls.size() >= 1);
}

TEST_CASE_TEMPLATE("argmax and argmin on a device: whole tensors go to a library that is linked", T, float, double,
                   std::int32_t, std::int64_t, std::uint8_t) {
    using noted = noted_search<T>;
    REQUIRE(noted::linked());
    const with_value set(cuda::detail::limits_of_lines, small_limits);
    const auto result = shaped<std::int32_t>({});
    const auto goes = [&](const argument& x, std::int64_t maximum) {
        const std::int64_t count = x.view.extents[0];
        const arg_reduce_op::attributes attributes{0, maximum, 0};
        const auto ours = [&] {
            const with_value none(cuda::arg_reduction_of_library<T>, {});
            return run_on_device<arg_reduce_op, T>(attributes, {x}, {result}).template values<std::int32_t>();
        }();
        const noted library;
        const auto got = run_on_device<arg_reduce_op, T>(attributes, {x}, {result}).template values<std::int32_t>();
        CHECK(noted::calls == calls{{maximum != 0 ? "argmax" : "argmin", count}});
        CHECK(got == ours);
        CHECK(got == run_on_cpu<arg_reduce_op, T>(attributes, {x}, {result}).template values<std::int32_t>());
        CHECK(got[0] == imitated_search<T>::found(maximum != 0, values_of<T>(x).data(), count));
    };
    std::vector<std::int64_t> lengths = long_lines;
    lengths.insert(lengths.begin(), {1201, 5003});
    for (const std::int64_t count : lengths)
        for (const std::int64_t maximum : {0, 1}) {
            CAPTURE(count);
            goes(disorder<T>({count}), maximum);
            for (const T value : {T(0), std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest()})
                goes(filled<T>({count}, [=](std::int64_t) { return value; }), maximum);
            // One best element, at any position.
            for (const std::int64_t at : {std::int64_t{0}, count / 2, count - 1})
                goes(filled<T>({count}, [=](std::int64_t i) { return i == at ? (maximum != 0 ? 9 : 1) : 5; }), maximum);
            if constexpr (std::is_floating_point_v<T>) {
                const T nan = std::numeric_limits<T>::quiet_NaN(), infinite = std::numeric_limits<T>::infinity();
                goes(filled<T>({count}, [=](std::int64_t) { return nan; }), maximum);
                goes(filled<T>(
                         {count},
                         [=](std::int64_t i) { return i < count - 2 ? (i % 2 == 0 ? infinite : -infinite) : nan; }),
                     maximum);
                goes(filled<T>({count}, [](std::int64_t i) { return i % 3 == 1 ? T(0) : -T(0); }), maximum); // equal
            }
        }
    const noted library;
    const auto stays = [&](const extents& e, std::int64_t axis, const extents& reduced) {
        check_same<arg_reduce_op, T>({axis, 1, 0}, {disorder<T>(e)}, {shaped<std::int32_t>(reduced)});
        CHECK(noted::calls == calls{});
    };
    stays({1}, 0, {});
    stays({1200}, 0, {});     // one chunk
    stays({2, 1201}, 1, {2}); // several lines
    stays({1201, 2}, 0, {2});
}

TEST_CASE("reductions on a device: a library's are parts of a graph") {
    const noted_reduction<std::int32_t> extremes;
    const noted_search<float> searches;
    const std::int64_t count = 20011;
    const auto numbers = [=](std::uint32_t seed) {
        std::vector<std::int32_t> x(count);
        for (std::size_t i = 0; i < x.size(); ++i)
            x[i] = static_cast<std::int32_t>(scattered(static_cast<std::int64_t>(i), 1u << 31, seed));
        return x;
    };
    const auto floats = [=](std::uint32_t seed) {
        const auto x = numbers(seed);
        return std::vector<float>(x.begin(), x.end());
    };
    const on_device::device_array<std::int32_t> results(2);
    on_device::device_array<std::int32_t> x(numbers(1));
    on_device::device_array<float> y(floats(1));
    const buffer_view in[]{on_device::view(x.data(), {count}), on_device::view(y.data(), {count})};
    buffer_view out[]{on_device::view(results.data(), {}), on_device::view(results.data() + 1, {})};
    const auto largest = attributes_to_words<max_op>(max_op::attributes{1, 0});
    const auto place = attributes_to_words<arg_reduce_op>(arg_reduce_op::attributes{0, 1, 0});
    const cuda::driver::stream stream = cuda::driver::make_stream();
    kernel_call call[2];
    for (int k = 0; k < 2; ++k) {
        call[k].in = in + k, call[k].inputs = 1, call[k].out = out + k, call[k].outputs = 1, call[k].stream = stream;
        call[k].attributes =
            k == 0 ? reinterpret_cast<const std::int64_t*>(&largest) : reinterpret_cast<const std::int64_t*>(&place);
    }
    const runtime::kernel_functions kernels[]{
        whole<cuda::reduction_kernel<max_op, in_memory<std::int32_t>, std::int32_t>>,
        cuda::kernel_for<arg_reduce_op, float>()};
    const on_device::device_array<unsigned char> scratch(
        static_cast<std::int64_t>(std::max(kernels[0].workspace(call[0]), kernels[1].workspace(call[1]))));
    const auto run = [&] {
        for (int k = 0; k < 2; ++k) {
            call[k].workspace = scratch.data();
            kernels[k].run(call[k]);
        }
    };
    run(); // a library may load its kernels on first use
    cuda::driver::begin_capture(stream);
    run();
    const cuda::driver::graph graph = cuda::driver::end_capture(stream);
    REQUIRE(graph != nullptr);
    CHECK(extremes.calls.size() == 2);
    CHECK(searches.calls.size() == 2);
    for (const std::uint32_t seed : {2, 3}) {
        const auto now = numbers(seed);
        const auto now_single = floats(seed);
        x.assign(now.data()), y.assign(now_single.data());
        cuda::driver::wait(nullptr);
        cuda::driver::launch_graph(graph, stream);
        cuda::driver::wait(stream);
        const auto got = results.host();
        CHECK(got[0] == *std::max_element(now.begin(), now.end()));
        CHECK(got[1] == std::max_element(now_single.begin(), now_single.end()) - now_single.begin());
    }
    cuda::driver::destroy_graph(graph);
    cuda::driver::destroy(stream);
}

} // namespace library_reductions_test
