#pragma once

#include <cstdint>
#include <vector>

/// What CuTe's headers say of tensor-core instructions, as numbers: layouts.cpp alone includes them.

namespace cute_layouts {

/// Which element a lane's value is, lane by lane: of a, m + 16 k; of b, n + 8 k; of c, m + 16 n.
struct multiplication {
    int depth;
    std::vector<int> a, b, c;
};
multiplication of_tf32();
multiplication of_bfloat16();
multiplication of_half();

/// Of ldmatrix, which 16 bits a lane's next 16 bits are: 8 s + e, the e-th of the row that lane s points to.
std::vector<int> of_loading(int matrices, bool transposed);

/// Of a warpgroup's products (wgmma): the sums that a thread holds, thread by thread, m + 64 n.
std::vector<int> of_warpgroup_sums(int columns);
/// Where the layout for tiles of 128 rows of 128 swizzled bytes along k puts elements, in bytes, row by row.
std::vector<int> of_swizzled_tile(int element_bytes);
/// The descriptor of the 64 rows from `first` on, and the `part`-th 32 bytes of k, of such a tile at address 0.
std::uint64_t descriptor_of(int element_bytes, int first, int part);

} // namespace cute_layouts
