#pragma once

#include <tapegraph/ops/convolution/call_geometry.hpp>
#include <tapegraph/ops/convolution/kernel.hpp>
#include <tapegraph/ops/pooling/cpu_of_convolution.hpp>
#include <tapegraph/ops/pooling/pooling.hpp>
#include <tapegraph/runtime/kernel.hpp>

namespace tapegraph {

template <bool Relu>
std::string_view convolution_bias_pool_op<Relu>::method(const kernel_call& c) {
    // The algorithm is chosen as for the convolution alone.
    return method_of<convolution_op>(runtime::unpooled_geometry(c), c.out[0]);
}

} // namespace tapegraph

namespace tapegraph::runtime {

namespace detail {
/// pooled_geometry with the algorithm of the whole convolution, so that the bits are those of the
/// three operations one by one, also where pooling ignores a row or a column.
template <class T>
convolution_geometry pooled_geometry_as_whole(const kernel_call& c) {
    convolution_geometry g = pooled_geometry(c);
    g.algorithm = cpu::detail::resolved<T>(unpooled_geometry(c), cpu::convolution_pass::forward);
    return g;
}
} // namespace detail

template <bool Relu, class T>
struct kernel<convolution_bias_pool_op<Relu>, T> {
    static std::size_t workspace(const kernel_call& c) {
        const convolution_geometry g = detail::pooled_geometry_as_whole<T>(c);
        convolution_geometry chosen = g;
        detail::announce_filters<T>(c, g, cpu::algorithm_for<T>(chosen, cpu::convolution_pass::forward));
        return detail::convolution_workspace<T>(g, cpu::convolution_pass::forward, c.kept != nullptr,
                                                cpu::convolution_pool_workspace_bytes<T>(g, thread_count()));
    }
    static void run(const kernel_call& c) {
        convolution_geometry g = detail::pooled_geometry_as_whole<T>(c);
        const T *const x = c.in[0].as<const T>(), *const w = c.in[1].as<const T>();
        const cpu::convolution_epilogue<T> epilogue{c.in[2].as<const T>(), Relu};
        if (const auto* algorithm = cpu::algorithm_for<T>(g, cpu::convolution_pass::forward)) {
            if constexpr (std::is_same_v<T, float>)
                algorithm->forward(g, x, w, c.out[0].as<T>(), c.workspace, epilogue, true,
                                   detail::kept_filters(c, g, *algorithm));
        } else {
            cpu::convolution_pool_forward<T>(g, x, w, c.out[0].as<T>(), c.workspace, epilogue,
                                             detail::kept_direct_filters<T>(c, g));
        }
    }
};

} // namespace tapegraph::runtime

#include <tapegraph/ops/compiled_kernels.hpp>
