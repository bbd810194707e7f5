#pragma once

#include <tapegraph/core/config.hpp>

#include <cstdint>

/// How an operand's tile lies in shared memory between TMA, which writes it, and a warpgroup's product (wgmma), which reads it: rows of
/// 128 bytes of k, one after the other, whose eight pieces of 16 bytes are exchanged by the row's number modulo 8 (the 128-byte
/// swizzle of both). And where the product leaves its sums.

namespace tapegraph::cuda::kernels {

inline constexpr int tile_row_bytes = 128;
inline constexpr int tile_alignment = 1024; ///< eight rows, after which the exchange repeats
inline constexpr int product_bytes = 32;    ///< of k, in one product

/// What a product is told of the tile that begins at `address` in shared memory, a multiple of tile_alignment: in units of 16 bytes the
/// address (from bit 0) and the way from eight rows to the next (from bit 32); the 128-byte swizzle (1 in the highest two bits). What
/// stands from bit 16 on is not read where rows along k are swizzled; CuTe writes 1.
TG_HD constexpr std::uint64_t tile_descriptor(std::uint32_t address) {
    return std::uint64_t{1} << 62 | std::uint64_t{tile_alignment / 16} << 32 | std::uint64_t{1} << 16 |
           (address >> 4 & 0x3FFFu);
}
/// The same of what begins `rows` rows, a multiple of 8, and `bytes` bytes along k, a multiple of product_bytes, further. The hardware
/// exchanges pieces by the bits of the sum, so it is right within a row, too.
TG_HD constexpr std::uint64_t moved_descriptor(std::uint64_t descriptor, int rows, int bytes) {
    return descriptor + static_cast<std::uint64_t>((rows * tile_row_bytes + bytes) / 16);
}

/// Row and column of a thread's i-th sum in a product of 64 rows, the thread counted within its warpgroup.
TG_HD constexpr int row_of_sum(int thread, int i) { return thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8; }
TG_HD constexpr int column_of_sum(int thread, int i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }

} // namespace tapegraph::cuda::kernels
