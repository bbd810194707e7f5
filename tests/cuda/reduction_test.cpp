#include <cuda/device_array.hpp>

#include <cuda/reduction_cases.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace reduction_test {

/// Reductions of a device against the CPU's. Floats are small integers where sums must be equal:
/// every order of adding them is exact. Maxima, minima and integers are equal anyway.

namespace {

using namespace tapegraph;
using namespace cuda_test;

constexpr dtype f32 = dtype::f32, f64 = dtype::f64, bf16 = dtype::bf16, truth = dtype::boolean;

template <class Op, class Region, class T, class Prepare>
void same_bits(const Prepare& prepare, std::int64_t blocks = cuda::detail::most_blocks) {
    using on_cpu = runtime::reduction_kernel<Op, Region, T>;
    device_call cpu;
    prepare(cpu);
    cpu.workspace(on_cpu::workspace(cpu.call));
    on_cpu::run(cpu.call);
    on_device::in_orders([&] {
        device_call gpu;
        run_device<cuda::detail::fused_reduction<Op, Region, T>>(gpu, prepare, blocks);
        CHECK(cuda_test::same(gpu.result<T>(), cpu.result<T>()));
    });
}

/// Runs all shapes, with the values that `value(i)` gives.
template <class Op, class T, class F>
void all_cases(const F& value) {
    for (const reduction_case& r : reduction_cases) {
        INFO(r.text());
        std::vector<T> x(static_cast<std::size_t>(cuda_test::size_of(r.domain)));
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(value(static_cast<unsigned>(i)));
        same_bits<Op, in_memory<T>, T>([&](device_call& c) {
            c.in<T>(r.domain, x).template out<T>(r.kept()).domain(r.domain);
            c.attributes(reduce_op::attributes{r.axes, 0});
        });
    }
}

} // namespace

TEST_CASE("reductions: sums over any axes") {
    all_cases<sum_op, float>(whole);
    all_cases<sum_op, bfloat16>(whole);
    all_cases<sum_op, std::int32_t>([](unsigned i) { return scrambled(i); }); // they wrap around
#ifdef TG_SIMT                                                                // every type takes nvcc seconds
    all_cases<sum_op, double>(whole);
    all_cases<sum_op, std::int64_t>([](unsigned i) { return scrambled(i) * 0x9E3779B97F4A7C15ull; });
    all_cases<sum_op, std::uint8_t>([](unsigned i) { return scrambled(i); });
    all_cases<sum_op, half>(whole);
#endif
}

TEST_CASE("reductions: products, maxima, minima, any and all") {
    // Signs, and so few powers of two that every product of some of them is a float.
    all_cases<prod_op, float>([](unsigned i) {
        return i % 397 == 0 ? 2.0f : (i % 397 == 91 ? 0.5f : (scrambled(i) % 5 == 0 ? -1.0f : 1.0f));
    });
    all_cases<max_op, float>([](unsigned i) { return static_cast<float>(scrambled(i) % 1000) - 1200.0f; });
#ifdef TG_SIMT
    all_cases<prod_op, std::int32_t>([](unsigned i) { return scrambled(i) | 1; });
    all_cases<min_op, double>([](unsigned i) { return static_cast<double>(scrambled(i)); });
    all_cases<max_op, std::int32_t>([](unsigned i) { return scrambled(i); });
    all_cases<min_op, std::uint8_t>([](unsigned i) { return scrambled(i) % 200 + 17; });
    all_cases<max_op, half>([](unsigned i) { return whole(i) - 9.5f; });
#endif
    for (unsigned rare : {2u, 31u}) {
        all_cases<any_op, bool>([=](unsigned i) { return scrambled(i) % rare == 0; });
        all_cases<all_op, bool>([=](unsigned i) { return scrambled(i) % rare != 0; });
    }
}

TEST_CASE("reductions: NaN wins, infinities are numbers") {
    const float nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
    const auto special = [=](unsigned i) {
        const unsigned k = scrambled(i) % 64;
        return k == 0 ? nan : (k < 3 ? -infinite : (k < 5 ? infinite : static_cast<float>(whole(i))));
    };
    all_cases<max_op, float>(special);
    all_cases<min_op, float>(special);
    all_cases<max_op, float>([=](unsigned) { return -infinite; });
    all_cases<min_op, float>([=](unsigned) { return infinite; });
}

TEST_CASE("reductions: a producer of several operands, broadcast and of several types") {
    using product =
        region<slots<f32, f32, f32>, results<4>, instruction<multiply_op, f32, 0, 1>, instruction<add_op, f32, 3, 2>>;
    using counted = region<slots<truth, bf16>, results<4>, instruction<cast_op<float>, f32, 0>,
                           instruction<cast_op<float>, f32, 1>, instruction<multiply_op, f32, 2, 3>>;
    using rounded = region<slots<bf16, bf16>, results<2>, instruction<multiply_op, bf16, 0, 1>>;
    for (const reduction_case& r : reduction_cases) {
        if (r.domain.empty()) continue;
        extents inner{r.domain.back()}, outer = r.domain;
        outer.back() = 1;
        const auto shaped = [&](device_call& c) { c.domain(r.domain).attributes(reduce_op::attributes{r.axes, 0}); };
        const auto numbers = [](const extents& e, unsigned seed) {
            std::vector<float> v(static_cast<std::size_t>(cuda_test::size_of(e)));
            for (std::size_t i = 0; i < v.size(); ++i)
                v[i] = static_cast<float>(whole(static_cast<unsigned>(i) + seed));
            return v;
        };
        same_bits<sum_op, product, float>([&](device_call& c) {
            c.in<float>(r.domain, numbers(r.domain, 1))
                .in<float>(inner, numbers(inner, 2))
                .in<float>(outer, numbers(outer, 3));
            c.out<float>(r.kept()), shaped(c);
        });
        // Operands that repeat along the rows, and operands that are read in order; no others.
        same_bits<sum_op, product, float>([&](device_call& c) {
            c.in<float>(r.domain, numbers(r.domain, 1))
                .in<float>(inner, numbers(inner, 2))
                .in<float>({}, numbers({}, 3));
            c.out<float>(r.kept()), shaped(c);
        });
        same_bits<sum_op, rounded, bfloat16>([&](device_call& c) {
            const auto ones = [](const extents& e, unsigned seed) {
                std::vector<bfloat16> v(static_cast<std::size_t>(cuda_test::size_of(e)));
                for (std::size_t i = 0; i < v.size(); ++i)
                    v[i] = static_cast<bfloat16>((scrambled(static_cast<unsigned>(i) + seed) & 1) != 0 ? 1.0f : -1.0f);
                return v;
            };
            c.in<bfloat16>(r.domain, ones(r.domain, 1)).in<bfloat16>(inner, ones(inner, 2));
            c.out<bfloat16>(r.kept()), shaped(c);
        });
        same_bits<max_op, counted, float>(
            [&](device_call& c) { c.in<bool>(r.domain, 1).in<bfloat16>(inner, 2), c.out<float>(r.kept()), shaped(c); });
        same_bits<min_op, rounded, bfloat16>([&](device_call& c) {
            c.in<bfloat16>(r.domain, 1).in<bfloat16>(outer, 2), c.out<bfloat16>(r.kept()), shaped(c);
        });
    }
}

TEST_CASE("reductions: operands that are not aligned") {
    for (const reduction_case& r : {reduction_case{{5003}, 1}, {{19, 128}, 2}, {{301, 8}, 1}, {{300, 150}, 1}}) {
        device_call aligned, shifted;
        run_device<cuda::detail::fused_reduction<sum_op, in_memory<float>, float>>(
            aligned,
            [&](device_call& c) {
                c.in<float>(r.domain, 1)
                    .out<float>(r.kept())
                    .domain(r.domain)
                    .attributes(reduce_op::attributes{r.axes, 0});
            },
            1000);
        run_device<cuda::detail::fused_reduction<sum_op, in_memory<float>, float>>(
            shifted,
            [&](device_call& c) {
                c.in<float>(r.domain, 1, 4, 3)
                    .out<float>(r.kept(), 1)
                    .domain(r.domain)
                    .attributes(reduce_op::attributes{r.axes, 0});
            },
            1000);
        CHECK(shifted.result<float>() == aligned.result<float>()); // the order does not depend on addresses
    }
}

TEST_CASE("reductions: blocks that take several turns") {
    for (const reduction_case& r : reduction_cases)
        same_bits<sum_op, in_memory<float>, float>(
            [&](device_call& c) {
                std::vector<float> x(static_cast<std::size_t>(cuda_test::size_of(r.domain)));
                for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(whole(static_cast<unsigned>(i)));
                c.in<float>(r.domain, x)
                    .out<float>(r.kept())
                    .domain(r.domain)
                    .attributes(reduce_op::attributes{r.axes, 0});
            },
            2);
}

// The bound given in kernels/reduction.cuh: runs of 8 vectors of 4 lanes, so (8 + 2) / 2^24, and
// half a unit for the result.
TEST_CASE("reductions: sums of floats are off by few units, however long they are") {
    for (const reduction_case& r :
         {reduction_case{{400009}, 1}, {{150001, 2}, 1}, {{150000, 2}, 1}, {{3, 100000}, 2}}) {
        std::vector<float> x(static_cast<std::size_t>(cuda_test::size_of(r.domain)));
        for (std::size_t i = 0; i < x.size(); ++i)
            x[i] = 0.1f + 1e-3f * static_cast<float>(scrambled(static_cast<unsigned>(i)) % 1000);
        device_call c;
        run_device<cuda::detail::fused_reduction<sum_op, in_memory<float>, float>>(
            c,
            [&](device_call& d) {
                d.in<float>(r.domain, x)
                    .out<float>(r.kept())
                    .domain(r.domain)
                    .attributes(reduce_op::attributes{r.axes, 0});
            },
            1 << 20);
        const std::vector<float> got = c.result<float>();
        std::vector<double> want(got.size());
        const bool rows = r.axes == 2;
        for (std::size_t i = 0; i < x.size(); ++i)
            want[r.domain.size() == 1 ? 0 : (rows ? i / static_cast<std::size_t>(r.domain[1]) : i % 2)] += x[i];
        for (std::size_t k = 0; k < got.size(); ++k)
            CHECK(std::abs(got[k] - want[k]) <= (10 + 0.5) * 0x1p-24 * want[k]);
    }
}

TEST_CASE("reductions of nothing") {
    const auto empty = [](device_call& c, auto example, const extents& e, std::uint32_t axes) {
        using T = decltype(example);
        const reduction_case r{e, axes};
        c.in<T>(e, 1).template out<T>(r.kept()).domain(e).attributes(reduce_op::attributes{axes, 0});
    };
    for (const reduction_case& r : {reduction_case{{0}, 1}, {{3, 0}, 2}, {{300, 0, 2}, 2}, {{0, 3}, 2}}) {
        same_bits<sum_op, in_memory<float>, float>([&](device_call& c) { empty(c, float(), r.domain, r.axes); });
        same_bits<prod_op, in_memory<half>, half>([&](device_call& c) { empty(c, half(), r.domain, r.axes); });
        same_bits<prod_op, in_memory<std::int64_t>, std::int64_t>(
            [&](device_call& c) { empty(c, std::int64_t(), r.domain, r.axes); });
        same_bits<any_op, in_memory<bool>, bool>([&](device_call& c) { empty(c, bool(), r.domain, r.axes); });
        same_bits<all_op, in_memory<bool>, bool>([&](device_call& c) { empty(c, bool(), r.domain, r.axes); });
    }
    device_call c, none;
    empty(c, float(), {3, 0}, 2);
    using maximum = cuda::reduction_kernel<max_op, in_memory<float>, float>;
    CHECK_THROWS_WITH_AS(c.on_device(&maximum::run), "max: axis 1 has no elements", argument_error);
    empty(none, float(), {0, 3}, 2);
    none.on_device(&maximum::run); // no results, no error
    same_bits<max_op, in_memory<float>, float>([&](device_call& call) {
        empty(call, float(), {3, 0}, 2);
        call.attributes(reduce_op::attributes{2, reduce_op::empty_allowed});
    });
}

TEST_CASE("reductions of a tensor in memory") {
    for (const reduction_case& r : {reduction_case{{37, 10}, 2}, {{16387}, 1}, {{9000, 4}, 1}}) {
        device_call cpu, gpu;
        for (device_call* c : {&cpu, &gpu})
            c->in<float>(r.domain, 1).out<float>(r.kept()).attributes(reduce_op::attributes{r.axes, 0});
        const runtime::kernel_functions on_cpu = runtime::kernel_for<max_op, float>(),
                                        on_gpu = cuda::kernel_for<max_op, float>();
        cpu.workspace(on_cpu.workspace(cpu.call)), gpu.workspace(on_gpu.workspace(gpu.call));
        on_cpu.run(cpu.call), gpu.on_device(on_gpu.run);
        CHECK(gpu.result<float>() == cpu.result<float>());
    }
}

#if defined(TG_SIMT) && !defined(SIMT_TSAN)
TEST_CASE("reductions: no barrier is there for nothing") {
    const auto every_barrier_matters = [](auto device, const reduction_case& r, std::size_t barriers) {
        std::vector<float> x(static_cast<std::size_t>(cuda_test::size_of(r.domain)));
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(whole(static_cast<unsigned>(i)));
        const auto prepare = [&](device_call& c) {
            c.in<float>(r.domain, x).out<float>(r.kept()).domain(r.domain).attributes(reduce_op::attributes{r.axes, 0});
        };
        device_call cpu;
        prepare(cpu);
        using on_cpu = runtime::reduction_kernel<sum_op, in_memory<float>, float>;
        cpu.workspace(on_cpu::workspace(cpu.call));
        on_cpu::run(cpu.call);
        std::size_t found = 0;
        const auto unnoticed = simt::unnoticed_barriers(
            [&] {
                device_call gpu;
                run_device<decltype(device)>(gpu, prepare, 1);
                return gpu.result<float>() == cpu.result<float>();
            },
            found);
        for (const std::string& where : unnoticed) FAIL_CHECK("nobody misses the barrier at " << where);
        CHECK(found == barriers);
    };
    using of_one_shape = cuda::detail::fused_reduction<sum_op, in_memory<float>, float>;
    using of_both =
        cuda::detail::fused_reduction<sum_op, in_memory<float>, float, cuda::kernels::compact_source<in_memory<float>>>;
    for (const reduction_case& r : {reduction_case{{5, 1200}, 2}, {{5, 70, 128}, 2}}) { // of a row; of a column
        every_barrier_matters(of_one_shape{}, r, 2);
        every_barrier_matters(of_both{}, r, 2);
    }
}
#endif

} // namespace reduction_test
