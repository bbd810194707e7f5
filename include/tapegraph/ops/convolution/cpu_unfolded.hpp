#pragma once

#include <tapegraph/cpu/gemm.hpp>
#include <tapegraph/ops/convolution/cpu_tiling.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// Convolutions of small images as matrix products that read w where it lies, [k, out_channels]
/// with k = (kernel row, kernel column, channel). Few pixels use each filter, so that arranging the
/// filters for the tile kernel would take longer than the products; here the pixels are rearranged:
///   forward         y [pixels, out] = unfolded x [pixels, k] w
///   input gradient  t [k, pixels] = w dy', and t is added to the pixels of dx that its rows came from
/// (docs/design/cpu/filters_read_in_place.md counts).

namespace tapegraph::cpu::detail {

/// Whether a convolution in two dimensions unfolds its images. Neither the batch nor a last row or
/// column that a pooling of 2 by 2 ignores decides, so that an image's results depend on neither.
inline bool unfolds(const convolution_geometry& g) {
    constexpr std::int64_t most_windows = 16, fewest_channels = 256;
    const bool line = g.in_height == 1 && g.kernel_height == 1 && g.out_height == 1;
    return g.groups == 1 && !line && g.out_height > 0 && g.out_width > 0 && g.out_channels >= fewest_channels &&
           std::max<std::int64_t>(1, g.out_height / 2) * std::max<std::int64_t>(1, g.out_width / 2) <= most_windows;
}

/// Whole images at a time, as many as make about 512 pixels.
struct unfolded_plan {
    std::int64_t pixels; ///< of an image of y
    std::int64_t k;
    std::int64_t images; ///< of a block

    explicit unfolded_plan(const convolution_geometry& g)
        : pixels(g.out_height * g.out_width),
          k(g.kernel_height * g.kernel_width * g.in_channels),
          images(std::min(g.batch, std::max<std::int64_t>(1, 512 / pixels))) {}

    /// Whether x is its own unfolded form.
    static bool plain(const convolution_geometry& g) {
        return g.kernel_height == 1 && g.kernel_width == 1 && g.stride_height == 1 && g.stride_width == 1 &&
               g.pad_top == 0 && g.pad_left == 0 && g.in_height == g.out_height && g.in_width == g.out_width;
    }
    template <class T>
    gemm_arguments<T> forward(const convolution_geometry& g) const {
        gemm_arguments<T> p{};
        p.m = images * pixels, p.n = g.out_channels, p.k = k;
        p.lda = k, p.ldb = p.ldc = g.out_channels;
        return p;
    }
    template <class T>
    gemm_arguments<T> input_gradient(const convolution_geometry& g) const {
        gemm_arguments<T> p{};
        p.m = k, p.n = images * pixels, p.k = g.out_channels;
        p.lda = p.ldb = g.out_channels, p.ldc = p.n;
        p.transpose_b = true;
        return p;
    }
};

/// The rearranged pixels of a block and the product's memory, enough for any smaller batch, too.
template <class T>
struct unfolded_scratch {
    std::byte* memory; ///< where it begins
    T* pixels;
    std::byte* product;

    unfolded_scratch(workspace_cutter& cut, const convolution_geometry& g, bool forward, int threads)
        : memory(cut.take<std::byte>(0)) {
        const unfolded_plan plan(g);
        gemm_arguments<T> p = forward ? plan.forward<T>(g) : plan.input_gradient<T>(g);
        pixels = cut.take<T>(forward && unfolded_plan::plain(g) ? 0 : plan.images * plan.pixels * plan.k);
        std::size_t bytes = gemm_workspace_bytes(p, threads);
        p.m = std::min<std::int64_t>(p.m, 96); // up to which each thread copies panels for itself
        product = cut.take<std::byte>(static_cast<std::int64_t>(std::max(bytes, gemm_workspace_bytes(p, threads))));
    }
};

/// to [pixels of `images` images, k] = the numbers of x that each pixel of y is computed from.
template <class T>
void unfold(const convolution_geometry& g, const T* x, std::int64_t images, T* to) {
    const std::int64_t row = g.kernel_height * g.kernel_width * g.in_channels;
    const std::int64_t image = g.in_height * g.in_width * g.in_channels;
    const bool dense = g.dilation_height == 1 && g.dilation_width == 1;
    const std::int64_t lines = images * g.out_height;
    parallel_for(lines, worth_threads(static_cast<double>(lines * g.out_width) * static_cast<double>(row)),
                 [&](std::int64_t line) {
                     const T* const from = x + line / g.out_height * image;
                     const std::int64_t top = line % g.out_height * g.stride_height - g.pad_top;
                     const auto copy = [&](T* at, std::int64_t i, std::int64_t j, std::int64_t height,
                                           std::int64_t width) {
                         copy_window(at, from, g.in_height, g.in_width, g.in_channels, {i, j, height, width});
                     };
                     for (std::int64_t j = 0; j < g.out_width; ++j) {
                         T* at = to + (line * g.out_width + j) * row;
                         const std::int64_t left = j * g.stride_width - g.pad_left;
                         if (dense) {
                             copy(at, top, left, g.kernel_height, g.kernel_width);
                             continue;
                         }
                         for (std::int64_t u = 0; u < g.kernel_height; ++u)
                             for (std::int64_t v = 0; v < g.kernel_width; ++v, at += g.in_channels)
                                 copy(at, top + u * g.dilation_height, left + v * g.dilation_width, 1, 1);
                     }
                 });
}

template <class T>
TG_VECTORISES void add_to(T* to, const T* from, std::int64_t count) {
    TG_SIMD
    for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

/// dx of `images` images = the sums of t [k, pixels] over all (kernel row, kernel column, pixel)
/// that read a pixel of x, in this order.
template <class T>
void fold(const convolution_geometry& g, const T* t, std::int64_t images, T* dx) {
    constexpr std::int64_t part = 32, piece = 16; // channels, and pixels of a row
    const std::int64_t channels = g.in_channels, parts = divide_up(channels, part);
    const std::int64_t pixels = images * g.out_height * g.out_width;
    const auto work = static_cast<double>(pixels) * static_cast<double>(g.kernel_height * g.kernel_width * channels);
    parallel_for(images * parts, worth_threads(work), [&](std::int64_t task) {
        const std::int64_t image = task / parts, c = task % parts * part, count = std::min(part, channels - c);
        T* const to = dx + image * g.in_height * g.in_width * channels + c;
        alignas(64) T turned[piece * part];
        for (std::int64_t p = 0; p < g.in_height * g.in_width; ++p) std::fill_n(to + p * channels, count, T(0));
        for (std::int64_t tap = 0; tap < g.kernel_height * g.kernel_width; ++tap) {
            const std::int64_t down = tap / g.kernel_width * g.dilation_height - g.pad_top;
            const std::int64_t right = tap % g.kernel_width * g.dilation_width - g.pad_left;
            for (std::int64_t i = 0; i < g.out_height; ++i) {
                const std::int64_t y = i * g.stride_height + down;
                if (y < 0 || y >= g.in_height) continue;
                const T* const from = t + (tap * channels + c) * pixels + (image * g.out_height + i) * g.out_width;
                for (std::int64_t j0 = 0; j0 < g.out_width; j0 += piece) {
                    const std::int64_t columns = std::min(piece, g.out_width - j0);
                    transpose(turned, part, from + j0, pixels, count, columns);
                    for (std::int64_t j = 0; j < columns; ++j) {
                        const std::int64_t x = (j0 + j) * g.stride_width + right;
                        if (x >= 0 && x < g.in_width)
                            add_to(to + (y * g.in_width + x) * channels, turned + j * part, count);
                    }
                }
            }
        }
    });
}

/// So many rows of w at a time lie in few pages and stay in L2 until all pixels have used them.
inline std::int64_t unfolded_part(const convolution_geometry& g, std::int64_t k) {
    return equal_part(k, std::clamp<std::int64_t>(32768 / g.out_channels, 64, 256));
}
/// Packs w as the products read it, part by part.
template <class T>
void pack_unfolded_filters(const convolution_geometry& g, const T* w, T* packed) {
    const unfolded_plan plan(g);
    gemm_arguments<T> p = plan.forward<T>(g);
    const std::int64_t part = unfolded_part(g, plan.k), width = panel_layout::padded(p.n, tile_kernels<T>::most_lanes);
    for (std::int64_t k = 0; k < plan.k; k += part) {
        p.b = w + k * p.ldb;
        p.k = std::min(part, plan.k - k);
        gemm_pack_b(p, packed + k * width);
    }
}

/// `packed`: w from pack_unfolded_filters, or null.
template <class T>
void unfolded_forward(const convolution_geometry& g, const T* x, const T* w, T* y, void* workspace,
                      const convolution_epilogue<T>& epilogue, const T* packed = nullptr) {
    const unfolded_plan plan(g);
    workspace_cutter cut(workspace);
    const unfolded_scratch<T> scratch(cut, g, true, thread_count());
    gemm_arguments<T> p = plan.forward<T>(g);
    p.b = w, p.bias = epilogue.bias, p.relu = epilogue.relu;
    p.rows_are_near = !unfolded_plan::plain(g);
    for (std::int64_t image = 0; image < g.batch; image += plan.images) {
        const std::int64_t images = std::min(plan.images, g.batch - image);
        p.m = images * plan.pixels;
        p.a = x + image * g.in_height * g.in_width * g.in_channels;
        p.c = y + image * plan.pixels * g.out_channels;
        if (!unfolded_plan::plain(g)) {
            unfold(g, p.a, images, scratch.pixels);
            p.a = scratch.pixels;
        }
        const std::int64_t part = unfolded_part(g, plan.k);
        for (std::int64_t k = 0; k == 0 || k < plan.k; k += part) {
            gemm_arguments<T> rows = p;
            rows.a += k, rows.b += k * p.ldb;
            if (packed != nullptr) rows.packed_b = packed + k * panel_layout::padded(p.n, tile_kernels<T>::most_lanes);
            rows.k = std::min(part, plan.k - k);
            rows.accumulate = k > 0;
            if (k + part < plan.k) rows.bias = nullptr, rows.relu = false;
            gemm(rows, scratch.product);
        }
        if (epilogue.next != nullptr) epilogue.next->on_rows(image * plan.pixels, p.m);
    }
    if (epilogue.next != nullptr) epilogue.next->done = true;
}

template <class T>
void unfolded_input_gradient(const convolution_geometry& g, const T* dy, const T* w, T* dx, void* workspace) {
    const unfolded_plan plan(g);
    workspace_cutter cut(workspace);
    const unfolded_scratch<T> scratch(cut, g, false, thread_count());
    gemm_arguments<T> p = plan.input_gradient<T>(g);
    p.a = w, p.c = scratch.pixels;
    for (std::int64_t image = 0; image < g.batch; image += plan.images) {
        const std::int64_t images = std::min(plan.images, g.batch - image);
        p.n = p.ldc = images * plan.pixels;
        p.b = dy + image * plan.pixels * g.out_channels;
        gemm(p, scratch.product);
        fold(g, static_cast<const T*>(scratch.pixels), images, dx + image * g.in_height * g.in_width * g.in_channels);
    }
}

} // namespace tapegraph::cpu::detail
