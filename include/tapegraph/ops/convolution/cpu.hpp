#pragma once

#include <tapegraph/ops/convolution/cpu_fast.hpp>
#include <tapegraph/ops/convolution/cpu_filter_gradient.hpp>
#include <tapegraph/ops/convolution/cpu_forward.hpp>
#include <tapegraph/ops/convolution/cpu_input_gradient.hpp>
#include <tapegraph/ops/convolution/cpu_tiling.hpp>

/// Direct convolutions in NHWC, 1-D and 2-D, any stride, padding, dilation and number of groups. No
/// pass allocates: the caller provides a workspace of convolution_workspace_bytes, aligned to 64
/// bytes.

namespace tapegraph::cpu {

/// The workspace that a pass needs when thread_count() is at most `threads`, for any instruction
/// set; grows with the batch.
template <class T>
std::size_t convolution_workspace_bytes(const convolution_geometry& g, convolution_pass pass, int threads) {
    if (g.batch <= 0 || g.in_channels <= 0 || g.out_channels <= 0 || g.kernel_height <= 0 || g.kernel_width <= 0)
        return 0;
    constexpr int lanes = tile_kernels<T>::most_lanes;
    detail::workspace_cutter cut(nullptr);
    switch (pass) {
    case convolution_pass::forward: {
        if (g.out_height <= 0 || g.out_width <= 0) return 0;
        detail::take_forward_scratch<T>(cut, g, threads);
        if (detail::unfolds(g)) {
            detail::workspace_cutter unfolded(nullptr);
            detail::unfolded_scratch<T>(unfolded, g, true, threads);
            return std::max(cut.used(), unfolded.used());
        }
        cut.take<T>(detail::forward_filter_elements<T>(g, lanes));
        break;
    }
    case convolution_pass::input_gradient: {
        if (g.in_height <= 0 || g.in_width <= 0) return 0;
        if (detail::unfolds(g)) {
            detail::unfolded_scratch<T>(cut, g, false, threads);
            break;
        }
        const detail::input_gradient_plan plan(g);
        cut.take<T>(threads * plan.buffer_elements(g));
        cut.take<T>(plan.filter_elements(g, lanes));
        break;
    }
    case convolution_pass::filter_gradient: {
        if (g.out_height <= 0 || g.out_width <= 0) return 0;
        if (detail::is_depthwise(g)) {
            cut.take<T>(detail::depthwise_sums(g));
            break;
        }
        const detail::filter_gradient_plan plan(g);
        const std::int64_t copies = plan.parts > 1 ? threads : 1;
        cut.take<T>(copies * plan.panel_elements(g, lanes));
        cut.take<T>(copies * plan.window_elements(g));
        if (plan.parts > 1) cut.take<T>(plan.parts * plan.filter_elements(g));
        break;
    }
    }
    return cut.used();
}

} // namespace tapegraph::cpu
