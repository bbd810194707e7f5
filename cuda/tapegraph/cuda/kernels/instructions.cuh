#pragma once

#include <tapegraph/core/half.hpp>
#include <tapegraph/cuda/kernels/platform.cuh>

#include <cstdint>
#include <type_traits>

/// Wraps instructions that CUDA C++ does not expose: asynchronous copies and matrix products of a
/// warp (both sm_80 and later). Tests on the CPU supply twins (simt/instructions.hpp).

#ifndef TG_SIMT
namespace tapegraph::cuda::kernels {

/// Starts a copy of Bytes (4, 8 or 16; both addresses aligned to them) from global to shared
/// memory. With `there` false nothing is read, and zeros are written.
template <int Bytes>
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool there) {
#if __CUDA_ARCH__ >= 800
    const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    const int size = there ? Bytes : 0;
    if constexpr (Bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(size) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(Bytes), "r"(size)
                     : "memory");
#endif
}
/// Ends a group of copies.
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits until at most Groups of this thread's groups are pending.
template <int Groups>
__device__ __forceinline__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
#endif
}

/// Rounds a float to the 10 bits of TF32, to nearest (ties to even from sm_90 on, which has one
/// instruction for that, and away from zero before). Use the result in products only: PTX does not
/// specify the other 13 bits.
__device__ __forceinline__ std::uint32_t to_tf32(float x) {
    std::uint32_t r = 0;
#if __CUDA_ARCH__ >= 900
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
#elif __CUDA_ARCH__ >= 800
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
#endif
    return r;
}

/// Loads Count (2 or 4) matrices of 8 rows of 16 bytes from shared memory: lane 8 i + j gives the
/// address of row j of matrix i. Of each matrix a lane receives 4 bytes: those at 4 (lane % 4) of
/// row lane / 4 or, with Transposed, of 16-bit elements those in column lane / 4 of rows 2 (lane %
/// 4) and the next.
template <int Count, bool Transposed>
__device__ __forceinline__ void load_matrices(std::uint32_t* to, const void* shared) {
#if __CUDA_ARCH__ >= 750
    const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    if constexpr (Count == 4 && !Transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(at)
                     : "memory");
    else if constexpr (Count == 4)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(at)
                     : "memory");
    else if constexpr (!Transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                     : "=r"(to[0]), "=r"(to[1])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                     : "=r"(to[0]), "=r"(to[1])
                     : "r"(at)
                     : "memory");
#endif
}

/// d += a b for a warp: a 16 by 8, b 8 by 8, d 16 by 8. With g = lane / 4 and t = lane % 4 a lane holds
/// a (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4); b (t, g), (t + 4, g); d (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
__device__ __forceinline__ void multiply_tf32(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/// d += a b for a warp, of 16-bit elements: a 16 by 16, b 16 by 8, d 16 by 8. A lane holds pairs, the lower one first:
/// a (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8) and what follows each along the row; b (2t, g), (2t + 8, g) and what
/// follows down the column; d as above.
template <class T>
__device__ __forceinline__ void multiply_pairs(float (&d)[4], const std::uint32_t (&a)[4],
                                               const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    if constexpr (std::is_same_v<T, bfloat16>)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

} // namespace tapegraph::cuda::kernels
#endif
