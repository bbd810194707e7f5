#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/ops/convolution/cpu_algorithm.hpp>
#include <tapegraph/ops/convolution/cpu_fast_transforms.hpp>

/// Convolutions by fewer products: of every tile of 4 by 4 outputs, 64 products for each pair of channels instead of 400 with kernels of
/// 5 by 5, 36 instead of 144 with 3 by 3. Inputs and filters are transformed, multiplied product by product by the tile kernels of
/// matrix products, and the results are transformed to outputs.
///
///     forward          a thread keeps a block of transformed tiles, and goes through the panels of output channels with it
///     input gradient   the forward pass of dy with the filters turned round
///     filter gradient  group by group of tiles: inputs and gradients are transformed, then products are added up over the group

namespace tapegraph::cpu {

namespace detail {

/// `turned`: the filters are those of the convolution whose input gradient it is, and are to be turned round.
void fast_forward(const convolution_geometry& g, const float* x, const float* w, float* y, void* workspace,
                  const convolution_epilogue<float>& epilogue, bool pooled, bool turned);
void fast_filter_gradient(const convolution_geometry& g, const float* x, const float* dy, float* dw, void* workspace);
std::size_t fast_workspace(const convolution_geometry& g, convolution_pass pass, int threads);

inline void fast_outputs_of(const convolution_geometry& g, const float* x, const float* w, float* y, void* workspace,
                            const convolution_epilogue<float>& epilogue, bool pooled) {
    fast_forward(g, x, w, y, workspace, epilogue, pooled, false);
}
inline void fast_input_gradient(const convolution_geometry& g, const float* dy, const float* w, float* dx,
                                void* workspace) {
    fast_forward(turned_round(g), dy, w, dx, workspace, {}, false, true);
}
} // namespace detail

/// The passes, for float.
inline constexpr convolution_algorithm_passes fast_convolution{&detail::takes_fast, &detail::fast_workspace,
                                                               &detail::fast_outputs_of, &detail::fast_input_gradient,
                                                               &detail::fast_filter_gradient};

#if TG_DEFINES(convolution)
namespace detail {

/// dispatch_fused of a transform for kernels of 3 or 5 taps.
template <template <int> class Transform, class Job>
void transform(std::int64_t taps, const Job& job) {
    if (taps == 3)
        dispatch_fused<Transform<3>>(&job);
    else
        dispatch_fused<Transform<5>>(&job);
}

/// Calls f(first, last) for parts of `count` channels.
template <class F>
void for_channels(std::int64_t count, const F& f) {
    constexpr std::int64_t part = filter_job::most;
    for_tasks(divide_up(count, part), true,
              [&](std::int64_t task, int) { f(task * part, std::min(count, (task + 1) * part)); });
}

/// Parts of the workspace of a forward pass.
struct fast_forward_scratch {
    float *filters, *inputs, *results;

    fast_forward_scratch(workspace_cutter& cut, const convolution_geometry& g, const fast_plan& plan, int threads)
        : filters(cut.take<float>(plan.products * plan.filter_stride(g))),
          inputs(cut.take<float>(threads * plan.input_block())),
          results(cut.take<float>(threads * plan.result_block())) {}
};

/// The products of a block's tiles with a panel's filters.
inline void multiply_panel(const fast_plan& plan, const tile_kernels<float>& kernels, const float* v, const float* u,
                           std::int64_t filter_stride, std::int64_t channels, std::int64_t panel, std::int64_t tiles,
                           float* results) {
    const std::int64_t width = plan.filters.width(panel);
    const auto& run = kernels.run[plan.filters.vectors(panel) - 1];
    tile_job<float> job{};
    job.walk.inner = channels;
    job.a_row = plan.in_row;
    job.c_row = job.columns = width;
    for (std::int64_t p = 0; p < plan.products; ++p) {
        job.b = u + p * filter_stride + plan.filters.offset(panel, channels);
        const float* const a = v + p * fast_plan::block_tiles * plan.in_row;
        float* const c = results + p * fast_plan::block_tiles * width;
        for_tiles(tiles, kernels.rows, [&](std::int64_t first, std::int64_t count) {
            job.a = a + first * plan.in_row;
            job.c = c + first * width;
            run[count - 1](job);
        });
    }
}

TG_DEFINITION void fast_forward(const convolution_geometry& g, const float* x, const float* w, float* y,
                                void* workspace, const convolution_epilogue<float>& epilogue, bool pooled,
                                bool turned) {
    if (g.batch <= 0) return;
    const auto& kernels = active_tile_kernels<float>();
    const fast_plan plan(g, kernels.lanes);
    workspace_cutter cut(workspace);
    const fast_forward_scratch scratch(cut, g, plan, thread_count());
    const std::int64_t stride = plan.filter_stride(g);
    for_channels(g.in_channels, [&](std::int64_t first, std::int64_t last) {
        transform<filter_transform>(g.kernel_width, filter_job{g.in_channels, g.out_channels, &plan, w, scratch.filters,
                                                               stride, first, last, turned});
    });
    const std::int64_t panels = plan.filters.count();
    // Few blocks: threads share the panels of each, and every one transforms the block's inputs for itself.
    const std::int64_t shares = std::clamp<std::int64_t>(divide_up(2 * thread_count(), plan.blocks), 1, panels);
    for_tasks(plan.blocks * shares, true, [&](std::int64_t task, int thread) {
        const std::int64_t share = task % shares, first = task / shares * fast_plan::block_tiles;
        const std::int64_t last = std::min(plan.tiles, first + fast_plan::block_tiles);
        float* const v = scratch.inputs + thread * plan.input_block();
        float* const results = scratch.results + thread * plan.result_block();
        transform<input_transform>(g.kernel_width,
                                   input_job{g, &plan, x, v, first, last, fast_plan::block_tiles * plan.in_row});
        for (std::int64_t panel = panels * share / shares; panel < panels * (share + 1) / shares; ++panel) {
            multiply_panel(plan, kernels, v, scratch.filters, stride, g.in_channels, panel, last - first, results);
            transform<output_transform>(g.kernel_width,
                                        output_job{g, &plan, results, y, epilogue, first, last, panel, pooled});
        }
    });
}

/// Parts of the workspace of a filter gradient.
struct fast_filter_scratch {
    float *inputs, *gradients, *sums;

    fast_filter_scratch(workspace_cutter& cut, const convolution_geometry& g, const fast_plan& plan)
        : inputs(cut.take<float>(plan.input_group())),
          gradients(cut.take<float>(plan.gradient_group())),
          sums(cut.take<float>(plan.products * plan.filter_stride(g))) {}
};

TG_DEFINITION void fast_filter_gradient(const convolution_geometry& g, const float* x, const float* dy, float* dw,
                                        void* workspace) {
    if (g.batch <= 0) {
        std::fill_n(dw, g.kernel_height * g.kernel_width * g.in_channels * g.out_channels, 0.0f);
        return;
    }
    const auto& kernels = active_tile_kernels<float>();
    const fast_plan plan(g, kernels.lanes);
    workspace_cutter cut(workspace);
    const fast_filter_scratch scratch(cut, g, plan);
    const std::int64_t stride = plan.filter_stride(g), panels = plan.filters.count();
    constexpr std::int64_t part = 8; // tiles that a thread transforms before it asks for others
    for (std::int64_t begin = 0; begin < plan.tiles; begin += plan.group) {
        const std::int64_t end = std::min(plan.tiles, begin + plan.group);
        for_tasks(divide_up(end - begin, part), true, [&](std::int64_t task, int) {
            const std::int64_t first = begin + task * part, last = std::min(end, first + part);
            transform<input_transform>(g.kernel_width,
                                       input_job{g, &plan, x, scratch.inputs + (first - begin) * plan.in_row, first,
                                                 last, plan.group * plan.in_row});
            transform<gradient_transform>(
                g.kernel_width, gradient_job{g, &plan, dy, scratch.gradients, first, last, begin, plan.group});
        });
        for_tasks(plan.products, true, [&](std::int64_t p, int) {
            tile_job<float> job{};
            job.walk.inner = end - begin;
            job.walk.a_inner = plan.in_row;
            job.a_row = 1;
            job.accumulate = begin > 0;
            const float* const a = scratch.inputs + p * plan.group * plan.in_row;
            for (std::int64_t panel = 0; panel < panels; ++panel) {
                const std::int64_t width = plan.filters.width(panel);
                const auto& run = kernels.run[plan.filters.vectors(panel) - 1];
                job.b = scratch.gradients + p * plan.group * plan.in_panels + plan.filters.offset(panel, plan.group);
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
        transform<filter_gradient_transform>(g.kernel_width,
                                             filter_gradient_job{g, &plan, scratch.sums, dw, stride, first, last});
    });
}

TG_DEFINITION std::size_t fast_workspace(const convolution_geometry& g, convolution_pass pass, int threads) {
    constexpr int lanes = tile_kernels<float>::most_lanes;
    workspace_cutter cut(nullptr);
    if (pass == convolution_pass::filter_gradient) {
        fast_filter_scratch(cut, g, fast_plan(g, lanes));
    } else {
        const convolution_geometry of = pass == convolution_pass::forward ? g : turned_round(g);
        fast_forward_scratch(cut, of, fast_plan(of, lanes), threads);
    }
    return cut.used();
}

} // namespace detail
#endif

} // namespace tapegraph::cpu
