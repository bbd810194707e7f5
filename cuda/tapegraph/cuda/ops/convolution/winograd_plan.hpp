#pragma once

#include <tapegraph/cuda/ops/convolution/library_convolution.hpp>
#include <tapegraph/cuda/ops/convolution/plan.hpp>
#include <tapegraph/ops/convolution/cpu_algorithm.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

/// Where convolutions of floats are computed by Winograd's algorithm (by_winograd.cuh), in which
/// chunks, and at what predicted time.

namespace tapegraph::cuda::detail {

/// Whether a convolution may be computed so: the CPU's shapes, and nobody asked for other sums: the
/// layer or else the process.
inline bool winograd_may(const convolution_geometry& g) {
    auto& process = cpu::detail::chosen_convolution();
    process.memory_planned.store(true, std::memory_order_relaxed);
    using enum tapegraph::convolution_algorithm;
    const auto asked = g.algorithm == automatic ? process.chosen.load(std::memory_order_relaxed) : g.algorithm;
    return (asked == automatic || asked == winograd) && g.batch > 0 && cpu::detail::winograd_can(g);
}

/// Tiles, chunks of images and scratch memory of a pass.
struct winograd_chunks {
    /// Rows of factors are whole runs of 16 bytes, and matrices odd multiples of 256 apart: a
    /// transform accesses all products' at once, which powers of two would send to the same places of
    /// the memory.
    static constexpr std::int64_t run = 4, matrix = 64;

    std::int64_t side = 0, products = 0;      ///< of a tile
    std::int64_t down = 0, across = 0;        ///< tiles of an image
    std::int64_t in_pitch = 0, out_pitch = 0; ///< channels of a factor
    std::int64_t images = 0;                  ///< of a chunk; 0: none fits
    std::int64_t chunks = 0;
    /// Parts of a filter gradient's sums over a chunk's tiles, each a product of its own, the last one
    /// ended by zeros. Between few channels one product for each element of a tile would leave
    /// multiprocessors idle, and the transform magnifies the errors of long sums: 7.7e-6 of the
    /// result's size with 512 terms and 5 by 5 taps, 1.0e-5 with 1,024.
    std::int64_t parts = 1;

    winograd_chunks(const convolution_geometry& g, convolution_pass pass, std::size_t limit)
        : side(cpu::detail::fast_outputs + g.kernel_width - 1),
          products(side * side),
          down(pieces(g.out_height, cpu::detail::fast_outputs)),
          across(pieces(g.out_width, cpu::detail::fast_outputs)),
          in_pitch(pieces(g.in_channels, run) * run),
          out_pitch(pieces(g.out_channels, run) * run) {
        const std::int64_t image = products * down * across * (in_pitch + out_pitch);
        const auto floats =
            static_cast<std::int64_t>(std::min<std::size_t>(limit, std::size_t{1} << 40) / sizeof(float));
        constexpr auto alignment = static_cast<std::int64_t>(library_convolution::scratch_alignment / sizeof(float));
        const bool sums_tiles = pass == convolution_pass::filter_gradient;
        constexpr std::int64_t enough_blocks = 512, block = 64, fewest_terms = 128, most_terms = 512;
        const std::int64_t each = down * across;
        if (sums_tiles)
            parts = std::clamp<std::int64_t>(enough_blocks /
                                                 (products * pieces(in_pitch, block) * pieces(out_pitch, block)),
                                             1, std::max<std::int64_t>(1, g.batch * each / fewest_terms));
        // Blocks of an input gradient are at most one row and one column of tiles more.
        const std::int64_t counted = most_counted / ((down + 2) * (across + 2) * std::max(in_pitch, out_pitch));
        for (std::int64_t needed = parts;; parts = needed) {
            const std::int64_t apart =
                products * (parts * (filter_stride() + in_pitch + out_pitch) + 4 * matrix); // not the images'
            const std::int64_t fitting = std::min({g.batch, (floats - alignment - apart) / image, counted});
            images = fitting < 1 ? 0 : pieces(g.batch, pieces(g.batch, fitting));
            if (sums_tiles) needed = pieces(images * each, most_terms);
            if (needed <= parts) break; // more parts leave room for fewer images
        }
        if (images > 0) chunks = pieces(g.batch, images);
    }
    /// Floats from one product's matrix to the next.
    std::int64_t filter_stride() const { return spread(in_pitch * out_pitch); }
    std::int64_t in_stride() const { return stride_of(in_pitch); }
    std::int64_t out_stride() const { return stride_of(out_pitch); }
    /// Tiles of a part.
    std::int64_t part() const { return pieces(images * down * across, parts); }
    /// With room to align it.
    std::size_t workspace() const {
        return static_cast<std::size_t>(products * (parts * filter_stride() + in_stride() + out_stride())) *
                   sizeof(float) +
               library_convolution::scratch_alignment - 1;
    }

    static std::int64_t pieces(std::int64_t whole, std::int64_t piece) { return (whole + piece - 1) / piece; }

private:
    static std::int64_t spread(std::int64_t floats) { return (pieces(floats, matrix) | 1) * matrix; }
    // Parts follow each other at equal distances, across products, too.
    std::int64_t stride_of(std::int64_t pitch) const {
        const std::int64_t floats = parts * part() * pitch;
        return parts > 1 ? floats : spread(floats);
    }
};

/// The predicted cycles of a pass: products as library_cost counts them, what transforms and
/// products write and read past the caches, and launches.
inline double winograd_cycles(const convolution_geometry& g, convolution_pass pass, const winograd_chunks& c,
                              int multiprocessors) {
    const machine_balance balance = machine_balance::of(sizeof(float), false);
    product_extents e(g, pass);
    e.m = c.images * c.down * c.across, e.n = c.out_pitch, e.k = c.in_pitch;
    if (pass == convolution_pass::input_gradient) std::swap(e.n, e.k);
    if (pass == convolution_pass::filter_gradient) e.m = c.in_pitch, e.k = c.part();
    double least = 0;
    for (const int side : {128, 64}) {
        const product_tile tile{side, side, 8, 2 * side, 0.75, 1, false};
        const double cost = product_cost(tile, e, c.products * c.parts, 1, sizeof(float), false, multiprocessors);
        if (least == 0 || cost < least) least = cost;
    }
    const double images = static_cast<double>(g.in_height * g.in_width * g.in_channels) +
                          static_cast<double>(g.out_height * g.out_width * g.out_channels);
    const double factors = static_cast<double>(c.products * c.down * c.across * (c.in_pitch + c.out_pitch));
    const double floats =
        static_cast<double>(g.batch) * (images + 2 * factors) +
        static_cast<double>(c.products * c.parts * c.filter_stride() *
                            (pass == convolution_pass::filter_gradient ? 2 * c.chunks : 1 + c.chunks));
    return least * static_cast<double>(c.chunks) / balance.per_cycle + static_cast<double>(3 * c.chunks + 1) * 4000 +
           floats * sizeof(float) * balance.per_byte / balance.per_cycle / multiprocessors;
}

} // namespace tapegraph::cuda::detail
