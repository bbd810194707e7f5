#pragma once

#include <tapegraph/cuda/kernels/pooled_convolution.cuh>
#include <tapegraph/cuda/ops/convolution/convolution.cuh>
#include <tapegraph/ops/pooling/pooling.hpp>

#include <algorithm>

/// The kernel of convolution_bias_pool_op: the convolution's kernel itself takes the maximum of 2
/// by 2 outputs. The plan is that of the convolution alone, so sums are added in the same order.
/// Winograd's transform of the outputs pools, too. Where the plan splits k, or uses a kernel of another
/// kind, the sums go to scratch memory and are finished and pooled from there.

namespace tapegraph::cuda {

template <bool Relu, class T>
    requires std::is_floating_point_v<T>
struct kernel<convolution_bias_pool_op<Relu>, T> {
    using algorithm = convolution_algorithm;
    using pass = detail::convolution_run<T, convolution_pass::forward>;

    static std::size_t workspace(const kernel_call& c) {
        const geometries g(c);
        std::size_t most = 0;
        for (const convolution_plan& plan : planned(g).by_mode)
            if (plan.algorithm == algorithm::winograd)
                most = std::max(most, plan.workspace);
            else if (!in_one_kernel(g, plan))
                most = std::max(most, slices(g, plan) + own(plan));
        return most;
    }
    static void run(const kernel_call& c) {
        constexpr const char* name = convolution_bias_pool_op<Relu>::name.data();
        const geometries g(c);
        detail::check_convolution(g.whole, name);
        if (c.out[0].elements() == 0) return;
        const T *const x = c.in[0].as<const T>(), *const w = c.in[1].as<const T>(), *const bias = c.in[2].as<const T>();
        const convolution_plan plan = planned(g)[current_math_mode()];
        if (plan.algorithm == algorithm::winograd)
            return pass::run_by_winograd(c, name, g.whole, {x, w, c.out[0].as<T>(), bias, Relu}, true);
        if (in_one_kernel(g, plan)) {
            const detail::convolution_operands<T> o{x, w, c.out[0].as<T>(), bias, Relu};
            if (plan.algorithm == algorithm::few_channels)
                detail::run_few_channels<T, convolution_pass::forward, true>(c, name, g.even, o, o.out, 1);
            else if (plan.algorithm == algorithm::few_channels_tensor_cores)
                pooled_on_tensor_cores(c, name, g.even, o);
            else
                pass::template run_product<kernels::pooled_forward_problem<T>>(c, name, g.even, o, plan, o.out);
            return;
        }
        T* const sums = static_cast<T*>(c.workspace);
        const detail::convolution_operands<T> o{x, w, sums};
        if (is_whole(plan.algorithm)) {
            kernel_call after_slices = c;
            after_slices.workspace = static_cast<std::byte*>(c.workspace) + slices(g, plan);
            pass::run_as(after_slices, name, g.whole, o, plan);
        } else {
            pass::run_slices(c, name, g.whole, o, plan, sums);
        }
        const auto as_int = [](std::int64_t v) { return static_cast<int>(v); };
        const kernels::partial_windows<T> p{sums,
                                            c.out[0].as<T>(),
                                            g.whole.batch,
                                            as_int(g.whole.out_height),
                                            as_int(g.whole.out_width),
                                            as_int(g.even.out_height / 2),
                                            as_int(g.even.out_width / 2),
                                            as_int(g.whole.out_channels),
                                            plan.splits,
                                            bias,
                                            Relu};
        launch(c, name, {std::min(detail::pieces_of(c.out[0].elements(), 256), 65535u), 256u}, kernels::pool_splits<T>,
               p);
    }

private:
    struct geometries {
        convolution_geometry whole, even; ///< even: the part that windows cover
        explicit geometries(const kernel_call& c)
            : whole(runtime::unpooled_geometry(c)), even(runtime::pooled_geometry(c)) {}
    };
    static const convolution_plans& planned(const geometries& g) { return pass::plans(g.whole); }
    static bool in_one_kernel(const geometries& g, const convolution_plan& plan) {
        if (plan.splits > 1) return false;
        switch (plan.algorithm) {
        case algorithm::few_channels:
            return detail::few_channels_tiling(g.even, convolution_pass::forward, sizeof(T), true).valid;
        case algorithm::few_channels_tensor_cores:
            return detail::few_channels_tiling::on_tensor_cores(g.even, convolution_pass::forward, true).valid;
        case algorithm::multiply_adds:
        case algorithm::tensor_cores:
            return g.whole.kernel_height * g.whole.kernel_width * g.whole.group_in() <= kernels::longest_chain;
        default: return false;
        }
    }
    static void pooled_on_tensor_cores(const kernel_call& c, const char* name, const convolution_geometry& g,
                                       const detail::convolution_operands<T>& o) {
        if constexpr (std::is_same_v<T, float>)
            detail::run_few_channels_on_tensor_cores<convolution_pass::forward, true>(c, name, g, o, o.out, 1);
    }
    // In scratch memory: the sums, followed by what the convolution itself needs.
    static std::size_t slices(const geometries& g, const convolution_plan& plan) {
        const convolution_geometry& y = g.whole;
        const auto bytes = static_cast<std::size_t>(y.batch * y.out_height * y.out_width * y.out_channels) * sizeof(T);
        return (bytes * static_cast<std::size_t>(plan.splits) + 255) / 256 * 256;
    }
    static std::size_t own(const convolution_plan& plan) { return is_whole(plan.algorithm) ? plan.workspace : 0; }
};

} // namespace tapegraph::cuda
