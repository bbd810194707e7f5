#pragma once

#include <tapegraph/cuda/ops/convolution/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

/// Cuts a filter gradient by warpgroups. Its product has few rows (taps and channels of x) and
/// columns, so k (pixels of dy, and images) is cut into parts, each with a slice of scratch memory
/// for its sums. Where the copies of x and dy do not fit into scratch memory, it is computed in
/// chunks of images, one after the other, which add to the same slices.

namespace tapegraph::cuda {

/// Rows and columns of a block's tile of results.
struct tile_extents {
    int rows, columns;
};
/// Those that library/convolution_sm90.cu has.
inline constexpr tile_extents warpgroup_tiles[]{{256, 160}, {256, 128}, {256, 64}, {128, 208}, {128, 64}};

/// Cycles of a multiprocessor for a step of k, 128 bytes deep: bound by the products, or by the
/// operands, of which a multiprocessor is assumed to get 32 bytes a cycle from the L2 cache.
constexpr int cycles_of_step(const tile_extents& t) {
    return std::max(t.rows * t.columns / 32, (t.rows + t.columns) * 4);
}

struct filter_gradient_cut {
    int tile = 0;            ///< index into the tiles
    std::int64_t images = 0; ///< of a chunk
    std::int64_t parts = 0;  ///< slices
    double cycles = 0;       ///< predicted, on one multiprocessor

    static constexpr std::size_t usual_limit = convolution_workspace_limit - 256; ///< the rest aligns it

    /// The fastest by prediction that fits into `limit` bytes; if none does, one that does not.
    filter_gradient_cut(const convolution_geometry& g, std::size_t element, int multiprocessors,
                        std::span<const tile_extents> tiles, std::size_t limit = usual_limit)
        : g_(g),
          element_(static_cast<std::int64_t>(element)),
          depth_(128 / element_),
          slice_(g.kernel_height * g.kernel_width * g.in_channels * g.out_channels * 4) {
        const auto room = static_cast<std::int64_t>(limit);
        const std::int64_t of_image = (bytes_of_x(depth_) + bytes_of_dy(depth_)) / depth_;
        std::int64_t most = std::min((room - slice_) / of_image, std::int64_t{1} << 20);
        if (most < g.batch) most = std::max(most / depth_, std::int64_t{1}) * depth_; // whole steps
        const std::int64_t fewest = pieces(g.batch, most);
        for (const std::int64_t chunks : {fewest, fewest + 1, 2 * fewest}) {
            const std::int64_t whole_steps = pieces(pieces(g.batch, chunks), depth_) * depth_;
            const std::int64_t of_chunk = std::min({g.batch, most, whole_steps});
            const std::int64_t left = room - bytes_of_x(of_chunk) - bytes_of_dy(of_chunk), fitting = left / slice_;
            if (fitting < 1 && (chunks < 2 * fewest || parts > 0)) continue;
            for (int t = 0; t < static_cast<int>(tiles.size()); ++t)
                consider(t, tiles[static_cast<std::size_t>(t)], of_chunk, multiprocessors,
                         std::max<std::int64_t>(1, fitting));
        }
    }

    /// Elements from one row of images to the next.
    std::int64_t pitch(std::int64_t of_images) const { return pieces(of_images, 16 / element_) * (16 / element_); }
    /// Scratch memory in bytes: the copies of x and of dy, then the slices.
    std::int64_t bytes_of_x(std::int64_t of_images) const {
        return aligned(g_.in_height * g_.in_width * g_.in_channels * pitch(of_images) * element_);
    }
    std::int64_t bytes_of_dy(std::int64_t of_images) const {
        return aligned(g_.out_height * g_.out_width * g_.out_channels * pitch(of_images) * element_);
    }
    std::int64_t bytes() const { return bytes_of_x(images) + bytes_of_dy(images) + parts * slice_; }
    /// Steps of k, and those of a part.
    std::int64_t steps(std::int64_t of_images) const {
        return g_.out_height * g_.out_width * pieces(of_images, depth_);
    }
    std::int64_t steps_of_part(std::int64_t of_images) const { return pieces(steps(of_images), parts); }

private:
    static std::int64_t pieces(std::int64_t whole, std::int64_t piece) { return (whole + piece - 1) / piece; }
    static std::int64_t aligned(std::int64_t bytes) { return pieces(bytes, 256) * 256; }

    // With as many parts as fill one wave of blocks, two, ...: in between some multiprocessors idle.
    void consider(int index, const tile_extents& t, std::int64_t of_images, int multiprocessors, std::int64_t fitting) {
        const std::int64_t m = g_.kernel_height * g_.kernel_width * g_.in_channels, n = g_.out_channels;
        const std::int64_t blocks = pieces(m, t.rows) * pieces(n, t.columns), all = steps(of_images),
                           most = std::min({fitting, all, std::int64_t{65535}}),
                           first = pieces(blocks, multiprocessors);
        for (std::int64_t waves = first; waves < first + 8; ++waves) {
            const std::int64_t wanted = std::clamp<std::int64_t>(waves * multiprocessors / blocks, 1, most);
            const std::int64_t each = pieces(all, wanted), split = pieces(all, each);
            // Chains of 128 steps are added up in memory; a block takes some 2,000 cycles to begin
            // and to end.
            const double block = static_cast<double>(each * cycles_of_step(t)) +
                                 static_cast<double>(pieces(each, 128)) * t.rows * t.columns / 4 + 2000;
            const double launch = 4000, bytes_per_cycle = 15.0 * multiprocessors;
            const double chunk = static_cast<double>(pieces(blocks * split, multiprocessors)) * block + 3 * launch;
            const std::int64_t copied = g_.batch * (g_.in_height * g_.in_width * g_.in_channels +
                                                    g_.out_height * g_.out_width * g_.out_channels);
            const double predicted = static_cast<double>(pieces(g_.batch, of_images)) * chunk + launch +
                                     static_cast<double>(2 * element_ * copied + split * slice_) / bytes_per_cycle;
            if (parts == 0 || predicted < cycles) {
                tile = index, images = of_images, parts = split, cycles = predicted;
            }
            if (wanted == most) return;
        }
    }

    convolution_geometry g_;
    std::int64_t element_, depth_, slice_;
};

} // namespace tapegraph::cuda
