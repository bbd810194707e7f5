#include <cuda/device_array.hpp>

#include <cuda/call.hpp>

#include <tapegraph/cuda/region.cuh>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

namespace region_test {

/// Fused regions of a device against the CPU's, bit for bit.

namespace {

using namespace tapegraph;
using cuda_test::device_call;
using cuda_test::extents;

// Shapes of three operands of one domain: none, one element, primes, beyond a block; repeated along
// outer axes, inner axes, axes between, all of them; rows shorter than the lanes of a thread and
// rows that are no multiple of them.
struct broadcast_case {
    extents domain, a, b, c;
};
const broadcast_case patterns[]{
    {{0}, {0}, {0}, {1}},
    {{3, 0, 2}, {3, 0, 2}, {1}, {2}},
    {{}, {}, {}, {}},
    {{1}, {1}, {}, {1}},
    {{7}, {7}, {7}, {1}},
    {{1023}, {1023}, {1}, {1023}},
    {{4, 1024}, {4, 1024}, {4, 1024}, {4, 1024}},
    {{5, 8}, {5, 8}, {8}, {5, 1}},
    {{37, 150}, {37, 150}, {150}, {37, 1}},
    {{9, 3}, {9, 3}, {3}, {9, 1}},
    {{3, 5, 150}, {3, 5, 150}, {150}, {1, 1, 150}},
    {{40, 4, 150}, {40, 4, 150}, {40, 4, 150}, {150}},
    {{40, 4, 6}, {40, 4, 6}, {4, 1}, {6}},
    {{3000, 4, 3}, {3000, 4, 3}, {4, 3}, {3}},
    {{7, 1}, {7, 1}, {1}, {7, 1}},
    {{4, 4, 3}, {4, 4, 3}, {3}, {4, 1}},
    {{1000, 2}, {1000, 2}, {2}, {1000, 1}},
    {{2, 3, 5, 4}, {2, 3, 5, 4}, {3, 1, 4}, {2, 1, 5, 1}},
    {{2, 3, 5, 4}, {1, 1, 1, 1}, {5, 1}, {2, 1, 1, 4}},
    {{11, 13}, {11, 1}, {13}, {1, 1}},
    {{2, 1, 3, 1, 2, 3, 1, 2}, {2, 1, 3, 1, 2, 3, 1, 2}, {3, 1, 1, 3, 1, 1}, {2, 1, 1, 1, 2, 1, 1, 2}},
    {{2, 2, 2, 2, 2, 2, 2, 2}, {2, 1, 2, 1, 2, 1, 2, 1}, {1, 2, 1, 2, 1, 2, 1, 2}, {2, 2, 1, 1, 2, 2, 1, 1}},
};

/// Prepares the same call twice, runs both kernels, and compares every byte of all memory.
template <class Region, class Prepare>
void same_bits(const Prepare& prepare, std::int64_t blocks = cuda::detail::most_blocks) {
    device_call cpu;
    prepare(cpu);
    tapegraph::cpu::run_map(&tapegraph::cpu::evaluate_tile<Region>, cpu.call);
    on_device::in_orders([&] {
        for (const std::int64_t many : {cuda::detail::many_elements, std::int64_t{1}}) {
            device_call gpu;
            prepare(gpu);
            gpu.on_device([&](const kernel_call& c) { cuda::detail::run_region<Region>(c, blocks, many); });
            CHECK(gpu.bytes() == cpu.bytes());
        }
    });
}

[[maybe_unused]] constexpr dtype f32 = dtype::f32, f64 = dtype::f64, f16 = dtype::f16, bf16 = dtype::bf16,
                                 i32 = dtype::i32, i64 = dtype::i64, u8 = dtype::u8, truth = dtype::boolean;

using three_floats = region<slots<f32, f32, f32>, results<4>, instruction<multiply_op, f32, 0, 1>, //
                            instruction<add_op, f32, 3, 2>>;
using copy_of_float = region<slots<f32>, results<0>>;

template <class T, class Region>
void all_patterns() {
    for (const broadcast_case& p : patterns)
        same_bits<Region>([&](device_call& c) {
            c.in<T>(p.a, 1), c.in<T>(p.b, 2), c.in<T>(p.c, 3);
            c.out<T>(p.domain), c.domain(p.domain);
        });
}

template <dtype Type>
using three_of = region<slots<Type, Type, Type>, results<4>, instruction<multiply_op, Type, 0, 1>,
                        instruction<subtract_op, Type, 3, 2>>;

} // namespace

TEST_CASE("regions: every pattern of broadcasting, every element type") {
    all_patterns<float, three_floats>();
    all_patterns<double, three_of<f64>>();
    all_patterns<bfloat16, three_of<bf16>>();
#ifdef TG_SIMT // every type takes nvcc a second
    all_patterns<half, three_of<f16>>();
    all_patterns<std::int32_t, three_of<i32>>();
    all_patterns<std::int64_t, three_of<i64>>();
    all_patterns<std::uint8_t, three_of<u8>>();
#endif
}

TEST_CASE("regions: bool, alone and beside other types") {
    using conditions = region<slots<truth, truth>, results<3, 4>, instruction<logical_and_op, truth, 0, 1>,
                              instruction<logical_or_op, truth, 2, 1>, instruction<logical_not_op, truth, 2>>;
    for (const broadcast_case& p : patterns)
        same_bits<conditions>([&](device_call& c) {
            c.in<bool>(p.a, 1).in<bool>(p.b, 2).out<bool>(p.domain).out<bool>(p.domain).domain(p.domain);
        });
    using chosen = region<slots<truth, f32, f32>, results<4, 3>, instruction<where_op, f32, 0, 1, 2>,
                          instruction<greater_op, truth, 1, 2>>;
    for (const broadcast_case& p : patterns)
        same_bits<chosen>([&](device_call& c) {
            c.in<bool>(p.a, 1).in<float>(p.b, 2).in<float>(p.c, 3).out<bool>(p.domain).out<float>(p.domain).domain(
                p.domain);
        });
    // Bytes that are neither 0 nor 1 are true.
    same_bits<region<slots<truth>, results<0>>>(
        [](device_call& c) { c.in<std::uint8_t>({19}, 1).out<bool>({19}).domain({19}); });
}

TEST_CASE("regions: types that meet, 16-bit instructions that round each") {
    using mixed = region<slots<bf16, f32, f64, i32>, results<4, 5, 7>, instruction<multiply_op, bf16, 0, 0>,
                         instruction<cast_op<float>, f32, 4>, instruction<cast_op<double>, f64, 3>,
                         instruction<add_op, f64, 6, 2>>;
    for (const broadcast_case& p : patterns)
        same_bits<mixed>([&](device_call& c) {
            c.in<bfloat16>(p.a, 1).in<float>(p.b, 2).in<double>(p.c, 3).in<std::int32_t>(p.a, 4, 1000);
            c.out<bfloat16>(p.domain).out<float>(p.domain).out<double>(p.domain).domain(p.domain);
        });
    using rounded =
        region<slots<f16, f16>, results<5>, instruction<multiply_op, f16, 0, 1>, instruction<exp_op, f16, 2>,
               instruction<subtract_op, f16, 3, 1>, instruction<tanh_op, f16, 4>>;
    same_bits<rounded>(
        [](device_call& c) { c.in<half>({3001}, 1).in<half>({3001}, 2).out<half>({3001}).domain({3001}); });
    using narrowed =
        region<slots<f64>, results<1, 2>, instruction<cast_op<half>, f16, 0>, instruction<cast_op<bfloat16>, bf16, 0>>;
    same_bits<narrowed>(
        [](device_call& c) { c.in<double>({1001}, 1, 1e5).out<half>({1001}).out<bfloat16>({1001}).domain({1001}); });
}

TEST_CASE("regions: functions, divisions and roots have the CPU's bits") {
    using functions =
        region<slots<f32, f32>, results<3, 5, 8>, instruction<sigmoid_op, f32, 0>, instruction<multiply_op, f32, 2, 1>,
               instruction<divide_op, f32, 0, 1>, instruction<atan2_op, f32, 4, 2>, instruction<square_op, f32, 0>,
               instruction<sqrt_op, f32, 6>, instruction<remainder_op, f32, 7, 1>>;
    same_bits<functions>([](device_call& c) {
        c.in<float>({4099}, 1, 20).in<float>({4099}, 2, 3).out<float>({4099}).out<float>({4099}).out<float>({4099});
        c.domain({4099});
    });
    using integers = region<slots<i32, i32>, results<2, 3, 4>, instruction<divide_op, i32, 0, 1>,
                            instruction<remainder_op, i32, 0, 1>, instruction<negate_op, i32, 0>>;
    const std::vector<std::int32_t> x{INT32_MIN, INT32_MIN, INT32_MIN, 7, -7, 7, -7, 0, INT32_MAX};
    const std::vector<std::int32_t> y{-1, 0, 1, 2, 2, -2, -2, 5, INT32_MIN};
    same_bits<integers>([&](device_call& c) {
        c.in<std::int32_t>({9}, x).in<std::int32_t>({9}, y).out<std::int32_t>({9}).out<std::int32_t>({9});
        c.out<std::int32_t>({9}).domain({9});
    });
}

TEST_CASE("regions: any alignment of operands and results") {
    for (int shift = 0; shift < 4; ++shift) {
        same_bits<three_floats>([&](device_call& c) {
            c.in<float>({1029}, 1, 4, shift).in<float>({1}, 2, 4, 1).in<float>({1029}, 3, 4, 2 * shift % 3);
            c.out<float>({1029}, 3 - shift).domain({1029});
        });
        same_bits<three_of<bf16>>([&](device_call& c) {
            c.in<bfloat16>({40, 24}, 1, 4, shift).in<bfloat16>({24}, 2, 4, 1).in<bfloat16>({40, 1}, 3, 4, shift);
            c.out<bfloat16>({40, 24}, shift).domain({40, 24});
        });
    }
}

TEST_CASE("regions: results in place of operands, and unused results") {
    using update = region<slots<f32, f32, f32>, results<4, 5>, instruction<multiply_op, f32, 1, 2>,
                          instruction<subtract_op, f32, 0, 3>, instruction<add_op, f32, 1, 4>>;
    same_bits<three_floats>([](device_call& c) {
        c.in<float>({2050}, 1).in<float>({2050}, 2).in<float>({}, 3).out<float>({2050});
        c.in_place(0, 1).domain({2050});
    });
    // As many elements as several iterations of threads that keep their positions, each with a
    // vector ahead.
    same_bits<three_floats>([](device_call& c) {
        c.in<float>({2000, 6}, 1).in<float>({6}, 2).in<float>({2000, 6}, 3).out<float>({2000, 6});
        c.in_place(0, 2).domain({2000, 6});
    });
    for (int wanted = 0; wanted < 2; ++wanted)
        same_bits<update>([&](device_call& c) {
            c.in<float>({2000, 6}, 1).in<float>({6}, 2).in<float>({1, 1}, 3);
            for (int k = 0; k < 2; ++k) k == wanted ? c.out<float>({2000, 6}) : c.not_wanted(f32, {2000, 6});
            c.domain({2000, 6});
        });
    // Both kernels read all operands before they write any result, so that several may be updated
    // at once.
    const auto prepare = [](device_call& c) {
        c.in<float>({2050}, 1).in<float>({2050}, 2).in<float>({}, 3).out<float>({2050}).out<float>({2050}).domain(
            {2050});
    };
    device_call apart, within, on_host;
    prepare(apart), prepare(within), prepare(on_host);
    within.in_place(0, 0).in_place(1, 1);
    on_host.in_place(0, 0).in_place(1, 1);
    tapegraph::cpu::run_map(&tapegraph::cpu::evaluate_tile<update>, apart.call);
    runtime::region_kernel<update>::run(on_host.call);
    CHECK(on_host.result<float>(0) == apart.result<float>(0));
    CHECK(on_host.result<float>(1) == apart.result<float>(1));
    within.on_device(&cuda::region_kernel<update>::run);
    CHECK(within.result<float>(0) == apart.result<float>(0));
    CHECK(within.result<float>(1) == apart.result<float>(1));
    for (int wanted = 0; wanted < 2; ++wanted)
        same_bits<update>([&](device_call& c) {
            c.in<float>({31, 5}, 1).in<float>({5}, 2).in<float>({31, 1}, 3);
            for (int k = 0; k < 2; ++k) k == wanted ? c.out<float>({31, 5}) : c.not_wanted(f32, {31, 5});
            c.domain({31, 5});
        });
}

TEST_CASE("regions: as many operands as there may be") {
    using sums = region<slots<f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32,
                              f32, f32, f32, f32, f32, f64>,
                        results<25>, instruction<add_op, f32, 0, 22>, instruction<multiply_op, f32, 24, 11>>;
    same_bits<sums>([](device_call& c) {
        for (unsigned s = 0; s < 23; ++s) c.in<float>(s % 3 == 0 ? extents{6, 11} : extents{11}, s);
        c.in<double>({6, 1}, 1).out<float>({6, 11}).domain({6, 11});
    });
}

TEST_CASE("regions: threads that take several turns") {
    for (std::int64_t blocks : {1, 2, 3}) {
        same_bits<three_floats>(
            [](device_call& c) {
                c.in<float>({51, 101}, 1)
                    .in<float>({101}, 2)
                    .in<float>({51, 1}, 3)
                    .out<float>({51, 101})
                    .domain({51, 101});
            },
            blocks);
        same_bits<copy_of_float>([](device_call& c) { c.in<float>({7001}, 1).out<float>({7001}).domain({7001}); },
                                 blocks);
    }
}

TEST_CASE("strided indices: merged axes, and offsets beyond 2^31") {
    using cuda::kernels::strided_index;
    const auto made = [](const extents& e, const extents& first, const extents& second) {
        strided_index<2> index;
        for (std::size_t a = 0; a < e.size(); ++a) {
            const std::int64_t strides[2]{first[a], second[a]};
            index.add(e[a], strides);
        }
        return index;
    };
    CHECK(made({2, 3, 5}, {15, 5, 1}, {0, 0, 0}).rank == 1);
    CHECK(made({2, 3, 5}, {15, 5, 1}, {0, 5, 1}).rank == 2);
    CHECK(made({2, 1, 5}, {5, 9, 1}, {1, 9, 0}).rank == 2);
    CHECK(made({1, 1}, {0, 0}, {0, 0}).rank == 0);

    // Digit by digit, in 64 bits. The last axes have many elements; one has few that are far apart.
    const std::int64_t far = std::int64_t{1} << 33;
    struct {
        extents e, first, second;
    } cases[]{{{7, 11, 13}, {143, 13, 1}, {0, 13, 1}},
              {{2, 3, 2, 3}, {18, 6, 3, 1}, {3, 0, 0, 1}},
              {{46341, 46341}, {46341, 1}, {0, 1}},
              {{3, 1 << 30, 5}, {5 * (std::int64_t{1} << 30), 5, 1}, {5, 0, 1}},
              {{far, 3}, {3, 1}, {1, 0}},
              {{5, 3}, {far, 1}, {1, 0}}};
    for (const auto& c : cases) {
        const strided_index<2> index = made(c.e, c.first, c.second);
        const std::int64_t n = cuda_test::size_of(c.e);
        CHECK(index.size == n);
        std::uint64_t state = 1;
        for (int k = 0; k < 500; ++k) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const std::int64_t i =
                k < 40 ? k % n : (k < 80 ? n - 1 - k % n : static_cast<std::int64_t>(state >> 2) % n);
            std::int64_t rest = i, want[2]{}, got[2];
            for (std::size_t a = c.e.size(); a-- > 0; rest /= c.e[a]) {
                want[0] += rest % c.e[a] * c.first[a];
                want[1] += rest % c.e[a] * c.second[a];
            }
            CHECK(index.offsets(i, got) == i % index.inner_extent());
            CHECK(got[0] == want[0]);
            CHECK(got[1] == want[1]);
        }
    }
}

} // namespace region_test
