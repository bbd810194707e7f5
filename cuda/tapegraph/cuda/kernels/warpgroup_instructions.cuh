#pragma once

#include <tapegraph/core/half.hpp>
#include <tapegraph/cuda/kernels/platform.cuh>

#include <cstdint>
#include <utility>

#ifdef TG_SIMT
#include <simt/warpgroup_instructions.hpp>
#else
#include <cute/arch/copy_sm90_tma.hpp>
#include <cute/arch/mma_sm90_gmma.hpp>
#include <cute/arch/mma_sm90_gmma_ext.hpp>
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>
#endif

/// Wraps CuTe's atoms for warpgroup products: tiles that TMA fetches, barriers in shared memory
/// that count them, the products. For sm_90a only. Tests on the CPU supply twins
/// (simt/warpgroup_instructions.hpp).

#ifndef TG_SIMT
namespace tapegraph::cuda::kernels {

/// TMA's description of a tensor; made by ops/convolution/tensor_maps.cuh.
using tensor_map = CUtensorMap;
/// A barrier whose phases end when the given number of threads and all expected bytes have arrived.
/// In shared memory.
using tile_barrier = std::uint64_t;

__device__ __forceinline__ void begin_barrier(tile_barrier* b, int arrivals) {
    cutlass::arch::ClusterBarrier::init(b, static_cast<std::uint32_t>(arrivals));
}
/// Called by the thread that initialised all barriers, afterwards: makes them visible to TMA, too.
__device__ __forceinline__ void show_barriers() { cutlass::arch::fence_barrier_init(); }
/// Arrives, and makes the phase wait for bytes that are fetched.
__device__ __forceinline__ void expect_bytes_of(tile_barrier* b, int bytes) {
    cutlass::arch::ClusterTransactionBarrier::arrive_and_expect_tx(b, static_cast<std::uint32_t>(bytes));
}
__device__ __forceinline__ void arrive_at(tile_barrier* b) { cutlass::arch::ClusterBarrier::arrive(b); }
/// Waits for the end of a phase: `parity` is 0 for the first, then 1, 0, ...; 1 before the first
/// does not wait.
__device__ __forceinline__ void wait_for_phase(tile_barrier* b, std::uint32_t parity) {
    cutlass::arch::ClusterBarrier::wait(b, parity);
}

/// Fetches as many pixels as the map says, from a position of its box on, each `offset` further
/// (ops/convolution/im2col_box.hpp).
__device__ __forceinline__ void fetch_pixels(const tensor_map& map, tile_barrier* b, void* to, int channel, int column,
                                             int row, int image, int offset_column, int offset_row) {
    cute::SM90_TMA_LOAD_IM2COL_4D::copy(&map, b, to, channel, column, row, image,
                                        static_cast<std::uint16_t>(offset_column),
                                        static_cast<std::uint16_t>(offset_row));
}
/// The same from images of one line (map_of_images::flat).
__device__ __forceinline__ void fetch_line(const tensor_map& map, tile_barrier* b, void* to, int channel, int column,
                                           int image, int offset) {
    cute::SM90_TMA_LOAD_IM2COL_3D::copy(&map, b, to, channel, column, image, static_cast<std::uint16_t>(offset));
}
/// Fetches rows of a filter's tap. Kept: all blocks need them, so the cache keeps them longer.
template <bool Kept>
__device__ __forceinline__ void fetch_filters(const tensor_map& map, tile_barrier* b, void* to, int channel, int row,
                                              int tap) {
    using hint = cute::TMA::CacheHintSm90;
    constexpr auto how = static_cast<std::uint64_t>(Kept ? hint::EVICT_LAST : hint::EVICT_NORMAL);
    cute::SM90_TMA_LOAD_3D::copy(&map, b, how, to, channel, row, tap);
}
__device__ __forceinline__ void prefetch(const tensor_map& map) { cute::prefetch_tma_descriptor(&map); }
__device__ __forceinline__ std::uint32_t shared_address(const void* at) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}

/// Sets the number of registers per thread of a warpgroup from here on: releases the rest, or waits
/// until enough are released.
template <int Registers>
__device__ __forceinline__ void leave_registers() {
    cutlass::arch::warpgroup_reg_dealloc<Registers>();
}
template <int Registers>
__device__ __forceinline__ void take_registers() {
    cutlass::arch::warpgroup_reg_alloc<Registers>();
}

/// Products are asynchronous. Their sums must stay in registers from before the first until the
/// wait for the last.
__device__ __forceinline__ void begin_products() { cute::warpgroup_arrive(); }
__device__ __forceinline__ void commit_products() { cute::warpgroup_commit_batch(); }
/// Waits until at most Groups of the committed groups are pending.
template <int Groups>
__device__ __forceinline__ void wait_products() {
    cute::warpgroup_wait<Groups>();
}
__device__ __forceinline__ void hold(float& sum) { cute::warpgroup_fence_operand(sum); }

template <class Atom, int Columns>
struct product_of_atom {
    /// sum += a b of a warpgroup: 64 rows of a, Columns of b, product_bytes of k, both by
    /// descriptor (swizzled_tile.hpp).
    __device__ static void add(std::uint64_t a, std::uint64_t b, float (&sum)[Columns / 2]) {
        add(a, b, sum, std::make_integer_sequence<int, Columns / 2>());
    }

private:
    template <int... I>
    __device__ static void add(std::uint64_t a, std::uint64_t b, float (&sum)[Columns / 2],
                               std::integer_sequence<int, I...>) {
        Atom::fma(a, b, sum[I]...);
    }
};
/// Products of float elements, read as TF32, bfloat16 or half.
template <class T, int Columns>
struct warpgroup_product;

#define TG_WARPGROUP_PRODUCTS(COLUMNS)                                                                                 \
    template <>                                                                                                        \
    struct warpgroup_product<float, COLUMNS>                                                                           \
        : product_of_atom<cute::SM90::GMMA::MMA_64x##COLUMNS##x8_F32TF32TF32_SS_TN<>, COLUMNS> {};                     \
    template <>                                                                                                        \
    struct warpgroup_product<bfloat16, COLUMNS>                                                                        \
        : product_of_atom<cute::SM90::GMMA::MMA_64x##COLUMNS##x16_F32BF16BF16_SS<cute::SM90::GMMA::Major::K,           \
                                                                                 cute::SM90::GMMA::Major::K>,          \
                          COLUMNS> {};                                                                                 \
    template <>                                                                                                        \
    struct warpgroup_product<half, COLUMNS>                                                                            \
        : product_of_atom<cute::SM90::GMMA::MMA_64x##COLUMNS##x16_F32F16F16_SS<cute::SM90::GMMA::Major::K,             \
                                                                               cute::SM90::GMMA::Major::K>,            \
                          COLUMNS> {};
TG_WARPGROUP_PRODUCTS(64)
TG_WARPGROUP_PRODUCTS(128)
TG_WARPGROUP_PRODUCTS(160)
TG_WARPGROUP_PRODUCTS(208)
#undef TG_WARPGROUP_PRODUCTS

} // namespace tapegraph::cuda::kernels
#endif
