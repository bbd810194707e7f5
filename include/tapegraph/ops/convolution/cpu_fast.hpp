#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/ops/convolution/cpu_algorithm.hpp>
#include <tapegraph/ops/convolution/cpu_fast_line.hpp>
#include <tapegraph/ops/convolution/cpu_fast_transforms.hpp>

/// Fast convolutions, with fewer products: for every tile of 4 by 4 outputs, 64 products for each
/// pair of channels instead of 400 with kernels of 5 by 5, 36 instead of 144 with 3 by 3; for long
/// kernels along a line about two per output (cpu_fast_line.hpp). Inputs and filters are
/// transformed, multiplied by the tile kernels of matrix products, and the results are transformed
/// to outputs.
///
///     forward          a thread keeps a block of transformed tiles and multiplies it by every panel of output channels
///     input gradient   the adjoint of the transforms: blocks of whole images, whose tiles are added to dx one by one
///     filter gradient  by groups of tiles: transforms inputs and gradients, then adds up products over the group

namespace tapegraph::cpu {

#if TG_DEFINES(convolution)
namespace detail {

/// Runs dispatch_fused on a transform for the plan's kernels.
template <template <int> class Transform, class Job>
void transform(const fast_plan& plan, const Job& job) {
    if (plan.taps == 3)
        dispatch_fused<Transform<3>>(&job);
    else if (plan.taps == 5)
        dispatch_fused<Transform<5>>(&job);
    else
        dispatch_fused<Transform<0>>(&job);
}

/// Calls f(first, last) for parts of `count` channels.
template <class F>
void for_channels(std::int64_t count, const F& f) {
    constexpr std::int64_t part = filter_job::most;
    for_tasks(divide_up(count, part), true,
              [&](std::int64_t task, int) { f(task * part, std::min(count, (task + 1) * part)); });
}

/// The workspace of a forward pass or, if `turned`, of an input gradient.
struct fast_forward_scratch {
    float *filters, *channels, *results;
    std::int64_t block; ///< floats of a thread's transformed channels

    /// `keeps`: the filters are stored elsewhere.
    fast_forward_scratch(workspace_cutter& cut, const fast_plan& plan, int threads, bool turned, bool keeps = false)
        : filters(keeps ? nullptr
                        : cut.take<float>(plan.products * (turned ? plan.turned_stride() : plan.filter_stride()))),
          channels(nullptr),
          results(cut.take<float>(threads * plan.products * plan.result_stride())),
          block(plan.products * plan.channel_stride(turned ? plan.out_row : plan.in_row)) {
        channels = cut.take<float>(threads * block);
    }
};

/// The products of tiles' channels, [product][tile][row], with a panel of filters of `depth` channels.
inline void multiply_panel(const fast_plan& plan, const tile_kernels<float>& kernels, const float* v, std::int64_t row,
                           const float* u, std::int64_t stride, const panel_layout& layout, std::int64_t depth,
                           std::int64_t panel, std::int64_t tiles, float* results) {
    const std::int64_t width = layout.width(panel);
    const auto& run = kernels.run[layout.vectors(panel) - 1];
    tile_job<float> job{};
    job.walk.inner = depth;
    job.a_row = row;
    job.c_row = job.columns = width;
    for (std::int64_t p = 0; p < plan.products; ++p) {
        const bool more = p + 1 < plan.products;
        job.b = u + p * stride + layout.offset(panel, depth);
        job.b_ahead = more ? stride : 0;
        const float* const a = v + p * plan.channel_stride(row);
        float* const c = results + p * plan.result_stride();
        for_tiles(tiles, kernels.rows, [&](std::int64_t first, std::int64_t count) {
            job.a = a + first * row;
            job.a_ahead = job.a + (more ? plan.channel_stride(row) : 0);
            job.c = c + first * width;
            run[count - 1](job);
        });
    }
}

/// With few tasks, threads share the panels of each task, and each thread transforms its channels
/// itself.
inline std::int64_t panel_shares(std::int64_t tasks, std::int64_t panels) {
    return std::clamp<std::int64_t>(divide_up(2 * thread_count(), tasks), 1, panels);
}

inline void transform_filters(const fast_plan& plan, const float* w, float* to) {
    for_channels(plan.g.in_channels, [&](std::int64_t first, std::int64_t last) {
        transform<filter_transform>(plan, filter_job{plan.g, &plan, w, to, plan.filter_stride(), first, last, false});
    });
}

TG_DEFINITION void fast_filters(const convolution_geometry& given, const float* w, float* to) {
    transform_filters(fast_plan(given, active_tile_kernels<float>().lanes), w, to);
}

TG_DEFINITION transformed_filters fast_filter_layout(const convolution_geometry& given) {
    const int lanes = active_tile_kernels<float>().lanes;
    const fast_plan plan(given, lanes);
    return {plan.products * plan.filter_stride(), {plan.taps, plan.transform, plan.filter_stride(), lanes}};
}

TG_DEFINITION void fast_forward(const convolution_geometry& given, const float* x, const float* w, float* y,
                                void* workspace, const convolution_epilogue<float>& epilogue, bool pooled,
                                const float* filters) {
    if (given.batch <= 0) return;
    const auto& kernels = active_tile_kernels<float>();
    const fast_plan plan(given, kernels.lanes);
    const convolution_geometry& g = plan.g;
    workspace_cutter cut(workspace);
    const fast_forward_scratch scratch(cut, plan, thread_count(), false, filters != nullptr);
    const std::int64_t stride = plan.filter_stride(), panels = plan.filters.count();
    if (filters == nullptr) transform_filters(plan, w, scratch.filters);
    const float* const u = filters == nullptr ? scratch.filters : filters;
    const std::int64_t shares = panel_shares(plan.blocks, panels);
    for_tasks(plan.blocks * shares, true, [&](std::int64_t task, int thread) {
        const std::int64_t share = task % shares, first = task / shares * fast_plan::block_tiles;
        const std::int64_t last = std::min(plan.tiles, first + fast_plan::block_tiles);
        float* const v = scratch.channels + thread * scratch.block;
        float* const results = scratch.results + thread * plan.products * plan.result_stride();
        transform<input_transform>(plan, input_job{g, &plan, x, v, first, last, plan.channel_stride(plan.in_row)});
        for (std::int64_t panel = panels * share / shares; panel < panels * (share + 1) / shares; ++panel) {
            multiply_panel(plan, kernels, v, plan.in_row, u, stride, plan.filters, g.in_channels, panel, last - first,
                           results);
            transform<output_transform>(plan, output_job{g, &plan, results, y, epilogue, first, last, panel, pooled});
        }
    });
}

TG_DEFINITION void fast_input_gradient(const convolution_geometry& given, const float* dy, const float* w, float* dx,
                                       void* workspace) {
    if (given.batch <= 0) return;
    const auto& kernels = active_tile_kernels<float>();
    const fast_plan plan(given, kernels.lanes);
    const convolution_geometry& g = plan.g;
    workspace_cutter cut(workspace);
    const fast_forward_scratch scratch(cut, plan, thread_count(), true);
    const std::int64_t stride = plan.turned_stride(), panels = plan.turned.count(), width = 2 * plan.turned.lanes;
    for_channels(g.out_channels, [&](std::int64_t first, std::int64_t last) {
        transform<filter_transform>(plan, filter_job{g, &plan, w, scratch.filters, stride, first, last, true});
    });
    const std::int64_t tasks = divide_up(g.batch, plan.images), shares = panel_shares(tasks, panels);
    for_tasks(tasks * shares, true, [&](std::int64_t task, int thread) {
        const std::int64_t share = task % shares, image = task / shares * plan.images;
        const std::int64_t images = std::min(plan.images, g.batch - image), each = plan.down * plan.across;
        const std::int64_t from = panels * share / shares, to = panels * (share + 1) / shares;
        const std::int64_t channel = from * width, channels = std::min(g.in_channels, to * width) - channel;
        for (std::int64_t i = image; i < image + images; ++i)
            for (std::int64_t at = channel; at < plan.image;
                 at += g.in_channels) // the last pixel may have fewer phases
                std::fill_n(dx + i * plan.image + at, std::min(channels, plan.image - at), 0.0f);
        float* const v = scratch.channels + thread * scratch.block;
        float* const results = scratch.results + thread * plan.products * plan.result_stride();
        // Neighbouring tiles add to the same pixels, always in this order.
        const std::int64_t end = (image + images) * each;
        for (std::int64_t first = image * each; first < end; first += plan.block) {
            const std::int64_t last = std::min(end, first + plan.block);
            transform<gradient_transform>(plan, gradient_job{g, &plan, dy, v, first, last, first, plan.block,
                                                             plan.channel_stride(plan.out_row), false});
            for (std::int64_t panel = from; panel < to; ++panel) {
                multiply_panel(plan, kernels, v, plan.out_row, scratch.filters, stride, plan.turned, g.out_channels,
                               panel, last - first, results);
                transform<input_gradient_transform>(plan,
                                                    input_gradient_job{g, &plan, results, dx, first, last, panel});
            }
        }
    });
}

/// The workspace of a filter gradient.
struct fast_filter_scratch {
    float *inputs, *gradients, *sums;

    fast_filter_scratch(workspace_cutter& cut, const fast_plan& plan)
        : inputs(cut.take<float>(plan.products * plan.input_stride())),
          gradients(cut.take<float>(plan.products * plan.gradient_stride())),
          sums(cut.take<float>(plan.products * plan.filter_stride())) {}
};

TG_DEFINITION void fast_filter_gradient(const convolution_geometry& given, const float* x, const float* dy, float* dw,
                                        void* workspace) {
    if (given.batch <= 0) {
        std::fill_n(dw, given.kernel_height * given.kernel_width * given.in_channels * given.out_channels, 0.0f);
        return;
    }
    const auto& kernels = active_tile_kernels<float>();
    const fast_plan plan(given, kernels.lanes);
    const convolution_geometry& g = plan.g;
    workspace_cutter cut(workspace);
    const fast_filter_scratch scratch(cut, plan);
    const std::int64_t stride = plan.filter_stride(), panels = plan.filters.count();
    constexpr std::int64_t part = 8; // tiles that a thread transforms per task
    for (std::int64_t begin = 0; begin < plan.tiles; begin += plan.group) {
        const std::int64_t end = std::min(plan.tiles, begin + plan.group);
        for_tasks(divide_up(end - begin, part), true, [&](std::int64_t task, int) {
            const std::int64_t first = begin + task * part, last = std::min(end, first + part);
            transform<input_transform>(plan, input_job{g, &plan, x, scratch.inputs + (first - begin) * plan.in_row,
                                                       first, last, plan.input_stride()});
            transform<gradient_transform>(plan, gradient_job{g, &plan, dy, scratch.gradients, first, last, begin,
                                                             plan.group, plan.gradient_stride(), true});
        });
        for_tasks(plan.products, true, [&](std::int64_t p, int) {
            tile_job<float> job{};
            job.walk.inner = end - begin;
            job.walk.a_inner = plan.in_row;
            job.a_row = 1;
            job.accumulate = begin > 0;
            const float* const a = scratch.inputs + p * plan.input_stride();
            for (std::int64_t panel = 0; panel < panels; ++panel) {
                const std::int64_t width = plan.filters.width(panel);
                const auto& run = kernels.run[plan.filters.vectors(panel) - 1];
                job.b = scratch.gradients + p * plan.gradient_stride() + plan.filters.offset(panel, plan.group);
                job.c_row = job.columns = width;
                float* const c = scratch.sums + p * stride + plan.filters.offset(panel, g.in_channels);
                for_tiles(g.in_channels, kernels.rows, [&](std::int64_t first, std::int64_t count) {
                    job.a = a + first;
                    job.c = c + first * width;
                    run[count - 1](job);
                });
            }
        });
    }
    for_channels(g.in_channels, [&](std::int64_t first, std::int64_t last) {
        transform<filter_gradient_transform>(plan,
                                             filter_gradient_job{g, &plan, scratch.sums, dw, stride, first, last});
    });
}

TG_DEFINITION std::size_t fast_workspace(const convolution_geometry& g, convolution_pass pass, int threads,
                                         bool keeps) {
    constexpr int lanes = tile_kernels<float>::most_lanes;
    const fast_plan plan(g, lanes);
    workspace_cutter cut(nullptr);
    if (pass == convolution_pass::filter_gradient)
        fast_filter_scratch(cut, plan);
    else
        fast_forward_scratch(cut, plan, threads, pass == convolution_pass::input_gradient, keeps);
    return cut.used();
}

} // namespace detail
#endif

} // namespace tapegraph::cpu
