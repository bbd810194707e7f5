#pragma once

#include <tapegraph/ops/convolution/cpu_depthwise.hpp>
#include <tapegraph/ops/convolution/cpu_tiling.hpp>
#include <tapegraph/ops/convolution/cpu_unfolded.hpp>

#include <numeric>

/// The gradient with respect to x, without multiplying zeros: for one row of dx, rows of the
/// product are the pixels of a row of dy, k runs over (the kernel rows that reach this row, output
/// channel) and columns are (kernel column, channel),
///   t[j, (v, c)] = sum over u, o of dy[(row + pad - u * dilation) / stride, j, o] * w[u, v, c, o],
/// and t[j, (v, c)] is added to dx at pixel j * stride - pad + v * dilation. Those targets overlap
/// for neighbouring j, which the kernel allows because it updates row after row. Panels of columns
/// are added from the last to the first: wherever the processor's panels end, a pixel gets its terms
/// by descending v, and the same bits. The sums go through a buffer as wide as the padded image, so
/// that padding is dropped when a row is copied out.

namespace tapegraph::cpu::detail {

struct input_gradient_plan {
    std::int64_t block_height, block_width; // of dx
    std::int64_t blocks_down, blocks_across;
    std::int64_t buffer_width; // pixels
    // Column runs: 1 when (kernel column, channel) is contiguous, else one per kernel column.
    std::int64_t runs;
    std::int64_t run_columns;

    explicit input_gradient_plan(const convolution_geometry& g) {
        constexpr std::int64_t pixels = 128;
        // Blocks side by side recompute the overlap at their edges, so they are much wider than
        // that.
        const std::int64_t widest = std::max<std::int64_t>(512, 8 * g.span_width());
        block_width = equal_part(g.in_width, widest);
        block_height = equal_part(g.in_height, divide_up(pixels, std::max<std::int64_t>(1, block_width)));
        blocks_across = divide_up(g.in_width, std::max<std::int64_t>(1, block_width));
        blocks_down = divide_up(g.in_height, std::max<std::int64_t>(1, block_height));
        buffer_width = block_width + 2 * g.span_width() + g.stride_width;
        runs = g.row_is_contiguous() ? 1 : g.kernel_width;
        run_columns = g.row_is_contiguous() ? g.kernel_width * g.in_channels : g.group_in();
    }
    /// With few images, makes blocks lower until there are about four tasks per thread. Rows of dx
    /// are independent, so this changes no result.
    void share_out(const convolution_geometry& g, int threads) {
        while (block_height > 1 && block_height * block_width > 16 &&
               g.batch * blocks_down * blocks_across < 4 * threads) {
            block_height = divide_up(block_height, 2);
            blocks_down = divide_up(g.in_height, block_height);
        }
    }
    std::int64_t buffer_elements(const convolution_geometry& g) const {
        return block_height * buffer_width * g.in_channels;
    }
    std::int64_t filter_elements(const convolution_geometry& g, int lanes) const {
        return g.groups * runs * panel_layout{run_columns, lanes}.size(g.kernel_height * g.group_out());
    }
};

template <class T>
void input_gradient_block(const convolution_geometry& g, const input_gradient_plan& plan,
                          const tile_kernels<T>& kernels, const T* dy, const T* packed, T* dx, T* buffer,
                          std::int64_t image, std::int64_t down, std::int64_t across) {
    const std::int64_t row0 = down * plan.block_height, column0 = across * plan.block_width;
    const std::int64_t rows = std::min(plan.block_height, g.in_height - row0);
    const std::int64_t columns = std::min(plan.block_width, g.in_width - column0);
    if (rows <= 0 || columns <= 0) return;
    // Pixels of dy that reach [column0, column0 + columns).
    const std::int64_t first = std::clamp<std::int64_t>(
        -floor_divide(-(column0 + g.pad_left - g.span_width() + 1), g.stride_width), 0, g.out_width);
    const std::int64_t last = std::clamp<std::int64_t>(
        floor_divide(column0 + columns - 1 + g.pad_left, g.stride_width) + 1, first, g.out_width);
    const std::int64_t left = first * g.stride_width - g.pad_left; // the column of dx where the buffer begins
    const std::int64_t width = last > first ? (last - first - 1) * g.stride_width + g.span_width() : 0;
    const std::int64_t channels = g.in_channels, depth = g.group_out();
    const std::int64_t buffer_row = width * channels;
    std::fill_n(buffer, rows * buffer_row, T(0));

    const panel_layout layout{plan.run_columns, kernels.lanes};
    const std::int64_t k = g.kernel_height * depth;
    const std::int64_t dy_row = g.out_width * g.out_channels;
    // Kernel rows that reach one row of dx are `step` apart, and their rows of dy `back`.
    const std::int64_t common = std::gcd(g.stride_height, g.dilation_height);
    const std::int64_t step = g.stride_height / common, back = g.dilation_height / common;

    tile_job<T> job{};
    job.walk.inner = depth;
    job.walk.a_outer = -back * dy_row;
    job.a_row = g.out_channels;
    job.c_row = g.stride_width * channels;
    job.accumulate = true;
    const T* packed_run = packed;
    for (std::int64_t group = 0; group < g.groups; ++group)
        for (std::int64_t run = 0; run < plan.runs; ++run, packed_run += layout.size(k))
            for (std::int64_t panel = layout.count() - 1; panel >= 0; --panel) {
                const T* b = packed_run + layout.offset(panel, k);
                const std::int64_t panel_row = depth * layout.width(panel);
                const auto& kernel = kernels.run[layout.vectors(panel) - 1];
                job.columns = layout.columns(panel);
                // The pixels of dy from which a kernel column of this panel reaches the block; where the others
                // would go is padding.
                const std::int64_t begin = panel * 2 * kernels.lanes, end = begin + job.columns - 1;
                const std::int64_t furthest = plan.runs == 1 ? end / channels : run,
                                   nearest = plan.runs == 1 ? begin / channels : run;
                const std::int64_t from_left = column0 + g.pad_left;
                const std::int64_t j0 = std::clamp<std::int64_t>(
                    -floor_divide(furthest * g.dilation_width - from_left, g.stride_width), first, last);
                const std::int64_t j1 = std::clamp<std::int64_t>(
                    floor_divide(from_left + columns - 1 - nearest * g.dilation_width, g.stride_width) + 1, j0, last);
                job.walk.b_skip = (step - 1) * panel_row;
                for (std::int64_t i = 0; i < rows; ++i) {
                    const std::int64_t row = row0 + i + g.pad_top;
                    // The first kernel row u with row - u * dilation divisible by the stride and inside dy.
                    std::int64_t u = 0;
                    while (u < g.kernel_height && (row - u * g.dilation_height) % g.stride_height != 0 && u < step) ++u;
                    if (u >= step || u >= g.kernel_height) continue;
                    std::int64_t count = (g.kernel_height - u + step - 1) / step;
                    std::int64_t i_dy = floor_divide(row - u * g.dilation_height, g.stride_height);
                    if (i_dy >= g.out_height) {
                        const std::int64_t skip = divide_up(i_dy - g.out_height + 1, back);
                        u += skip * step;
                        i_dy -= skip * back;
                        count -= skip;
                    }
                    if (count <= 0 || i_dy < 0) continue;
                    job.walk.outer = std::min(count, i_dy / back + 1);
                    job.b = b + u * panel_row;
                    const T* a = dy + (image * g.out_height + i_dy) * dy_row + j0 * g.out_channels + group * depth;
                    T* c = buffer + i * buffer_row + run * g.dilation_width * channels + group * g.group_in() + begin +
                           (j0 - first) * job.c_row;
                    for_tiles(j1 - j0, kernels.rows, [&](std::int64_t from, std::int64_t tile_rows) {
                        job.a = a + from * job.a_row;
                        job.c = c + from * job.c_row;
                        kernel[tile_rows - 1](job);
                    });
                }
            }

    // The buffer's columns [left, left + width) that are in the block; no output reaches the rest
    // of the block.
    const std::int64_t begin = std::clamp<std::int64_t>(left, column0, column0 + columns);
    const std::int64_t end = std::clamp<std::int64_t>(left + width, begin, column0 + columns);
    for (std::int64_t i = 0; i < rows; ++i) {
        T* to = dx + (image * g.in_height + row0 + i) * g.in_width * channels;
        std::fill_n(to + column0 * channels, (begin - column0) * channels, T(0));
        if (end > begin)
            std::copy_n(buffer + i * buffer_row + (begin - left) * channels, (end - begin) * channels,
                        to + begin * channels);
        std::fill_n(to + end * channels, (column0 + columns - end) * channels, T(0));
    }
}

} // namespace tapegraph::cpu::detail

namespace tapegraph::cpu {

/// Rearranges w into the panels that the input gradient reads, for the active instruction set.
/// `packed` is aligned to 64 bytes.
template <class T>
void pack_gradient_filters(const convolution_geometry& g, const T* w, T* packed) {
    if (detail::is_depthwise(g)) {
        std::copy_n(w, g.kernel_height * g.kernel_width * g.out_channels, packed);
        return;
    }
    const detail::input_gradient_plan plan(g);
    const panel_layout layout{plan.run_columns, active_tile_kernels<T>().lanes};
    const std::int64_t depth = g.group_out(), k = g.kernel_height * depth;
    parallel_for(
        g.groups * plan.runs * layout.count(),
        detail::worth_threads(static_cast<double>(k * plan.runs * plan.run_columns * g.groups)), [&](std::int64_t p) {
            const std::int64_t panel = p % layout.count(), run = p / layout.count() % plan.runs;
            const std::int64_t group = p / layout.count() / plan.runs;
            T* to = packed + (group * plan.runs + run) * layout.size(k) + layout.offset(panel, k);
            const T* from = w + run * plan.run_columns * g.out_channels + group * depth;
            for (std::int64_t u = 0; u < g.kernel_height; ++u)
                pack_panel(to + u * depth * layout.width(panel), layout, panel,
                           from + u * g.kernel_width * g.group_in() * g.out_channels, g.out_channels, true, depth);
        });
}

/// Computes dx from dy and filters packed by pack_gradient_filters. The workspace holds
/// convolution_workspace_bytes.
template <class T>
void convolution_input_gradient_packed(const convolution_geometry& g, const T* dy, const T* packed, T* dx,
                                       void* workspace) {
    if (g.batch <= 0 || g.in_height <= 0 || g.in_width <= 0 || g.in_channels <= 0) return;
    const bool parallel = detail::worth_threads(detail::multiply_adds(g));
    if (detail::is_depthwise(g)) return detail::depthwise_input_gradient(g, dy, packed, dx, parallel);
    const auto& kernels = active_tile_kernels<T>();
    detail::input_gradient_plan plan(g);
    plan.share_out(g, thread_count());
    T* buffers = static_cast<T*>(workspace);
    detail::for_tasks(g.batch * plan.blocks_down * plan.blocks_across, parallel, [&](std::int64_t task, int thread) {
        const std::int64_t across = task % plan.blocks_across;
        const std::int64_t down = task / plan.blocks_across % plan.blocks_down;
        detail::input_gradient_block(g, plan, kernels, dy, packed, dx, buffers + thread * plan.buffer_elements(g),
                                     task / plan.blocks_across / plan.blocks_down, down, across);
    });
}

/// Computes dx from dy and w, with shapes as in convolution_geometry.
template <class T>
void convolution_input_gradient(const convolution_geometry& g, const T* dy, const T* w, T* dx, void* workspace) {
    if (g.batch <= 0 || g.in_height <= 0 || g.in_width <= 0 || g.in_channels <= 0) return;
    if (detail::unfolds(g)) return detail::unfolded_input_gradient(g, dy, w, dx, workspace);
    const detail::input_gradient_plan plan(g);
    detail::workspace_cutter cut(workspace);
    cut.take<T>(thread_count() * plan.buffer_elements(g));
    T* packed = cut.take<T>(plan.filter_elements(g, tile_kernels<T>::most_lanes));
    pack_gradient_filters(g, w, packed);
    convolution_input_gradient_packed(g, dy, packed, dx, workspace);
}

} // namespace tapegraph::cpu
