#pragma once

#include <tapegraph/ops/convolution/cpu.hpp>
#include <tapegraph/ops/pooling/cpu.hpp>

/// Convolution, bias, relu and the maximum of every 2 by 2 pixels, without y in memory: bands of a
/// few rows of an image are convolved into scratch memory that stays in the L2 cache, and pooled
/// from there.

namespace tapegraph::cpu {

namespace detail {

/// The number of rows of a band: about as many pixels as a block of the forward pass has, in whole
/// windows.
inline std::int64_t pooled_band_rows(const convolution_geometry& g) {
    constexpr std::int64_t pixels = 128;
    return std::min(g.out_height, 2 * std::max<std::int64_t>(1, pixels / std::max<std::int64_t>(1, 2 * g.out_width)));
}
/// The convolution of some rows of one image, whose start is set by padding.
inline convolution_geometry band_of(convolution_geometry g, std::int64_t first, std::int64_t rows) {
    g.batch = 1;
    g.pad_top -= first * g.stride_height;
    g.out_height = std::min(rows, g.out_height - first);
    return g;
}

/// The workspace, for any batch: a band for each thread or one image; each thread's workspace of
/// the forward pass; the packed filters.
template <class T>
struct pooled_scratch {
    std::int64_t band, window;
    T *outputs, *windows, *filters;

    pooled_scratch(workspace_cutter& cut, const convolution_geometry& g, int threads) {
        const auto outputs_of = [&](std::int64_t rows) {
            return panel_layout::padded(rows * g.out_width * g.out_channels, 16);
        };
        const auto window_of = [&](std::int64_t rows) {
            const forward_plan plan(band_of(g, 0, rows));
            return panel_layout::padded(plan.window.height * plan.window.width * g.in_channels, 16);
        };
        const std::int64_t rows = pooled_band_rows(g);
        band = outputs_of(rows);
        window = std::max(window_of(rows), window_of(g.out_height));
        outputs = cut.take<T>(std::max(outputs_of(g.out_height), threads * band));
        windows = cut.take<T>(threads * window);
        filters = cut.take<T>(forward_filter_elements<T>(g, tile_kernels<T>::most_lanes));
    }
};

/// The workspace where images are unfolded: y of a block of images, and the forward pass's.
template <class T>
struct pooled_unfolded_scratch {
    convolution_geometry block;
    T* outputs;
    unfolded_scratch<T> forward;

    pooled_unfolded_scratch(workspace_cutter& cut, const convolution_geometry& g, int threads)
        : block(g),
          outputs(cut.take<T>(unfolded_plan(g).images * g.out_height * g.out_width * g.out_channels)),
          forward(cut, g, true, threads) {
        block.batch = unfolded_plan(g).images;
    }
};

/// The maxima of every 2 by 2 pixels of y, which has the shape of the convolution `g`.
template <class T>
void pool_pairs(const convolution_geometry& g, const T* y, T* pooled) {
    pool_geometry p{};
    p.batch = g.batch, p.channels = g.out_channels;
    p.in_height = g.out_height, p.in_width = g.out_width;
    p.out_height = g.out_height / 2, p.out_width = g.out_width / 2;
    p.window_height = p.window_width = p.stride_height = p.stride_width = 2;
    max_pool_forward<T>(p, y, pooled);
}

} // namespace detail

/// Workspace when thread_count() is at most `threads`, for any instruction set and any batch.
template <class T>
std::size_t convolution_pool_workspace_bytes(const convolution_geometry& g, int threads) {
    if (g.batch <= 0 || g.out_height <= 0 || g.out_width <= 0 || g.out_channels <= 0) return 0;
    detail::workspace_cutter cut(nullptr);
    if (detail::unfolds(g))
        detail::pooled_unfolded_scratch<T>(cut, g, threads);
    else
        detail::pooled_scratch<T>(cut, g, threads);
    return cut.used();
}

/// Computes pooled [batch, out_height / 2, out_width / 2, out_channels] of the convolution `g`,
/// whose output extents are even. `kept`: as in convolution_forward.
template <class T>
void convolution_pool_forward(const convolution_geometry& g, const T* x, const T* w, T* pooled, void* workspace,
                              const convolution_epilogue<T>& epilogue, const T* kept = nullptr) {
    if (g.batch <= 0 || g.out_height <= 0 || g.out_width <= 0 || g.out_channels <= 0) return;
    const std::int64_t image = g.in_height * g.in_width * g.in_channels, line = g.out_width / 2 * g.out_channels;
    detail::workspace_cutter parts(workspace);
    if (detail::unfolds(g)) {
        detail::pooled_unfolded_scratch<T> scratch(parts, g, thread_count());
        convolution_geometry& block = scratch.block;
        for (std::int64_t first = 0; first < g.batch; first += block.batch) {
            block.batch = std::min(block.batch, g.batch - first);
            convolution_forward(block, x + first * image, w, scratch.outputs, scratch.forward.memory, epilogue, kept);
            detail::pool_pairs<T>(block, scratch.outputs, pooled + first * g.out_height / 2 * line);
        }
        return;
    }
    const detail::pooled_scratch<T> scratch(parts, g, thread_count());
    if (kept == nullptr) pack_filters(g, w, scratch.filters);
    const T* const filters = kept == nullptr ? scratch.filters : kept;
    // With few bands, images are processed one by one, and the convolution divides its own work
    // among threads.
    std::int64_t rows = detail::pooled_band_rows(g), bands = detail::divide_up(g.out_height, rows);
    const bool parallel = g.batch * bands >= 4 * thread_count() && detail::worth_threads(detail::multiply_adds(g));
    if (!parallel) rows = g.out_height, bands = 1;
    detail::for_tasks(g.batch * bands, parallel, [&](std::int64_t task, int thread) {
        const std::int64_t of = task / bands, first = task % bands * rows;
        const convolution_geometry band = detail::band_of(g, first, rows);
        T* const y = scratch.outputs + thread * scratch.band;
        convolution_forward_packed(band, x + of * image, filters, y, scratch.windows + thread * scratch.window,
                                   epilogue);
        detail::pool_pairs<T>(band, y, pooled + (of * g.out_height + first) / 2 * line);
    });
}

} // namespace tapegraph::cpu
