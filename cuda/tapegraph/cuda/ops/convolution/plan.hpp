#pragma once

#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/ops/convolution/geometry.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

/// Describes which kernel computes a pass of a convolution, in which tiles and how many parts, with
/// the predicted cost of each. choose.hpp chooses.

namespace tapegraph::cuda {

enum class convolution_pass { forward, input_gradient, filter_gradient };

enum class convolution_algorithm {
    multiply_adds,             ///< implicit_gemm
    tensor_cores,              ///< tensor_gemm
    few_channels,              ///< images of 1, 3 or 4 channels (kernels/few_channels.cuh)
    direct,                    ///< one thread per result: groups too narrow for a tile (kernels/direct_convolution.cuh)
    product,                   ///< a library's product, of pixels or of written-out windows (by_product.cuh)
    warpgroups,                ///< library_convolution.hpp: where it is linked, on compute capability 9.0
    few_channels_tensor_cores, ///< few_channels in TF32 (kernels/few_channels_tensor.cuh)
    winograd                   ///< transforms of tiles around a library's products, of floats (by_winograd.cuh)
};
/// Algorithms that compute all of a pass themselves, in scratch memory of their own: no partial
/// sums are added up after them.
constexpr bool is_whole(convolution_algorithm a) {
    return a == convolution_algorithm::product || a == convolution_algorithm::warpgroups ||
           a == convolution_algorithm::winograd;
}

/// The properties of a device that a choice depends on.
struct convolution_device {
    int multiprocessors = 132;
    bool tensor_cores = true; ///< compute capability 8.0 or later
    int number = 0;           ///< index among the process's devices: measurements hold for one device
};

/// The tiles that kernels exist for. `rate` is the fraction of the peak (of mma.sync on tensor
/// cores) that they reached on an H200, as medians of some forty passes (benchmarks/gpu_layers.cu);
/// the cost model is then within a fifth for most. The first tile of a list takes everything; the
/// others read at least `vector` float elements at once, and support tf32x3 if `exact`.
struct product_tile {
    int rows, columns, depth, threads;
    double rate;
    int vector;
    bool exact;
};
inline constexpr product_tile multiply_add_tiles[]{
    {64, 64, 16, 128, 0.46, 1, false}, {128, 128, 8, 256, 0.6, 4, false}, {64, 160, 8, 128, 0.57, 2, false}};
inline constexpr product_tile tensor_tiles[]{{64, 64, 16, 128, 0.24, 1, true},
                                             {64, 80, 16, 128, 0.3, 2, false},
                                             {128, 160, 16, 256, 0.44, 2, false},
                                             {128, 104, 16, 128, 0.53, 4, false}};
/// The time of 3xTF32 relative to TF32 in the same tile: less than threefold, because the loop does
/// more than products.
inline constexpr double exact_slowness = 1.27;

/// The scratch memory that a pass may ask for: a shape that gets less has fewer parts, which is
/// slower but never wrong.
inline constexpr std::size_t convolution_workspace_limit = std::size_t{256} << 20;

struct convolution_plan {
    convolution_algorithm algorithm = convolution_algorithm::multiply_adds;
    int tile = 0;   ///< index into the algorithm's tiles
    int vector = 1; ///< elements read at once; fewer if addresses are not aligned to it
    int splits = 1; ///< parts of the sums, each with its own slice of scratch memory, added in order afterwards
    bool batch_innermost = false;
    bool exact = false; ///< tf32x3
    std::size_t workspace = 0;
};

namespace detail {

/// The number of pairs of an output and a tap that read an input rather than padding, along one
/// axis.
inline std::int64_t meetings(std::int64_t in, std::int64_t out, std::int64_t taps, std::int64_t stride,
                             std::int64_t pad, std::int64_t dilation) {
    std::int64_t count = 0;
    for (std::int64_t u = 0; u < taps; ++u) {
        const std::int64_t before = pad - u * dilation; // outputs i with 0 <= i * stride - before < in
        const std::int64_t first = before <= 0 ? 0 : (before + stride - 1) / stride;
        const std::int64_t last = in - 1 + before < 0 ? -1 : std::min(out - 1, (in - 1 + before) / stride);
        count += std::max<std::int64_t>(0, last - first + 1);
    }
    return count;
}

/// The fraction of the products of an implicit GEMM that do not multiply padding.
inline double useful_part(const convolution_geometry& g, convolution_pass pass) {
    const bool gradient = pass == convolution_pass::input_gradient;
    const double all = static_cast<double>((gradient ? g.in_height : g.out_height) * g.kernel_height) *
                       static_cast<double>((gradient ? g.in_width : g.out_width) * g.kernel_width);
    if (all == 0) return 1;
    return static_cast<double>(
               meetings(g.in_height, g.out_height, g.kernel_height, g.stride_height, g.pad_top, g.dilation_height)) *
           static_cast<double>(
               meetings(g.in_width, g.out_width, g.kernel_width, g.stride_width, g.pad_left, g.dilation_width)) /
           all;
}

/// The extents of the product.
struct product_extents {
    std::int64_t m = 0, n = 0, k = 0;
    product_extents(const convolution_geometry& g, convolution_pass pass) {
        const std::int64_t taps = g.kernel_height * g.kernel_width;
        switch (pass) {
        case convolution_pass::forward:
            m = g.batch * g.out_height * g.out_width, n = g.group_out(), k = taps * g.group_in();
            break;
        case convolution_pass::input_gradient:
            m = g.batch * g.in_height * g.in_width, n = g.group_in(), k = taps * g.group_out();
            break;
        case convolution_pass::filter_gradient:
            m = taps * g.group_in(), n = g.group_out(), k = g.batch * g.out_height * g.out_width;
            break;
        }
    }
};

/// The largest number of splits: limited by the grid, by the scratch memory, and by the work that
/// each needs.
inline std::int64_t most_splits(std::int64_t bytes, std::int64_t work, std::int64_t groups, std::size_t limit) {
    const std::int64_t fitting = bytes > 0 ? static_cast<std::int64_t>(limit) / bytes : 1;
    return std::max<std::int64_t>(
        1, std::min({fitting, work, std::int64_t{65535} / std::max<std::int64_t>(1, groups), std::int64_t{1024}}));
}

/// Operations of a multiprocessor per cycle (float on cores and on tensor cores, double), to weigh
/// memory traffic against arithmetic.
struct machine_balance {
    double per_cycle, per_byte;
    static machine_balance of(std::size_t element, bool tensor) {
        constexpr double bytes_per_cycle = 15; // H100: 3.35 TB/s, 132 multiprocessors, 1.7 GHz
        const double sums = tensor ? 512 : element == 4 ? 128 : 64;
        return {sums, sums / bytes_per_cycle};
    }
};

/// The predicted time of a product on one multiprocessor, in multiply-adds.
inline double product_cost(const product_tile& t, const product_extents& e, std::int64_t groups, std::int64_t splits,
                           std::size_t element, bool tensor, int multiprocessors) {
    const auto pieces = [](std::int64_t whole, std::int64_t piece) { return (whole + piece - 1) / piece; };
    const std::int64_t blocks = pieces(e.m, t.rows) * pieces(e.n, t.columns) * groups * splits;
    const auto each = static_cast<double>(pieces(blocks, multiprocessors));
    const auto depth = static_cast<double>(pieces(pieces(e.k, t.depth), splits) * t.depth + 48); // 48: begin and end
    const double busy = std::min(1.0, each * t.threads / 256); // fewer warps do not hide the latencies
    const machine_balance balance = machine_balance::of(element, tensor);
    double cost = each * t.rows * t.columns * depth / (t.rate * busy);
    if (splits > 1)
        cost += 4000 * balance.per_cycle + // a launch
                2 * static_cast<double>(splits * e.m * e.n * groups) * static_cast<double>(element) * balance.per_byte /
                    multiprocessors;
    return cost;
}

/// The largest number that kernels count in 32 bits.
inline constexpr std::int64_t most_counted = 0x7FFFFFFF;

/// Whether each output depends on the one pixel at its position: then the images are their own
/// windows.
inline bool is_pixelwise(const convolution_geometry& g) {
    return g.groups == 1 && g.kernel_height * g.kernel_width == 1 && g.stride_height == 1 && g.stride_width == 1 &&
           g.pad_top == 0 && g.pad_left == 0 && g.in_height == g.out_height && g.in_width == g.out_width;
}
/// The number of elements from one written-out window to the next. Products read 16 bytes at once
/// where rows begin at multiples of 16 bytes, which rows of 150 channels do not.
inline std::int64_t window_pitch(const convolution_geometry& g, std::size_t element) {
    const std::int64_t depth = g.kernel_height * g.kernel_width * g.in_channels;
    const auto wide = static_cast<std::int64_t>(16 / element);
    return is_pixelwise(g) ? depth : (depth + wide - 1) / wide * wide;
}
/// The number of images in a chunk of convolution_by_product: at least one, even where its windows
/// need more than the limit.
inline std::int64_t images_of_chunk(const convolution_geometry& g, std::size_t element, std::size_t limit) {
    const std::int64_t in = g.in_height * g.in_width, out = g.out_height * g.out_width;
    const std::int64_t bytes = out * window_pitch(g, element) * static_cast<std::int64_t>(element);
    const std::int64_t fitting =
        is_pixelwise(g) ? g.batch : static_cast<std::int64_t>(limit) / std::max<std::int64_t>(1, bytes);
    const std::int64_t counted = most_counted / std::max<std::int64_t>({1, in, out});
    return std::max<std::int64_t>(1, std::min({g.batch, fitting, counted}));
}
inline std::size_t chunk_bytes(const convolution_geometry& g, std::size_t element, std::size_t limit) {
    if (is_pixelwise(g)) return 0;
    return static_cast<std::size_t>(images_of_chunk(g, element, limit) * g.out_height * g.out_width *
                                    window_pitch(g, element)) *
           element;
}

/// The predicted time of convolution_by_product on one multiprocessor, in multiply-adds. On an H200
/// its passes took 0.93 to 1.34 times that. Windows are written once and read once, past the
/// caches; a warp writes one, for which narrow ones (27 floats of conv1) took 70 cycles.
inline double library_cost(const convolution_geometry& g, convolution_pass pass, std::size_t element, bool tensor,
                           int multiprocessors, std::size_t limit) {
    const machine_balance balance = machine_balance::of(element, tensor);
    const std::int64_t pixels = g.batch * g.out_height * g.out_width, pitch = window_pitch(g, element);
    product_extents e(g, pass == convolution_pass::filter_gradient ? pass : convolution_pass::forward);
    if (pass == convolution_pass::input_gradient) std::swap(e.n, e.k); // gives windows, which are then added up
    const std::int64_t most = most_splits(e.m * e.n * static_cast<std::int64_t>(element), e.k / 128, 1,
                                          std::size_t{32} << 20); // in scratch memory of its own
    double least = 0;
    for (const int side : {128, 64}) {
        const product_tile tile{side, side, 32, 2 * side, tensor ? 0.65 : 0.75, 1, false};
        for (std::int64_t splits = 1; splits <= most; splits += 1 + splits / 8) {
            const double cost = product_cost(tile, e, 1, splits, element, tensor, multiprocessors);
            if (least == 0 || cost < least) least = cost;
        }
    }
    const std::int64_t images = images_of_chunk(g, element, limit), chunks = (g.batch + images - 1) / images;
    const double window = std::max(2 * static_cast<double>(pitch) * static_cast<double>(element) * balance.per_byte,
                                   70 * balance.per_cycle);
    return least + static_cast<double>(2 * chunks - 1) * 4000 * balance.per_cycle + // launches
           static_cast<double>(pixels) * window / multiprocessors;
}

/// The predicted time of a filter gradient by few_channels on one multiprocessor, in multiply-adds.
/// On an H200 it took 28 us plus its products at 0.08 of the peak of float cores. (Forward passes
/// reach 0.22, which no other algorithm surpasses.)
inline double few_channels_gradient_cost(const product_extents& e, int multiprocessors) {
    return 50000 * machine_balance::of(sizeof(float), false).per_cycle +
           static_cast<double>(e.m) * static_cast<double>(e.n) * static_cast<double>(e.k) / (0.08 * multiprocessors);
}

/// A block of the kernels on tensor cores (kernels/few_channels_tensor.cuh): 8 warps, of outputs 16
/// pixels each. Its shared memory has rows of `columns` floats, 8 longer than whole groups of 32 banks.
struct few_channels_tensor_tile {
    static constexpr int warps = 8, pixels_of_warp = 16, gradient_pixels = 64;
    static constexpr int piece = 64; ///< columns of results that are stored at once

    static constexpr int pitch(int columns) { return columns + 8; }
    static constexpr int rows_of(int pairs) { return (pairs + 7) / 8 * 8; }
    static constexpr int pixels(bool forward) { return forward ? warps * pixels_of_warp : gradient_pixels; }
    /// Floats of shared memory, for a halo of so many.
    static constexpr std::int64_t shared(bool forward, std::int64_t halo, int pairs, int columns) {
        if (forward) return 2 * halo + rows_of(pairs) * (pitch(columns) + 1) + pixels(true) * pitch(piece);
        return 2 * (halo + gradient_pixels * pitch(columns)) + gradient_pixels;
    }
};

/// How few_channels kernels tile a pass, if the tile fits into their shared memory.
struct few_channels_tiling {
    bool valid = false;
    int sums = 0;                      ///< channels per thread
    int warps_across = 0, columns = 0; ///< of a block's channels
    int tile_log = 0, pixels = 0;
    std::int64_t tiles = 0; ///< of all images
    std::int64_t halo = 0;  ///< elements of x that a tile reads, rounded up to four
    std::size_t shared = 0; ///< bytes

    few_channels_tiling() = default;
    /// `pooled`: tiles consist of whole windows of 2 by 2 pixels.
    few_channels_tiling(const convolution_geometry& g, convolution_pass pass, std::size_t element,
                        bool pooled = false) {
        const bool shallow = g.in_channels == 1 || g.in_channels == 3 || g.in_channels == 4;
        if (pass == convolution_pass::input_gradient || g.groups != 1 || !shallow) return;
        double least = 0;
        // With 10 channels a thread's arithmetic outweighs its reads of shared memory; with 4 it
        // does not.
        for (auto [each, warps, slowness] : {std::tuple{4, 1, 1.3}, {4, 2, 1.3}, {10, 1, 1.0}, {10, 2, 1.0}}) {
            if (element != sizeof(float) && each != 4) continue;
            few_channels_tiling t;
            t.sums = each, t.warps_across = warps, t.columns = warps * 8 * each;
            t.pixels = pass == convolution_pass::forward ? 32 * (8 / warps) : 64;
            t.cut(g, pass, element, pooled);
            const double cost =
                slowness * static_cast<double>((g.out_channels + t.columns - 1) / t.columns * t.columns);
            if (t.shared <= 48 * 1024 && (!valid || cost <= least)) *this = t, valid = true, least = cost;
        }
    }
    /// For the kernels on tensor cores, which take floats alone: two blocks share a multiprocessor.
    static few_channels_tiling on_tensor_cores(const convolution_geometry& g, convolution_pass pass,
                                               bool pooled = false) {
        using shape = few_channels_tensor_tile;
        few_channels_tiling least;
        if (!few_channels_tiling(g, pass, sizeof(float), pooled).valid) return least;
        const bool forward = pass == convolution_pass::forward;
        const auto pairs = static_cast<int>(g.kernel_height * g.kernel_width * g.in_channels);
        for (const int columns : {160, 64}) {
            few_channels_tiling t;
            t.columns = columns;
            t.pixels = shape::pixels(forward);
            t.cut(g, pass, sizeof(float), pooled);
            t.shared = static_cast<std::size_t>(shape::shared(forward, t.halo, pairs, columns)) * sizeof(float);
            t.valid = t.shared <= 98 * 1024; // what every device from compute capability 8.0 on has
            const auto padded = [&](int width) { return (g.out_channels + width - 1) / width * width; };
            if (t.valid && (!least.valid || padded(columns) < padded(least.columns))) least = t;
        }
        return least;
    }

private:
    // Chooses the width that leaves the fewest pixels idle, and among those the smallest halo.
    void cut(const convolution_geometry& g, convolution_pass pass, std::size_t element, bool pooled) {
        std::int64_t best_halo = 0;
        for (int log = pooled ? 1 : 0; pixels >> log > (pooled ? 1 : 0); ++log) {
            const std::int64_t across = std::int64_t{1} << log, down = pixels >> log;
            const std::int64_t count =
                g.batch * ((g.out_width + across - 1) / across) * ((g.out_height + down - 1) / down);
            const std::int64_t halo =
                ((down - 1) * g.stride_height + g.span_height()) * ((across - 1) * g.stride_width + g.span_width());
            if (best_halo != 0 && (count > tiles || (count == tiles && halo >= best_halo))) continue;
            best_halo = halo, tiles = count, tile_log = log;
        }
        const std::int64_t rows =
            pass == convolution_pass::forward ? g.kernel_height * g.kernel_width * g.in_channels : pixels;
        halo = (best_halo * g.in_channels + 3) / 4 * 4;
        shared = static_cast<std::size_t>(halo + rows * columns) * element;
    }
};

} // namespace detail

} // namespace tapegraph::cuda
