#pragma once

#include <tapegraph/core/config.hpp>

#include <cstdint>

/// The layout of an operand's tile in shared memory between TMA, which writes it, and wgmma, which
/// reads it: consecutive rows of 128 bytes of k, whose eight pieces of 16 bytes are permuted by the
/// row index modulo 8 (the 128-byte swizzle of both). It also gives the layout of the product's
/// sums in registers.

namespace tapegraph::cuda::kernels {

inline constexpr int tile_row_bytes = 128;
inline constexpr int tile_alignment = 1024; ///< eight rows, after which the permutation repeats
inline constexpr int product_bytes = 32;    ///< along k, in one product

/// The descriptor of a tile that begins at `address` in shared memory, a multiple of
/// tile_alignment: in units of 16 bytes the address (from bit 0) and the distance from eight rows
/// to the next (from bit 32); the 128-byte swizzle (1 in the highest two bits). The field from bit
/// 16 on is not read where rows along k are swizzled; CuTe writes 1.
TG_HD constexpr std::uint64_t tile_descriptor(std::uint32_t address) {
    return std::uint64_t{1} << 62 | std::uint64_t{tile_alignment / 16} << 32 | std::uint64_t{1} << 16 |
           (address >> 4 & 0x3FFFu);
}
/// The descriptor `rows` rows, a multiple of 8, and `bytes` bytes along k, a multiple of
/// product_bytes, further. The hardware permutes pieces by the bits of the sum, so this is correct
/// within a row, too.
TG_HD constexpr std::uint64_t moved_descriptor(std::uint64_t descriptor, int rows, int bytes) {
    return descriptor + static_cast<std::uint64_t>((rows * tile_row_bytes + bytes) / 16);
}

/// Row and column of a thread's i-th sum in a product of 64 rows; `thread` is the index within its
/// warpgroup.
TG_HD constexpr int row_of_sum(int thread, int i) { return thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8; }
TG_HD constexpr int column_of_sum(int thread, int i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }

} // namespace tapegraph::cuda::kernels
