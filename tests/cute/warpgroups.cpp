#include "layouts.hpp"

#include <tapegraph/cuda/kernels/swizzled_tile.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

/// kernels/swizzled_tile.hpp, which kernels and their twins share, against CuTe's layouts.

namespace warpgroups_test {

using namespace tapegraph::cuda::kernels;

TEST_CASE("cute: a warpgroup's sums") {
    for (const int columns : {64, 208}) {
        std::vector<int> ours;
        for (int thread = 0; thread < 128; ++thread)
            for (int i = 0; i < columns / 2; ++i) ours.push_back(row_of_sum(thread, i) + 64 * column_of_sum(thread, i));
        CHECK(ours == cute_layouts::of_warpgroup_sums(columns));
    }
}

// TMA's exchange: bits 7 to 9 of an address are added to bits 4 to 6, without carry.
TEST_CASE("cute: a tile as TMA writes it is the tile that a product reads") {
    for (const int element : {2, 4}) {
        std::vector<int> ours;
        for (int row = 0; row < 128; ++row)
            for (int k = 0; k < tile_row_bytes; k += element) {
                const int address = row * tile_row_bytes + k;
                ours.push_back(address ^ (address >> 7 & 7) << 4);
            }
        CHECK(ours == cute_layouts::of_swizzled_tile(element));
    }
}

TEST_CASE("cute: descriptors of tiles and of their parts") {
    for (const int element : {2, 4})
        for (const int first : {0, 64})
            for (int part = 0; part < tile_row_bytes / product_bytes; ++part)
                CHECK(moved_descriptor(tile_descriptor(0), first, part * product_bytes) ==
                      cute_layouts::descriptor_of(element, first, part));
    CHECK((tile_descriptor(0x9400) & 0x3FFF) == 0x940);
}

} // namespace warpgroups_test
