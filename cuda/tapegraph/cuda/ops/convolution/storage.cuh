#pragma once

#include <tapegraph/cuda/kernels/finish_product.cuh>
#include <tapegraph/cuda/ops/convolution/convolution.cuh>
#include <tapegraph/cuda/widened.cuh>
#include <tapegraph/ops/convolution/kernel.hpp>

#include <algorithm>

/// Convolutions of 16-bit elements. Those whose outputs depend on one pixel are matrix products of
/// the library. Others are computed by warpgroups (library_convolution.hpp), or on tensor cores
/// with float sums in scratch memory, which a second kernel adds up, finishes and rounds. Where
/// neither works (odd channels, few of them, an older device), float kernels between conversions
/// take over. Convolution, bias and relu each round their result, as they do when run separately.
/// The math_mode does not matter: products of 16-bit elements are exact in float.

namespace tapegraph::cuda {

namespace detail {

template <class T, convolution_pass Pass>
struct narrow_convolution {
    convolution_geometry g;
    convolution_plan plan;
    bool by_warpgroups = false, on_cores = false;

    explicit narrow_convolution(const convolution_geometry& of) : g(of) {
        const convolution_device device = this_convolution_device();
        // the 16-bit types have separate plans, told apart by a size of 3 bytes that no element
        // type has.
        constexpr std::size_t element = std::is_same_v<T, half> ? sizeof(T) : sizeof(T) + 1;
        plan = known_convolution_plans::predictions().of(of, Pass, element, device, [&](const auto&) {
            return convolution_plans::of_modes(
                [&](math_mode) { return choose_narrow_convolution(of, Pass, dtype_of<T>, device); });
        })[math_mode::tf32];
        by_warpgroups = plan.algorithm == convolution_algorithm::warpgroups;
        on_cores = plan.algorithm == convolution_algorithm::tensor_cores && lanes() >= 2;
        plan.vector = lanes() % 8 == 0 ? 8 : 2;
        plan.tile = plan.tile == 2 ? 2 : 0; // the others serve narrow results
    }
    std::size_t workspace() const {
        return by_warpgroups ? plan.workspace : slice() * sizeof(float) * static_cast<std::size_t>(plan.splits);
    }

    /// Computes the sums of the splits.
    void run(const kernel_call& call, const char* operation, const T* a, const T* b, float* sums) const {
        check_convolution(g, operation);
        convolution_plan aligned = plan;
        if (!aligned_to(16, {a, b})) aligned.vector = 2;
        if constexpr (Pass == convolution_pass::forward)
            launch_on(call, operation, aligned,
                      kernels::forward_problem<T>(g, plan.batch_innermost, a, b, nullptr, false, sums));
        else if constexpr (Pass == convolution_pass::input_gradient)
            launch_on(call, operation, aligned,
                      kernels::input_gradient_problem<T>(g, plan.batch_innermost, a, b, sums));
        else
            launch_on(call, operation, aligned, kernels::filter_gradient_problem<T>(g, a, b, sums));
    }
    /// c = relu(sum of the splits + bias).
    void finish(const kernel_call& call, const char* operation, const float* sums, const T* bias, std::int64_t channels,
                T* c, bool relu) const {
        const std::int64_t rows = static_cast<std::int64_t>(slice()) / channels;
        launch(call, operation, {static_cast<unsigned>(std::min<std::int64_t>((rows + 7) / 8, 65535)), dim3(32, 8)},
               kernels::narrow_product<T>, sums, bias, c, rows, channels, relu, plan.splits);
    }

private:
    /// The number of contiguous channels wherever an operand is read.
    std::int64_t lanes() const {
        const std::int64_t together =
            Pass == convolution_pass::input_gradient ? g.group_out() : g.group_in() | g.group_out();
        return together % 8 == 0 ? 8 : together % 2 == 0 ? 2 : 1;
    }
    std::size_t slice() const {
        const product_extents e(g, Pass);
        return static_cast<std::size_t>(e.m * e.n * g.groups);
    }
    template <class Problem>
    static void launch_on(const kernel_call& call, const char* operation, const convolution_plan& how, Problem p) {
        p.splits = how.splits;
        p.width = width_of(p.n, Pass == convolution_pass::input_gradient ? p.s.in_channels : p.s.out_channels, p.out);
        const product_launch<Problem> start{call, operation, p};
        if (how.tile == 2)
            how.vector == 8 ? start.template tensor_cores<2, 2, 4, 8>() : start.template tensor_cores<2, 2, 4, 2>();
        else
            how.vector == 8 ? start.template tensor_cores<0, 2, 2, 8>() : start.template tensor_cores<0, 2, 2, 2>();
    }
};

/// A pass of a convolution whose outputs depend on one pixel: the product of two matrices in place.
template <class T, convolution_pass Pass>
gemm_arguments<T> pixelwise_product(const convolution_geometry& g, const T* a, const T* b, T* c) {
    const std::int64_t pixels = g.batch * g.out_height * g.out_width, in = g.in_channels, out = g.out_channels;
    gemm_arguments<T> p;
    p.a = a, p.b = b, p.c = c, p.ldb = out;
    if constexpr (Pass == convolution_pass::forward) {
        p.m = pixels, p.n = out, p.k = in, p.lda = in, p.ldc = out;
    } else if constexpr (Pass == convolution_pass::input_gradient) {
        p.m = pixels, p.n = in, p.k = out, p.lda = out, p.ldc = in, p.transpose_b = true;
    } else {
        p.m = in, p.n = out, p.k = pixels, p.lda = in, p.ldc = out, p.transpose_a = true;
    }
    return p;
}

/// Scratch memory and execution of a call of one of the three passes, without the fallback to float
/// kernels.
template <class Op, class T, convolution_pass Pass>
struct narrow_call {
    static bool by_library(const convolution_geometry& g) {
        return is_pixelwise(g) && context::current().properties().major >= 8;
    }
    static std::size_t workspace(const kernel_call& c) {
        const convolution_geometry g = runtime::geometry_of<Op>(c);
        if (by_library(g)) return 0;
        const narrow_convolution<T, Pass> n(g);
        if (n.on_cores || n.by_warpgroups) return n.workspace();
        const runtime::detail::widened_call wide(c);
        return wide.bytes + kernel<Op, float>::workspace(wide.call);
    }
    /// Returns false if the cores cannot do it and the caller must use float kernels; `bias` may be
    /// null.
    static bool run(const kernel_call& c, const char* operation, const T* bias, bool relu) {
        const convolution_geometry g = runtime::geometry_of<Op>(c);
        if (by_library(g)) {
            auto p = pixelwise_product<T, Pass>(g, c.in[0].as<const T>(), c.in[1].as<const T>(), c.out[0].as<T>());
            p.bias = bias, p.relu = relu;
            gemm(static_cast<driver::stream>(c.stream), operation, p);
            return true;
        }
        const narrow_convolution<T, Pass> n(g);
        if (!n.on_cores && !n.by_warpgroups) return false;
        if (c.out[0].elements() == 0) return true;
        if (n.by_warpgroups) {
            convolution_of_library.run(operation, c.stream, g, Pass, dtype_of<T>,
                                       {c.in[0].data, c.in[1].data, c.out[0].data, bias, relu},
                                       library_scratch(c.workspace));
            return true;
        }
        auto* const sums = static_cast<float*>(c.workspace);
        n.run(c, operation, c.in[0].as<const T>(), c.in[1].as<const T>(), sums);
        n.finish(c, operation, sums, bias, Pass == convolution_pass::input_gradient ? g.in_channels : g.out_channels,
                 c.out[0].as<T>(), relu);
        return true;
    }
};

template <class Op, convolution_pass Pass>
struct widened_convolution {
    static std::size_t workspace(const kernel_call& c) {
        std::size_t bytes = 0;
        storage_types::visit(c.in[0].type,
                             [&]<class T>(std::type_identity<T>) { bytes = narrow_call<Op, T, Pass>::workspace(c); });
        return bytes;
    }
    static void run(const kernel_call& c) {
        bool done = false;
        storage_types::visit(c.in[0].type, [&]<class T>(std::type_identity<T>) {
            done = narrow_call<Op, T, Pass>::run(c, Op::name.data(), nullptr, false);
        });
        if (done) return;
        const runtime::detail::widened_call wide(c);
        storage_types::visit(c.in[0].type, [&]<class T>(std::type_identity<T>) {
            for (int i = 0; i < 2; ++i) convert<float, T>(c, wide.call.in[i], c.in[i]);
            kernel<Op, float>::run(wide.call);
            convert<T, float>(c, c.out[0], wide.call.out[0]);
        });
    }
};

} // namespace detail

template <>
struct widened_kernel<convolution_op> : detail::widened_convolution<convolution_op, convolution_pass::forward> {};
template <>
struct widened_kernel<convolution_input_gradient_op>
    : detail::widened_convolution<convolution_input_gradient_op, convolution_pass::input_gradient> {};
template <>
struct widened_kernel<convolution_filter_gradient_op>
    : detail::widened_convolution<convolution_filter_gradient_op, convolution_pass::filter_gradient> {};

template <bool Relu, storage_type T>
struct kernel<convolution_bias_op<Relu>, T> {
    using narrow = detail::narrow_call<convolution_op, T, convolution_pass::forward>;
    static std::size_t workspace(const kernel_call& c) { return narrow::workspace(c); }
    static void run(const kernel_call& c) {
        constexpr const char* name = convolution_bias_op<Relu>::name.data();
        if (narrow::run(c, name, c.in[2].as<const T>(), Relu)) return;
        const runtime::detail::widened_call wide(c);
        for (int i = 0; i < 2; ++i) detail::convert<float, T>(c, wide.call.in[i], c.in[i]);
        kernel<convolution_op, float>::run(wide.call);
        const std::int64_t channels = c.in[2].elements();
        if (c.out[0].elements() == 0) return;
        const std::int64_t pixels = c.out[0].elements() / channels;
        launch(c, name, {static_cast<unsigned>(std::min<std::int64_t>((pixels + 7) / 8, 65535)), dim3(32, 8)},
               kernels::narrow_product<T>, wide.call.out[0].as<const float>(), c.in[2].as<const T>(), c.out[0].as<T>(),
               pixels, channels, Relu, 1);
    }
};

} // namespace tapegraph::cuda
