#include "layouts.hpp"

#include <simt/instructions.hpp>
#include <simt/synchronization.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <vector>

/// The executor's twins of tensor-core instructions against CuTe's layouts, which are NVIDIA's own: both were written from the PTX
/// manual, but not by the same people.

namespace cute_twins_test {

namespace tg = tapegraph;

namespace {

struct registers {
    std::uint32_t a[4], b[2];
    float d[4];
};
enum class type { tf32, bf16, f16 };

template <type T>
__global__ void multiply(registers* of) {
    registers& mine = of[threadIdx.x];
    if constexpr (T == type::tf32)
        tg::cuda::kernels::multiply_tf32(mine.d, mine.a, mine.b);
    else if constexpr (T == type::bf16)
        tg::cuda::kernels::multiply_pairs<tg::bfloat16>(mine.d, mine.a, mine.b);
    else
        tg::cuda::kernels::multiply_pairs<tg::half>(mine.d, mine.a, mine.b);
}

template <int Count, bool Transposed>
__global__ void load(const std::uint16_t* rows, std::uint32_t* to) {
    alignas(16) __shared__ std::uint16_t shared[32 * 8];
    const int lane = static_cast<int>(threadIdx.x);
    for (int i = 0; i < 8; ++i) shared[8 * lane + i] = rows[8 * lane + i];
    __syncthreads();
    tg::cuda::kernels::load_matrices<Count, Transposed>(to + Count * lane, shared + 8 * lane);
}

// Small numbers, which every type has exactly, and whose products and sums float has.
int left(int m, int k) { return (7 * m + 3 * k) % 13 - 6; }
int right(int n, int k) { return (5 * n + 11 * k) % 9 - 4; }

std::uint32_t bits_of(type t, int number) {
    if (t == type::tf32) return std::bit_cast<std::uint32_t>(static_cast<float>(number));
    if (t == type::bf16) return std::bit_cast<std::uint16_t>(tg::bfloat16(static_cast<float>(number)));
    return std::bit_cast<std::uint16_t>(tg::half(static_cast<float>(number)));
}

template <type T>
void check(const cute_layouts::multiplication& layout) {
    constexpr int each = T == type::tf32 ? 1 : 2; // values in a register
    const std::size_t of_a = 4 * each, of_b = 2 * each;
    REQUIRE(layout.a.size() == 32 * of_a);
    REQUIRE(layout.b.size() == 32 * of_b);
    REQUIRE(layout.c.size() == 32 * 4);
    std::vector<registers> all(32);
    for (std::size_t lane = 0; lane < 32; ++lane) {
        for (std::size_t v = 0; v < of_a; ++v) {
            const int at = layout.a[lane * of_a + v];
            all[lane].a[v / each] |= bits_of(T, left(at % 16, at / 16)) << v % each * 16;
        }
        for (std::size_t v = 0; v < of_b; ++v) {
            const int at = layout.b[lane * of_b + v];
            all[lane].b[v / each] |= bits_of(T, right(at % 8, at / 8)) << v % each * 16;
        }
        for (std::size_t v = 0; v < 4; ++v) all[lane].d[v] = static_cast<float>(lane * 4 + v);
    }
    simt::launch({1, 32}, multiply<T>, all.data());
    for (std::size_t lane = 0; lane < 32; ++lane)
        for (std::size_t v = 0; v < 4; ++v) {
            const int at = layout.c[lane * 4 + v];
            int sum = static_cast<int>(lane * 4 + v);
            for (int k = 0; k < layout.depth; ++k) sum += left(at % 16, k) * right(at / 16, k);
            CAPTURE(lane);
            CAPTURE(v);
            CHECK(all[lane].d[v] == static_cast<float>(sum));
        }
}

template <int Count, bool Transposed>
void check_load() {
    std::vector<std::uint16_t> rows(32 * 8);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint16_t>(i);
    std::vector<std::uint32_t> found(32 * Count);
    simt::launch({1, 32}, load<Count, Transposed>, rows.data(), found.data());
    const std::vector<int> expected = cute_layouts::of_loading(Count, Transposed);
    REQUIRE(expected.size() == 2 * found.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        CHECK(static_cast<int>(found[i / 2] >> i % 2 * 16 & 0xFFFF) == expected[i]);
    }
}

} // namespace

TEST_CASE("fragments of tensor cores are CuTe's") {
    check<type::tf32>(cute_layouts::of_tf32());
    check<type::bf16>(cute_layouts::of_bfloat16());
    check<type::f16>(cute_layouts::of_half());
}

TEST_CASE("what ldmatrix gives each lane is what CuTe says") {
    check_load<4, false>();
    check_load<4, true>();
    check_load<2, false>();
    check_load<2, true>();
}

} // namespace cute_twins_test
