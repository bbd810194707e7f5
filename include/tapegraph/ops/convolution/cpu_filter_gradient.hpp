#pragma once

#include <tapegraph/cpu/caches.hpp>
#include <tapegraph/ops/convolution/cpu_depthwise_filter.hpp>
#include <tapegraph/ops/convolution/cpu_tiling.hpp>

#include <array>

/// The gradient with respect to w: for each kernel row u, rows are (kernel column, channel), k runs
/// over the output pixels and columns are output channels,
///   dw[u, (v, c), o] = sum over b, i, j of x[b, i * stride - pad + u * dilation, j * stride - pad + v * dilation, c]
///                                        * dy[b, i, j, o].
/// dy is packed by chunks of pixels. Where dw has many tiles, the threads divide them among
/// themselves, chunk after chunk; where it has few (a layer of 3 channels), the pixels are cut into
/// parts whose sums are added in order. Both the chunks and the parts depend only on the shape, so
/// the result does not depend on the number of threads.

namespace tapegraph::cpu::detail {

struct filter_gradient_plan {
    // Images at once, or rows of one image, or columns of one row.
    std::int64_t chunk_images = 1, chunk_rows = 1, chunk_columns;
    std::int64_t runs, run_rows; // rows of the product: one run of (v, c), or a run per v
    std::int64_t parts;          // 1: threads divide the tiles

    explicit filter_gradient_plan(const convolution_geometry& g) {
        runs = g.row_is_contiguous() ? 1 : g.kernel_width;
        run_rows = g.row_is_contiguous() ? g.kernel_width * g.in_channels : g.group_in();
        const std::int64_t tiles =
            g.groups * g.kernel_height * runs * divide_up(run_rows, 12) * divide_up(g.group_out(), 32);
        const bool few_tiles = tiles < 48;
        // Every tile reads a chunk's numbers: with few tiles they should be in L1, with many the
        // cost of adding to dw is hidden.
        const std::int64_t pixels = few_tiles ? 288 : 400;
        chunk_columns = g.out_width <= 2 * pixels ? g.out_width : equal_part(g.out_width, pixels);
        if (chunk_columns == g.out_width) chunk_rows = equal_part(g.out_height, divide_up(pixels, g.out_width));
        if (chunk_columns == g.out_width && chunk_rows == g.out_height)
            chunk_images = std::clamp<std::int64_t>(divide_up(pixels, g.out_height * g.out_width), 1, g.batch);
        parts = few_tiles ? std::clamp<std::int64_t>(chunks(g) / 2, 1, 16) : 1;
    }
    std::int64_t chunks(const convolution_geometry& g) const {
        return divide_up(g.batch, chunk_images) * divide_up(g.out_height, chunk_rows) *
               divide_up(g.out_width, chunk_columns);
    }
    // The input that a chunk needs; its position depends on the chunk.
    image_window window(const convolution_geometry& g) const {
        return {0, 0, (chunk_rows - 1) * g.stride_height + g.span_height(),
                (chunk_columns - 1) * g.stride_width + g.span_width()};
    }
    bool padded(const convolution_geometry& g) const {
        return g.pad_top > 0 || g.pad_left > 0 ||
               (g.out_height - 1) * g.stride_height + g.span_height() - g.pad_top > g.in_height ||
               (g.out_width - 1) * g.stride_width + g.span_width() - g.pad_left > g.in_width;
    }
    std::int64_t window_elements(const convolution_geometry& g) const {
        return padded(g) ? chunk_images * window(g).height * window(g).width * g.in_channels : 0;
    }
    std::int64_t panel_elements(const convolution_geometry& g, int lanes) const {
        return g.groups * panel_layout{g.group_out(), lanes}.size(chunk_images * chunk_rows * chunk_columns);
    }
    std::int64_t filter_elements(const convolution_geometry& g) const {
        return g.kernel_height * g.kernel_width * g.group_in() * g.out_channels;
    }
};

/// One chunk: the position of its numbers, and the scratch memory of the packed copies.
template <class T>
struct filter_gradient_chunk {
    const convolution_geometry& g;
    const filter_gradient_plan& plan;
    const tile_kernels<T>& kernels;
    const T* x;
    const T* dy;
    T* panels;
    T* windows;
    std::int64_t image = 0, images = 0, row = 0, rows = 0, column = 0, columns = 0;
    bool direct = false;    // dy is read in place: its last panel extends into the next pixel
    std::int64_t next = -1; // the chunk that follows, or -1

    void select(std::int64_t chunk) {
        const std::int64_t across = divide_up(g.out_width, plan.chunk_columns);
        const std::int64_t down = divide_up(g.out_height, plan.chunk_rows);
        column = chunk % across * plan.chunk_columns;
        columns = std::min(plan.chunk_columns, g.out_width - column);
        row = chunk / across % down * plan.chunk_rows;
        rows = std::min(plan.chunk_rows, g.out_height - row);
        image = chunk / across / down * plan.chunk_images;
        images = std::min(plan.chunk_images, g.batch - image);
        // Packing pays when many tiles read the panels. At the end of dy there is nothing after it
        // to read into.
        const std::int64_t elements_after =
            g.batch * g.out_height * g.out_width * g.out_channels - (own_dy() - dy) - pixels() * g.out_channels;
        direct = plan.parts > 1 && g.groups == 1 && elements_after >= 2 * kernels.lanes;
    }
    std::int64_t pixels() const { return images * rows * columns; }

    /// What the chunk reads of x and of dy, where that lies together and leaves room in L2: tiles read a few numbers of
    /// each pixel, for which the processor does not prefetch.
    struct numbers {
        const T* from = nullptr;
        std::int64_t count = 0;
    };
    std::array<numbers, 2> reads() const {
        if (columns != g.out_width || g.stride_height > g.span_height()) return {};
        const std::int64_t at = row * g.stride_height - g.pad_top;
        const std::int64_t top = std::clamp<std::int64_t>(at, 0, g.in_height);
        const std::int64_t bottom =
            std::clamp<std::int64_t>(at + (rows - 1) * g.stride_height + g.span_height(), top, g.in_height);
        const std::int64_t of_x = ((images - 1) * g.in_height + bottom - top) * g.in_width * g.in_channels;
        const std::int64_t of_dy = pixels() * g.out_channels;
        if ((of_x + of_dy) * static_cast<std::int64_t>(sizeof(T)) > large_l2_bytes() / 3) return {};
        return {numbers{x + (image * g.in_height + top) * g.in_width * g.in_channels, of_x}, numbers{own_dy(), of_dy}};
    }
    /// Part `part` of `parts` of what the next chunk reads, over `calls` of the kernel.
    std::array<tile_fetch<T>, 2> fetch(std::int64_t part, std::int64_t parts, std::int64_t calls) const {
        std::array<tile_fetch<T>, 2> all;
        if (next < 0 || plan.padded(g)) return all; // images with padding are copied first, in order
        filter_gradient_chunk then = *this;
        then.select(next);
        constexpr std::int64_t line = 64 / sizeof(T);
        const auto reads = then.reads();
        for (std::size_t i = 0; i < 2; ++i) {
            const std::int64_t lines = divide_up(reads[i].count, line), first = lines * part / parts;
            all[i].from = reads[i].from + first * line;
            all[i].lines = lines * (part + 1) / parts - first;
            all[i].step = line;
            all[i].at_once = divide_up(all[i].lines, calls * divide_up(pixels(), tile_job<T>::pause));
        }
        return all;
    }
    // The chunk's pixels of dy are contiguous.
    const T* own_dy() const { return dy + ((image * g.out_height + row) * g.out_width + column) * g.out_channels; }
    panel_layout layout() const { return {g.group_out(), kernels.lanes}; }

    // Packing is divided into tasks of some pixels of dy, all panels, so that dy is read once and
    // in order, and one task per image of x.
    static constexpr std::int64_t pack_pixels = 64;
    std::int64_t dy_tasks() const { return direct ? 0 : divide_up(pixels(), pack_pixels); }
    std::int64_t pack_tasks() const { return dy_tasks() + (plan.padded(g) ? images : 0); }
    void pack(std::int64_t task) const {
        const panel_layout panels_of = layout();
        const std::int64_t panel_tasks = dy_tasks();
        if (task < panel_tasks) {
            const std::int64_t first = task * pack_pixels, last = std::min(pixels(), first + pack_pixels);
            const std::int64_t count = panels_of.count();
            for (std::int64_t group = 0; group < g.groups; ++group) {
                const T* from = own_dy() + first * g.out_channels + group * g.group_out();
                T* to = panels + group * panels_of.size(pixels());
                for (std::int64_t i = first; i < last; ++i, from += g.out_channels) {
                    for (std::int64_t p = 0; p + 1 < count; ++p)
                        copy_line(to + panels_of.offset(p, pixels()) + i * 2 * kernels.lanes,
                                  from + p * 2 * kernels.lanes);
                    pack_panel(to + panels_of.offset(count - 1, pixels()) + i * panels_of.width(count - 1), panels_of,
                               count - 1, from, g.out_channels, false, 1);
                }
            }
            return;
        }
        const image_window window = plan.window(g);
        const std::int64_t i = task - panel_tasks;
        copy_window(
            windows + i * window.height * window.width * g.in_channels,
            x + (image + i) * g.in_height * g.in_width * g.in_channels, g.in_height, g.in_width, g.in_channels,
            {row * g.stride_height - g.pad_top, column * g.stride_width - g.pad_left, window.height, window.width});
    }

    // One panel row: two vectors of the instruction set, 32 to 128 bytes.
    void copy_line(T* to, const T* from) const {
        const int bytes = 2 * kernels.lanes * static_cast<int>(sizeof(T));
        if (bytes == 128)
            std::memcpy(to, from, 128);
        else if (bytes == 64)
            std::memcpy(to, from, 64);
        else
            std::memcpy(to, from, 32);
    }

    /// A tile's numbers of x, [pixel, row]. Pixels 256 bytes or more apart share some sets of the first-level cache,
    /// pixels a KiB apart a few, and every panel would read them from the second.
    static constexpr std::int64_t most_pixels = 800;
    void gather(T* to, const T* from, std::int64_t count) const {
        const bool padded = plan.padded(g);
        const image_window window = plan.window(g);
        const std::int64_t pixel = g.stride_width * g.in_channels, source_width = padded ? window.width : g.in_width,
                           line = g.stride_height * source_width * g.in_channels,
                           whole = (padded ? window.height : g.in_height) * source_width * g.in_channels;
        for (std::int64_t i = 0; i < images; ++i)
            for (std::int64_t j = 0; j < rows; ++j) {
                const T* at = from + i * whole + j * line;
                for (std::int64_t p = 0; p < columns; ++p, at += pixel, to += count) {
                    if (count == 12)
                        std::memcpy(to, at, 12 * sizeof(T));
                    else if (count == 6)
                        std::memcpy(to, at, 6 * sizeof(T));
                    else
                        for (std::int64_t r = 0; r < count; ++r) to[r] = at[r];
                }
            }
    }

    /// Tiles of one (group, kernel row, run): rows [begin, end) of the run, all columns.
    void multiply(std::int64_t group, std::int64_t u, std::int64_t run, std::int64_t begin, std::int64_t end, T* dw,
                  bool accumulate, std::int64_t part, std::int64_t parts) const {
        const image_window window = plan.window(g);
        const bool padded = plan.padded(g);
        const std::int64_t channels = g.in_channels;
        const std::int64_t source_row = (padded ? window.width : g.in_width) * channels;
        const T* source =
            padded
                ? windows
                : x + ((image * g.in_height + row * g.stride_height) * g.in_width + column * g.stride_width) * channels;
        const panel_layout panels_of = layout();

        tile_job<T> job{};
        job.walk = {images,  (padded ? window.height : g.in_height) * source_row,
                    rows,    g.stride_height * source_row,
                    columns, g.stride_width * channels,
                    0,       direct ? g.out_channels : 0};
        job.a_row = 1;
        job.c_row = g.out_channels;
        job.accumulate = accumulate;
        if (direct) job.b_ahead = 32 * g.out_channels; // the processor does not prefetch rows that far apart
        const T* a =
            source + u * g.dilation_height * source_row + run * g.dilation_width * channels + group * g.group_in();
        T* c = dw + (u * g.kernel_width * g.group_in() + run * plan.run_rows) * g.out_channels + group * g.group_out();
        const T* b = panels + group * panels_of.size(pixels());
        auto later = fetch(part, parts, divide_up(end - begin, kernels.rows) * panels_of.count());
        for (std::size_t i = 0; i < 2; ++i) job.later[i] = later[i].lines > 0 ? &later[i] : nullptr;
        const std::int64_t apart = job.walk.a_inner * static_cast<std::int64_t>(sizeof(T));
        const bool scattered = apart >= 256 && panels_of.count() >= (apart < 1024 ? 8 : 2) && pixels() <= most_pixels;
        alignas(64) T together[tile_kernels<T>::most_rows * most_pixels];
        for_tiles(end - begin, kernels.rows, [&](std::int64_t first, std::int64_t count) {
            job.a = a + begin + first;
            if (scattered) {
                gather(together, job.a, count);
                job.a = together;
                job.walk = {1, 0, 1, 0, pixels(), count, 0, job.walk.b_inner};
            }
            for (std::int64_t panel = 0; panel < panels_of.count(); ++panel) {
                job.b = direct ? own_dy() + panel * 2 * kernels.lanes : b + panels_of.offset(panel, pixels());
                job.c = c + (begin + first) * g.out_channels + panel * 2 * kernels.lanes;
                job.columns = panels_of.columns(panel);
                kernels.run[panels_of.vectors(panel) - 1][count - 1](job);
            }
        });
    }
};

} // namespace tapegraph::cpu::detail

namespace tapegraph::cpu {

/// Computes dw from x and dy, with shapes as in convolution_geometry.
template <class T>
void convolution_filter_gradient(const convolution_geometry& g, const T* x, const T* dy, T* dw, void* workspace) {
    if (g.kernel_height * g.kernel_width * g.in_channels <= 0 || g.out_channels <= 0) return;
    const detail::filter_gradient_plan plan(
        g.batch > 0 && g.out_height > 0 && g.out_width > 0 ? g : convolution_geometry{1, 1, 1, 1, 1, 1, 1, 1, 1});
    if (g.batch <= 0 || g.out_height <= 0 || g.out_width <= 0) {
        std::fill_n(dw, plan.filter_elements(g), T(0));
        return;
    }
    const auto& kernels = active_tile_kernels<T>();
    const int threads = thread_count();
    const std::int64_t panel_elements = plan.panel_elements(g, tile_kernels<T>::most_lanes);
    const std::int64_t window_elements = plan.window_elements(g);
    const std::int64_t filters = plan.filter_elements(g);
    const std::int64_t chunks = plan.chunks(g);
    const bool parallel = detail::worth_threads(detail::multiply_adds(g));
    detail::workspace_cutter cut(workspace);
    if (detail::is_depthwise(g))
        return detail::depthwise_filter_gradient(g, x, dy, dw, cut.take<T>(detail::depthwise_sums(g)), parallel);

    if (plan.parts > 1) {
        T* panels = cut.take<T>(threads * panel_elements);
        T* windows = cut.take<T>(threads * window_elements);
        T* sums = cut.take<T>(plan.parts * filters);
        detail::for_tasks(plan.parts, parallel, [&](std::int64_t part, int thread) {
            detail::filter_gradient_chunk<T> chunk{
                g, plan, kernels, x, dy, panels + thread * panel_elements, windows + thread * window_elements};
            const std::int64_t first = chunks * part / plan.parts, last = chunks * (part + 1) / plan.parts;
            for (std::int64_t i = first; i < last; ++i) {
                chunk.select(i);
                chunk.next = i + 1 < last ? i + 1 : -1;
                for (std::int64_t task = 0; task < chunk.pack_tasks(); ++task) chunk.pack(task);
                for (std::int64_t group = 0; group < g.groups; ++group)
                    for (std::int64_t u = 0; u < g.kernel_height; ++u)
                        for (std::int64_t run = 0; run < plan.runs; ++run)
                            chunk.multiply(group, u, run, 0, plan.run_rows, sums + part * filters, i > first,
                                           (group * g.kernel_height + u) * plan.runs + run,
                                           g.groups * g.kernel_height * plan.runs);
            }
        });
        std::copy_n(sums, filters, dw);
        for (std::int64_t part = 1; part < plan.parts; ++part) {
            const T* from = sums + part * filters;
            for (std::int64_t i = 0; i < filters; ++i) dw[i] += from[i];
        }
        return;
    }

    T* panels = cut.take<T>(panel_elements);
    T* windows = cut.take<T>(window_elements);
    detail::filter_gradient_chunk<T> chunk{g, plan, kernels, x, dy, panels, windows};
    // Divides a run's rows into shares of two tiles.
    const std::int64_t share = 2 * kernels.rows;
    const std::int64_t shares = detail::divide_up(plan.run_rows, share);
    for (std::int64_t i = 0; i < chunks; ++i) {
        chunk.select(i);
        chunk.next = i + 1 < chunks ? i + 1 : -1;
        detail::for_tasks(chunk.pack_tasks(), parallel, [&](std::int64_t task, int) { chunk.pack(task); });
        const std::int64_t tasks = g.groups * g.kernel_height * plan.runs * shares;
        detail::for_tasks(tasks, parallel, [&](std::int64_t task, int) {
            const std::int64_t part = task % shares, run = task / shares % plan.runs;
            const std::int64_t u = task / shares / plan.runs % g.kernel_height;
            chunk.multiply(task / shares / plan.runs / g.kernel_height, u, run, plan.run_rows * part / shares,
                           plan.run_rows * (part + 1) / shares, dw, i > 0, task, tasks);
        });
    }
}

} // namespace tapegraph::cpu
