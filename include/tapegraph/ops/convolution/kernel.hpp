#pragma once

#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/ops/convolution/call_geometry.hpp>
#include <tapegraph/ops/convolution/cpu.hpp>
#include <tapegraph/ops/convolution/kept_filters_kernel.hpp>
#include <tapegraph/runtime/kernel.hpp>
#include <tapegraph/runtime/widened.hpp>

/// Kernels of convolutions.

namespace tapegraph {

namespace detail {
template <class Op>
inline constexpr cpu::convolution_pass pass_of =
    std::is_same_v<Op, convolution_input_gradient_op>    ? cpu::convolution_pass::input_gradient
    : std::is_same_v<Op, convolution_filter_gradient_op> ? cpu::convolution_pass::filter_gradient
                                                         : cpu::convolution_pass::forward;
} // namespace detail

template <class Op>
std::string_view detail::convolution_operation::method_of(const convolution_geometry& g, const buffer_view& to) {
    if (to.type != dtype::f32) return {};
    if (to.memory != 0) {
        const auto method = method_on_device<Op> == nullptr ? std::string_view() : method_on_device<Op>(g, to);
        if (!method.empty() || current_math_mode() == math_mode::fp32) return method;
        return name_of(current_math_mode());
    }
    switch (cpu::detail::resolved<float>(g, pass_of<Op>)) {
    case convolution_algorithm::winograd: return "winograd";
    case convolution_algorithm::fourier: return "fourier";
    default: return {};
    }
}
inline std::string_view convolution_op::method(const kernel_call& c) {
    return method_of<convolution_op>(runtime::geometry_of<convolution_op>(c), c.out[0]);
}
inline std::string_view convolution_input_gradient_op::method(const kernel_call& c) {
    using op = convolution_input_gradient_op;
    return method_of<op>(runtime::geometry_of<op>(c), c.out[0]);
}
inline std::string_view convolution_filter_gradient_op::method(const kernel_call& c) {
    using op = convolution_filter_gradient_op;
    return method_of<op>(runtime::geometry_of<op>(c), c.out[0]);
}
template <bool Relu>
std::string_view convolution_bias_op<Relu>::method(const kernel_call& c) {
    return convolution_op::method(c);
}

} // namespace tapegraph

namespace tapegraph::runtime {

namespace detail {
/// `direct`: bytes of direct sums. Memory planned for a batch must suffice for smaller ones, which
/// may use direct sums where the batch itself does not.
template <class T>
std::size_t convolution_workspace(convolution_geometry g, cpu::convolution_pass pass, bool keeps, std::size_t direct) {
    const auto* const algorithm = cpu::algorithm_for<T>(g, pass);
    return algorithm == nullptr ? direct : std::max(direct, algorithm->workspace(g, pass, thread_count(), keeps));
}
template <class T>
std::size_t convolution_workspace(const convolution_geometry& g, cpu::convolution_pass pass, bool keeps = false) {
    return convolution_workspace<T>(g, pass, keeps, cpu::convolution_workspace_bytes<T>(g, pass, thread_count()));
}
} // namespace detail

template <class T>
struct kernel<convolution_op, T> {
    static convolution_geometry shape_of(const kernel_call& c) { return geometry_of<convolution_op>(c); }
    static std::size_t workspace(const kernel_call& c) {
        convolution_geometry g = shape_of(c);
        detail::announce_filters<T>(c, g, cpu::algorithm_for<T>(g, cpu::convolution_pass::forward));
        return detail::convolution_workspace<T>(shape_of(c), cpu::convolution_pass::forward, c.kept != nullptr);
    }
    static void run(const kernel_call& c) { run(c, {}); }
    static void run(const kernel_call& c, cpu::convolution_epilogue<T> epilogue) {
        epilogue.next = c.next;
        convolution_geometry g = shape_of(c);
        if (const auto* algorithm = cpu::algorithm_for<T>(g, cpu::convolution_pass::forward)) {
            if constexpr (std::is_same_v<T, float>)
                algorithm->forward(g, c.in[0].as<const T>(), c.in[1].as<const T>(), c.out[0].as<T>(), c.workspace,
                                   epilogue, false, detail::kept_filters(c, g, *algorithm));
        } else {
            cpu::convolution_forward<T>(g, c.in[0].as<const T>(), c.in[1].as<const T>(), c.out[0].as<T>(), c.workspace,
                                        epilogue, detail::kept_direct_filters<T>(c, g));
        }
    }
};

template <bool Relu, class T>
struct kernel<convolution_bias_op<Relu>, T> {
    static std::size_t workspace(const kernel_call& c) { return kernel<convolution_op, T>::workspace(c); }
    static void run(const kernel_call& c) { kernel<convolution_op, T>::run(c, {c.in[2].as<const T>(), Relu}); }
};

template <class T>
struct kernel<convolution_input_gradient_op, T> {
    static convolution_geometry shape_of(const kernel_call& c) { return geometry_of<convolution_input_gradient_op>(c); }
    static std::size_t workspace(const kernel_call& c) {
        return detail::convolution_workspace<T>(shape_of(c), cpu::convolution_pass::input_gradient);
    }
    static void run(const kernel_call& c) {
        convolution_geometry g = shape_of(c);
        const T *const dy = c.in[0].as<const T>(), *const w = c.in[1].as<const T>();
        if (const auto* algorithm = cpu::algorithm_for<T>(g, cpu::convolution_pass::input_gradient)) {
            if constexpr (std::is_same_v<T, float>) algorithm->input_gradient(g, dy, w, c.out[0].as<T>(), c.workspace);
        } else {
            cpu::convolution_input_gradient<T>(g, dy, w, c.out[0].as<T>(), c.workspace);
        }
    }
};

template <class T>
struct kernel<convolution_filter_gradient_op, T> {
    static convolution_geometry shape_of(const kernel_call& c) {
        return geometry_of<convolution_filter_gradient_op>(c);
    }
    static std::size_t workspace(const kernel_call& c) {
        return detail::convolution_workspace<T>(shape_of(c), cpu::convolution_pass::filter_gradient);
    }
    static void run(const kernel_call& c) {
        convolution_geometry g = shape_of(c);
        const T *const x = c.in[0].as<const T>(), *const dy = c.in[1].as<const T>();
        if (const auto* algorithm = cpu::algorithm_for<T>(g, cpu::convolution_pass::filter_gradient)) {
            if constexpr (std::is_same_v<T, float>) algorithm->filter_gradient(g, x, dy, c.out[0].as<T>(), c.workspace);
        } else {
            cpu::convolution_filter_gradient<T>(g, x, dy, c.out[0].as<T>(), c.workspace);
        }
    }
};

// Sums are rounded once, together with the bias and relu of the three fused operations.
template <bool Relu, storage_type T>
struct kernel<convolution_bias_op<Relu>, T> {
    static std::size_t workspace(const kernel_call& c) {
        const detail::widened_call wide(c);
        return wide.bytes + kernel<convolution_op, float>::workspace(wide.call);
    }
    static void run(const kernel_call& c) {
        const detail::widened_call wide(c);
        wide.load(c);
        kernel<convolution_op, float>::run(wide.call);
        const std::int64_t channels = c.in[2].elements(), pixels = channels == 0 ? 0 : c.out[0].elements() / channels;
        const float *const sums = wide.call.out[0].as<const float>(), *const bias = wide.call.in[2].as<const float>();
        constexpr std::int64_t piece = 16384;
        const std::int64_t rows = std::max<std::int64_t>(1, piece / std::max<std::int64_t>(1, channels));
        cpu::parallel_for((pixels + rows - 1) / rows, pixels * channels >= 4 * piece, [&](std::int64_t task) {
            const std::int64_t first = task * rows, count = std::min(rows, pixels - first);
            cpu::dispatch<cpu::detail::narrow_biased_body<T, Relu>>(c.out[0].as<T>() + first * channels, channels,
                                                                    sums + first * channels, channels, bias, count,
                                                                    channels);
        });
    }
};

} // namespace tapegraph::runtime

#include <tapegraph/ops/compiled_kernels.hpp>
