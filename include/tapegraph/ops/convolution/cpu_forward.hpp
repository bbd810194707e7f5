#pragma once

#include <tapegraph/ops/convolution/cpu_depthwise.hpp>
#include <tapegraph/ops/convolution/cpu_one_pixel.hpp>
#include <tapegraph/ops/convolution/cpu_tiling.hpp>
#include <tapegraph/ops/convolution/cpu_unfolded.hpp>

/// The forward pass as an implicit matrix product: rows are neighbouring output pixels of one image
/// row, k runs over (kernel row, kernel column, channel), columns are output channels. Nothing is
/// unfolded: with dilation 1 a kernel row is one contiguous run of kernel_width * channels numbers,
/// and the next pixel starts stride * channels further.
///
/// Filters are first packed into panels, unless they apply to so few pixels that packing would be
/// most of the work. Then they are read in place, some rows of k for all panels at a time, while
/// the next rows arrive from memory.

namespace tapegraph::cpu {

namespace detail {

/// The tiling of the forward pass: a task is a block of output pixels of one image and a share of
/// the panels.
struct forward_plan {
    std::int64_t block_height, block_width;
    std::int64_t blocks_down, blocks_across;
    image_window window; // size of the input that a block needs; its position depends on the block
    bool by_columns;     // kernel columns are summed one by one, each for the outputs that read no padding through it

    explicit forward_plan(const convolution_geometry& g) {
        // About 128 pixels: enough to reuse a panel fetched from L3, few enough to divide evenly
        // among threads.
        constexpr std::int64_t pixels = 128;
        block_width = equal_part(g.out_width, 2 * pixels);
        block_height = equal_part(g.out_height, divide_up(pixels, std::max<std::int64_t>(1, block_width)));
        blocks_across = divide_up(g.out_width, std::max<std::int64_t>(1, block_width));
        blocks_down = divide_up(g.out_height, std::max<std::int64_t>(1, block_height));
        window = {0, 0, (block_height - 1) * g.stride_height + g.span_height(),
                  (block_width - 1) * g.stride_width + g.span_width()};
        // It pays where the products saved take longer than adding the columns' sums to one another, of which each counts
        // as `to_add` products. A last output of a row that a pooling of 2 by 2 ignores does not decide.
        constexpr std::int64_t to_add = 20;
        convolution_geometry even = g;
        even.out_width = std::max<std::int64_t>(1, g.out_width / 2 * 2);
        std::int64_t padding = 0;
        for (std::int64_t v = 0; v < g.kernel_width; ++v) padding += even.out_width - inside(even, v).count();
        by_columns = padding * g.kernel_height * g.group_in() > to_add * g.kernel_width * even.out_width;
    }

    /// Outputs [first, last) of a row.
    struct outputs {
        std::int64_t first, last;
        std::int64_t count() const { return last - first; }
    };
    /// Those that read a pixel of the image, and no padding, through kernel column v.
    static outputs inside(const convolution_geometry& g, std::int64_t v) {
        const std::int64_t at = v * g.dilation_width - g.pad_left;
        const std::int64_t first = std::clamp<std::int64_t>(-floor_divide(at, g.stride_width), 0, g.out_width);
        const std::int64_t last = floor_divide(g.in_width - 1 - at, g.stride_width) + 1;
        return {first, std::clamp<std::int64_t>(last, first, g.out_width)};
    }
};

/// Whether filters along one dimension are read in place: for one line of few pixels. Their sums
/// are divided differently from those of packed filters, so the last bits of a line depend on
/// whether it is the only one.
inline bool filters_stay(const convolution_geometry& g) {
    constexpr std::int64_t few_pixels = 256;
    return g.batch == 1 && g.in_height == 1 && g.kernel_height == 1 && g.out_height == 1 && g.row_is_contiguous() &&
           g.kernel_width * g.in_channels > 0 && g.out_width <= few_pixels;
}

/// Where each output pixel reads the input pixel at its own place alone, rows and images follow one another in memory:
/// they are one line, whose tiles are whole however short a row is. The sums are the same.
inline convolution_geometry in_one_line(convolution_geometry g) {
    if (!unfolded_plan::plain(g) || g.groups != 1) return g;
    g.in_width = g.out_width = g.batch * g.out_height * g.out_width;
    g.batch = g.in_height = g.out_height = 1;
    return g;
}

/// Rows of k that are multiplied at a time where filters stay.
inline constexpr std::int64_t rows_in_place = 256;

// A panel's share of k that stays in L2 while the pixels of a block stream past.
inline constexpr std::int64_t panel_bytes = 512 * 1024;

/// With a null `w`, all filters are packed; otherwise those of an incomplete last panel.
template <class T>
void forward_block(const convolution_geometry& g, const forward_plan& plan, const tile_kernels<T>& kernels, const T* x,
                   const T* packed, const T* w, T* y, const convolution_epilogue<T>& epilogue, T* scratch,
                   std::int64_t image, std::int64_t down, std::int64_t across, std::int64_t first_panel,
                   std::int64_t last_panel) {
    const std::int64_t row0 = down * plan.block_height, column0 = across * plan.block_width;
    const std::int64_t rows = std::min(plan.block_height, g.out_height - row0);
    const std::int64_t columns = std::min(plan.block_width, g.out_width - column0);
    if (rows <= 0 || columns <= 0) return;
    const image_window window{row0 * g.stride_height - g.pad_top, column0 * g.stride_width - g.pad_left,
                              (rows - 1) * g.stride_height + g.span_height(),
                              (columns - 1) * g.stride_width + g.span_width()};
    const std::int64_t channels = g.in_channels;
    const T* source = x + image * g.in_height * g.in_width * channels;
    std::int64_t source_row = g.in_width * channels;
    if (window.inside(g.in_height, g.in_width)) {
        source += (window.row * g.in_width + window.column) * channels;
    } else {
        copy_window(scratch, source, g.in_height, g.in_width, channels, window);
        source = scratch;
        source_row = window.width * channels;
    }

    const std::int64_t depth = g.group_in();
    const std::int64_t row_k = g.kernel_width * depth;
    const std::int64_t k = g.kernel_height * row_k;
    const panel_layout layout{g.group_out(), kernels.lanes};

    tile_job<T> job{};
    job.walk.a_outer = g.dilation_height * source_row;
    job.walk.a_middle = g.dilation_width * channels;
    job.a_row = g.stride_width * channels;
    job.c_row = g.out_channels;

    const T* const first_of_all =
        packed + first_panel / layout.count() * layout.size(k) + layout.offset(first_panel % layout.count(), k);
    const bool by_columns = w == nullptr && plan.by_columns;
    const auto pixels_of = [&](std::int64_t v) -> forward_plan::outputs {
        const auto all = forward_plan::inside(g, v);
        return {std::clamp<std::int64_t>(all.first - column0, 0, columns),
                std::clamp<std::int64_t>(all.last - column0, 0, columns)};
    };
    // Panels of all groups are numbered consecutively. Adds `count` kernel rows from u on; of a contiguous one, from
    // `from` to `end`.
    const auto add = [&](std::int64_t p, std::int64_t u, std::int64_t count, std::int64_t from, std::int64_t end) {
        const std::int64_t group = p / layout.count(), panel = p % layout.count(), width = layout.width(panel);
        const std::int64_t channel = group * g.group_out() + panel * 2 * kernels.lanes;
        const bool last = u + count == g.kernel_height;
        job.columns = layout.columns(panel);
        const bool in_place = w != nullptr && job.columns == width;
        const T* const filters = in_place
                                     ? w + u * row_k * g.out_channels + channel
                                     : packed + group * layout.size(k) + layout.offset(panel, k) + u * row_k * width;
        job.walk.b_inner = in_place ? g.out_channels : 0;
        const auto& run = kernels.run[layout.vectors(panel) - 1];
        // What follows in memory comes next; after the last panel the first one, for the next block. The tiles
        // fetch it into L2, each a part of it.
        std::int64_t left = w != nullptr ? 0 : count * row_k * width;
        const T* ahead = last && p + 1 == last_panel ? first_of_all : filters + left;
        for (std::int64_t i = 0; i < rows; ++i) {
            // The kernel rows within the image; where there are none, one of zeros.
            const std::int64_t top = window.row + i * g.stride_height, below = g.in_height - top, end_u = u + count;
            const std::int64_t inside = top < 0 ? divide_up(-top, g.dilation_height) : 0;
            const std::int64_t outside = below > 0 ? divide_up(below, g.dilation_height) : 0;
            const std::int64_t begin = std::max(u, std::min(inside, end_u - 1));
            const std::int64_t stop = std::min(end_u, std::max(outside, begin + 1));
            job.walk.outer = stop - begin;
            for (std::int64_t v = 0; v < (by_columns ? g.kernel_width : 1); ++v) {
                const std::int64_t at = by_columns ? v * depth : from, size = by_columns ? depth : end - from;
                const auto pixels = by_columns ? pixels_of(v) : forward_plan::outputs{0, columns};
                const bool complete = last && at + size == row_k;
                job.walk.middle = by_columns || g.row_is_contiguous() ? 1 : g.kernel_width;
                job.walk.inner = by_columns || !g.row_is_contiguous() ? depth : size;
                job.walk.b_skip = (row_k - size) * width;
                job.b = filters + (in_place ? at * g.out_channels : ((begin - u) * row_k + at) * width);
                job.b_ahead = in_place && i == 0 && !complete ? size * g.out_channels : 0;
                job.accumulate = u > 0 || at > 0;
                job.bias = complete && epilogue.bias != nullptr ? epilogue.bias + channel : nullptr;
                job.relu = complete && epilogue.relu;
                const T* a = source + (i * g.stride_height + begin * g.dilation_height) * source_row + group * depth +
                             (by_columns ? v * job.walk.a_middle : at) + pixels.first * job.a_row;
                T* c = y + ((image * g.out_height + row0 + i) * g.out_width + column0 + pixels.first) * g.out_channels +
                       channel;
                const std::int64_t depth_of_tile = (stop - begin) * size;
                for_tiles(pixels.count(), kernels.rows, [&](std::int64_t first, std::int64_t tile) {
                    job.a = a + first * job.a_row;
                    job.c = c + first * g.out_channels;
                    job.a_ahead = left > 0 ? ahead : nullptr;
                    run[tile - 1](job);
                    ahead += tile * depth_of_tile;
                    left -= tile * depth_of_tile;
                    job.b_ahead = 0; // once is enough
                });
            }
        }
    };
    if (w != nullptr) {
        const std::int64_t part = equal_part(row_k, rows_in_place);
        for (std::int64_t v = 0; v < row_k; v += part)
            for (std::int64_t p = first_panel; p < last_panel; ++p) add(p, 0, 1, v, std::min(row_k, v + part));
        return;
    }
    // The panels' channels of the pixels that read nothing but padding through kernel column v.
    const auto for_others = [&](std::int64_t v, const auto& f) {
        const auto channel_of = [&](std::int64_t p) {
            return p / layout.count() * g.group_out() + p % layout.count() * 2 * kernels.lanes;
        };
        const std::int64_t channel = channel_of(first_panel), count = channel_of(last_panel) - channel;
        const auto pixels = pixels_of(v);
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j)
                if (j < pixels.first || j >= pixels.last)
                    f(y + ((image * g.out_height + row0 + i) * g.out_width + column0 + j) * g.out_channels + channel,
                      channel, count);
    };
    if (by_columns) for_others(0, [](T* to, std::int64_t, std::int64_t count) { std::fill_n(to, count, T(0)); });
    // Of a panel as wide as the widest set's, so that all sets sum alike.
    constexpr std::int64_t widest = 2 * tile_kernels<T>::most_lanes * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t kernel_rows = std::clamp<std::int64_t>(panel_bytes / std::max<std::int64_t>(1, row_k * widest),
                                                              1, std::max<std::int64_t>(1, g.kernel_height));
    for (std::int64_t p = first_panel; p < last_panel; ++p)
        for (std::int64_t u = 0; u == 0 || u < g.kernel_height; u += kernel_rows)
            add(p, u, std::min(kernel_rows, g.kernel_height - u), 0, row_k);
    if (by_columns && (epilogue.bias != nullptr || epilogue.relu))
        for_others(g.kernel_width - 1, [&](T* to, std::int64_t channel, std::int64_t count) {
            dispatch<depthwise_epilogue_body<T>>(epilogue.bias == nullptr ? epilogue.bias : epilogue.bias + channel,
                                                 epilogue.relu, std::int64_t{1}, count, to);
        });
}

/// Runs what follows on a block of y that is complete.
inline void continue_block(const convolution_geometry& g, const forward_plan& plan, const runtime::continuation& next,
                           std::int64_t image, std::int64_t down, std::int64_t across) {
    const std::int64_t row = down * plan.block_height, column = across * plan.block_width;
    const std::int64_t rows = std::min(plan.block_height, g.out_height - row);
    const std::int64_t columns = std::min(plan.block_width, g.out_width - column);
    const std::int64_t first = (image * g.out_height + row) * g.out_width + column;
    if (columns == g.out_width) return next.on_rows(first, rows * columns);
    for (std::int64_t i = 0; i < rows; ++i) next.on_rows(first + i * g.out_width, columns);
}

template <class T>
std::int64_t forward_filter_elements(const convolution_geometry& g, std::int64_t lanes) {
    return g.groups * panel_layout::padded(g.group_out(), lanes) * g.kernel_height * g.kernel_width * g.group_in();
}

/// Scratch memory of all threads, without the packed filters.
template <class T>
T* take_forward_scratch(workspace_cutter& cut, const convolution_geometry& g, int threads) {
    const forward_plan plan(g);
    const bool padded = g.pad_top > 0 || g.pad_left > 0 ||
                        (g.out_height - 1) * g.stride_height - g.pad_top + g.span_height() > g.in_height ||
                        (g.out_width - 1) * g.stride_width - g.pad_left + g.span_width() > g.in_width;
    return cut.take<T>(padded ? threads * plan.window.height * plan.window.width * g.in_channels : 0);
}

} // namespace detail

/// Bytes of filters packed for the forward pass.
template <class T>
std::size_t packed_filter_bytes(const convolution_geometry& g) {
    return static_cast<std::size_t>(detail::forward_filter_elements<T>(g, tile_kernels<T>::most_lanes)) * sizeof(T);
}

/// Rearranges w into the panels that the forward pass reads, from panel `first_panel` of each group
/// on, for the active instruction set. `packed` is aligned to 64 bytes.
template <class T>
void pack_filters(const convolution_geometry& g, const T* w, T* packed, std::int64_t first_panel = 0) {
    if (detail::is_depthwise(g)) {
        std::copy_n(w, g.kernel_height * g.kernel_width * g.out_channels, packed);
        return;
    }
    const auto& kernels = active_tile_kernels<T>();
    const panel_layout layout{g.group_out(), kernels.lanes};
    const std::int64_t k = g.kernel_height * g.kernel_width * g.group_in();
    // A few rows at a time go to all panels, so that w is read sequentially and not in pieces of
    // 128 bytes.
    constexpr std::int64_t part = 8;
    const std::int64_t parts = detail::divide_up(k, part);
    parallel_for(g.groups * parts, detail::worth_threads(static_cast<double>(k) * static_cast<double>(g.out_channels)),
                 [&](std::int64_t task) {
                     const std::int64_t group = task / parts, first = task % parts * part;
                     const std::int64_t rows = std::min(part, k - first);
                     for (std::int64_t panel = first_panel; panel < layout.count(); ++panel)
                         pack_panel(packed + group * layout.size(k) + layout.offset(panel, k) +
                                        first * layout.width(panel),
                                    layout, panel, w + first * g.out_channels + group * g.group_out(), g.out_channels,
                                    false, rows);
                 });
}

/// Computes y from filters packed by pack_filters. If `w` is not null, it is read in place, except
/// for an incomplete last panel, which is packed (detail::filters_stay). The workspace holds
/// convolution_workspace_bytes.
template <class T>
void convolution_forward_packed(const convolution_geometry& images, const T* x, const T* packed, T* y, void* workspace,
                                const convolution_epilogue<T>& epilogue = {}, const T* w = nullptr) {
    if (images.batch <= 0 || images.out_height <= 0 || images.out_width <= 0 || images.out_channels <= 0) return;
    const double work = detail::multiply_adds(images);
    if (detail::is_depthwise(images))
        return detail::depthwise_forward(images, x, packed, y, epilogue, detail::worth_threads(work));
    const convolution_geometry g = detail::in_one_line(images);
    const auto& kernels = active_tile_kernels<T>();
    const detail::forward_plan plan(g);
    detail::workspace_cutter cut(workspace);
    T* scratch = detail::take_forward_scratch<T>(cut, g, thread_count());
    const std::int64_t window = plan.window.height * plan.window.width * g.in_channels;

    const std::int64_t panels = g.groups * panel_layout{g.group_out(), kernels.lanes}.count();
    const std::int64_t blocks = g.batch * plan.blocks_down * plan.blocks_across;
    // With few pixels the panels are divided as well, until there are about eight tasks per thread;
    // two where the rows of w are better read in long pieces.
    const std::int64_t wanted = (w != nullptr ? 2 : 8) * thread_count();
    const std::int64_t shares = std::clamp<std::int64_t>(detail::divide_up(wanted, blocks), 1, panels);
    runtime::continuation* const next = shares == 1 ? epilogue.next : nullptr; // else no task completes a block
    detail::for_tasks(blocks * shares, detail::worth_threads(work), [&](std::int64_t task, int thread) {
        const std::int64_t share = task % shares, block = task / shares;
        const std::int64_t across = block % plan.blocks_across;
        const std::int64_t down = block / plan.blocks_across % plan.blocks_down;
        const std::int64_t image = block / plan.blocks_across / plan.blocks_down;
        detail::forward_block(g, plan, kernels, x, packed, w, y, epilogue, scratch + thread * window, image, down,
                              across, panels * share / shares, panels * (share + 1) / shares);
        if (next != nullptr) detail::continue_block(g, plan, *next, image, down, across);
    });
    if (next != nullptr) next->done = true;
}

/// Bytes of filters arranged once for many forward passes; 0 where that saves nothing: where they
/// are read in place, and where very many pixels share them.
template <class T>
std::size_t kept_filter_bytes(const convolution_geometry& g) {
    constexpr std::int64_t most_pixels = 4096;
    const std::int64_t pixels = g.batch * g.out_height * g.out_width, k = g.kernel_height * g.kernel_width;
    if (pixels <= 0 || pixels > most_pixels || g.out_channels <= 0 || k * g.group_in() <= 0) return 0;
    if (detail::is_depthwise(g)) return 0;
    if (detail::unfolds(g)) return pixels == 1 ? 0 : gemm_packed_bytes<T>(g.out_channels, k * g.in_channels);
    return detail::filters_stay(g) ? 0 : packed_filter_bytes<T>(g);
}
/// Arranges filters for convolution_forward's `kept`, which is aligned to 64 bytes.
template <class T>
void arrange_kept_filters(const convolution_geometry& g, const T* w, T* kept) {
    if (detail::unfolds(g))
        detail::pack_unfolded_filters(g, w, kept);
    else
        pack_filters(g, w, kept);
}

/// Computes y = x * w, with shapes as in convolution_geometry. `kept`: w from arrange_kept_filters,
/// or null.
template <class T>
void convolution_forward(const convolution_geometry& g, const T* x, const T* w, T* y, void* workspace,
                         const convolution_epilogue<T>& epilogue = {}, const T* kept = nullptr) {
    if (g.batch <= 0 || g.out_height <= 0 || g.out_width <= 0 || g.out_channels <= 0) return;
    if (detail::unfolds(g)) return detail::unfolded_forward(g, x, w, y, workspace, epilogue, kept);
    if (kept != nullptr) return convolution_forward_packed(g, x, kept, y, workspace, epilogue);
    if (detail::filters_stay(g) && g.out_width == 1 && g.groups == 1 && detail::unfolded_plan::plain(g))
        return detail::one_pixel_forward(x, w, y, g.in_channels, g.out_channels, detail::rows_in_place, epilogue);
    detail::workspace_cutter cut(workspace);
    detail::take_forward_scratch<T>(cut, g, thread_count());
    T* packed = cut.take<T>(detail::forward_filter_elements<T>(g, tile_kernels<T>::most_lanes));
    if (!detail::is_depthwise(g) && detail::filters_stay(g)) {
        const panel_layout layout{g.out_channels, active_tile_kernels<T>().lanes};
        const std::int64_t last = layout.count() - 1;
        if (layout.columns(last) < layout.width(last)) pack_filters(g, w, packed, last);
        convolution_forward_packed(g, x, packed, y, workspace, epilogue, w);
    } else {
        pack_filters(g, w, packed);
        convolution_forward_packed(g, x, packed, y, workspace, epilogue);
    }
}

} // namespace tapegraph::cpu
