#pragma once

#include <tapegraph/cuda/context.hpp>
#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/convolution.cuh>
#include <tapegraph/cuda/kernels/direct_convolution.cuh>
#include <tapegraph/cuda/kernels/few_channels.cuh>
#include <tapegraph/cuda/kernels/few_channels_tensor.cuh>
#include <tapegraph/cuda/kernels/implicit_gemm.cuh>
#include <tapegraph/cuda/kernels/tensor_gemm.cuh>
#include <tapegraph/cuda/ops/convolution/by_product.cuh>
#include <tapegraph/cuda/ops/convolution/by_winograd.cuh>
#include <tapegraph/cuda/ops/convolution/measured.cuh>
#include <tapegraph/ops/convolution/call_geometry.hpp>

/// Kernels of convolution_op, with bias and relu, and of its two gradients; depthwise, separable
/// and transposed convolutions are built from these. The algorithm is chosen by shape (choose.hpp),
/// by math_mode and, if requested, by trials (measured.cuh).

namespace tapegraph::cuda {

namespace detail {

/// Kernels count pixels, and elements within an image, in 32 bits. A batch of one group is split
/// where it has more.
inline void check_convolution(const convolution_geometry& g, const char* operation) {
    const auto within = [&](std::int64_t count, const char* what) {
        if (count > most_counted)
            throw range_error(std::string(operation) + ": a device counts at most 2^31 - 1 " + what + ", not " +
                              std::to_string(count));
    };
    const std::int64_t images = g.groups == 1 ? 1 : g.batch;
    within(images * g.in_height * g.in_width, "pixels");
    within(images * g.out_height * g.out_width, "pixels");
    within(g.in_height * g.in_width * g.in_channels, "elements of an image");
    within(g.out_height * g.out_width * g.out_channels, "elements of an image");
    within(g.kernel_height * g.kernel_width * g.in_channels, "weights of an output channel");
    within(g.kernel_height * g.kernel_width * g.out_channels, "weights of an input channel");
}

inline bool aligned_to(std::size_t bytes, std::initializer_list<const void*> addresses) {
    for (const void* a : addresses)
        if (reinterpret_cast<std::uintptr_t>(a) % bytes != 0) return false;
    return true;
}

inline unsigned pieces_of(std::int64_t whole, std::int64_t piece) {
    return static_cast<unsigned>((whole + piece - 1) / piece);
}

/// Launches a product's kernel for a plan.
template <class Problem>
struct product_launch {
    const kernel_call& call;
    const char* operation;
    const Problem& problem;

    driver::launch_shape shape(const product_tile& t, std::size_t shared) const {
        return {{pieces_of(problem.m, t.rows), pieces_of(problem.n, t.columns),
                 static_cast<unsigned>(problem.groups * problem.splits)},
                static_cast<unsigned>(t.threads),
                shared};
    }
    template <int Index, int TM, int TN, int V>
    void multiply_adds() const {
        constexpr product_tile t = multiply_add_tiles[Index];
        using tile = kernels::tile_shape<t.rows, t.columns, t.depth, TM, TN>;
        static_assert(tile::threads == t.threads);
        launch(call, operation, shape(t, 0), kernels::implicit_gemm<Problem, tile, V>, problem);
    }
    template <int Index, int WM, int WN, int V, kernels::tensor_precision Precision = kernels::tensor_precision::tf32>
    void tensor_cores() const {
        constexpr product_tile t = tensor_tiles[Index];
        using tile = kernels::tensor_tile<t.rows, t.columns, t.depth, WM, WN, 4>;
        static_assert(tile::threads == t.threads);
        launch(call, operation, shape(t, kernels::tensor_gemm_shared_bytes<Problem, tile, V>),
               kernels::tensor_gemm<Problem, tile, V, Precision>, problem);
    }

    void run(const convolution_plan& plan) const {
        const int v = plan.vector;
        if constexpr (std::is_same_v<typename Problem::T, double>) {
            v == 2 ? multiply_adds<0, 4, 8, 2>() : multiply_adds<0, 4, 8, 1>();
        } else if (plan.algorithm == convolution_algorithm::multiply_adds) {
            switch (plan.tile) {
            case 1: return multiply_adds<1, 8, 8, 4>();
            case 2: return v == 4 ? multiply_adds<2, 4, 20, 4>() : multiply_adds<2, 4, 20, 2>();
            default:
                return v == 4   ? multiply_adds<0, 4, 8, 4>()
                       : v == 2 ? multiply_adds<0, 4, 8, 2>()
                                : multiply_adds<0, 4, 8, 1>();
            }
        } else if (plan.exact) {
            constexpr auto precision = kernels::tensor_precision::tf32x3;
            v == 4   ? tensor_cores<0, 2, 2, 4, precision>()
            : v == 2 ? tensor_cores<0, 2, 2, 2, precision>()
                     : tensor_cores<0, 2, 2, 1, precision>();
        } else {
            switch (plan.tile) {
            case 1: return v == 4 ? tensor_cores<1, 2, 2, 4>() : tensor_cores<1, 2, 2, 2>();
            case 2: return v == 4 ? tensor_cores<2, 2, 4, 4>() : tensor_cores<2, 2, 4, 2>();
            case 3: return tensor_cores<3, 4, 1, 4>();
            default:
                return v == 4   ? tensor_cores<0, 2, 2, 4>()
                       : v == 2 ? tensor_cores<0, 2, 2, 2>()
                                : tensor_cores<0, 2, 2, 1>();
            }
        }
    }
};

template <class T>
struct convolution_operands {
    const T *a, *b; ///< the gathered operand, and the other one
    T* out;
    const T* bias = nullptr;
    bool relu = false;
};

/// Whether this many results are contiguous and aligned.
template <class T>
int width_of(std::int64_t n, std::int64_t pitch, const T* to) {
    int width = 16 / static_cast<int>(sizeof(T));
    while (n % width != 0 || pitch % width != 0 || !aligned_to(sizeof(T) * static_cast<std::size_t>(width), {to}))
        width /= 2;
    return width;
}

template <class T, convolution_pass Pass, int C, bool Pooled>
void launch_few_channels(const kernel_call& call, const char* operation, const few_channels_tiling& t, int splits,
                         const kernels::few_channels_problem<T>& p) {
    const auto start = [&](auto* kernel, const driver::launch_shape& shape) {
        launch(call, operation, shape, kernel, p);
    };
    const unsigned across = pieces_of(p.n, t.columns);
    if constexpr (Pass == convolution_pass::forward) {
        const driver::launch_shape shape{{static_cast<unsigned>(t.tiles), across}, 256u, t.shared};
        if constexpr (std::is_same_v<T, float>)
            if (t.sums == 10) return start(kernels::few_channels_forward<T, C, 10, Pooled>, shape);
        start(kernels::few_channels_forward<T, C, 4, Pooled>, shape);
    } else {
        const int pairs = p.tiles.taps_height * p.tiles.taps_width * C;
        const driver::launch_shape shape{
            {static_cast<unsigned>(splits), across, pieces_of(pairs, kernels::gradient_taps)}, 256u, t.shared};
        if constexpr (std::is_same_v<T, float>)
            if (t.sums == 10) return start(kernels::few_channels_filter_gradient<T, C, 10>, shape);
        start(kernels::few_channels_filter_gradient<T, C, 4>, shape);
    }
}

template <class T, convolution_pass Pass, bool Pooled = false>
void run_few_channels(const kernel_call& call, const char* operation, const convolution_geometry& g,
                      const convolution_operands<T>& o, T* to, int splits) {
    const few_channels_tiling t(g, Pass, sizeof(T), Pooled);
    kernels::few_channels_problem<T> p{kernels::pixel_tiles(g, t.pixels, t.tile_log),
                                       static_cast<int>(g.out_channels),
                                       t.columns,
                                       t.warps_across,
                                       o.a,
                                       o.b,
                                       to};
    if (splits == 1) p.bias = o.bias, p.relu = o.relu;
    p.width = std::min(2, width_of(g.out_channels, g.out_channels, to));
    switch (g.in_channels) {
    case 1: return launch_few_channels<T, Pass, 1, Pooled>(call, operation, t, splits, p);
    case 3: return launch_few_channels<T, Pass, 3, Pooled>(call, operation, t, splits, p);
    default: return launch_few_channels<T, Pass, 4, Pooled>(call, operation, t, splits, p);
    }
}

/// The same on tensor cores, in TF32.
template <convolution_pass Pass, bool Pooled = false>
void run_few_channels_on_tensor_cores(const kernel_call& call, const char* operation, const convolution_geometry& g,
                                      const convolution_operands<float>& o, float* to, int splits) {
    const few_channels_tiling t = few_channels_tiling::on_tensor_cores(g, Pass, Pooled);
    kernels::few_channels_problem<float> p{
        kernels::pixel_tiles(g, t.pixels, t.tile_log), static_cast<int>(g.out_channels), t.columns, 0, o.a, o.b, to};
    const int channels = static_cast<int>(g.in_channels);
    const int pairs = static_cast<int>(g.kernel_height * g.kernel_width * g.in_channels);
    const unsigned across = pieces_of(p.n, t.columns);
    if constexpr (Pass == convolution_pass::forward) {
        p.bias = o.bias, p.relu = o.relu;
        p.width = std::min(2, width_of(g.out_channels, g.out_channels, to));
        const std::int64_t resident = 2 * std::int64_t{context::current().properties().multiprocessors};
        const driver::launch_shape shape{{static_cast<unsigned>(std::min(t.tiles, resident)), across}, 256u, t.shared};
        launch(call, operation, shape,
               t.columns == 160 ? kernels::few_channels_tensor_forward<160, Pooled>
                                : kernels::few_channels_tensor_forward<64, Pooled>,
               p, channels, pairs);
    } else {
        const int width = std::min(2, width_of(g.out_channels, g.out_channels, o.b));
        const driver::launch_shape shape{
            {static_cast<unsigned>(splits), across, pieces_of(pairs, kernels::gradient_taps)}, 256u, t.shared};
        launch(call, operation, shape,
               t.columns == 160 ? kernels::few_channels_tensor_filter_gradient<160>
                                : kernels::few_channels_tensor_filter_gradient<64>,
               p, channels, pairs, width);
    }
}

/// Adds the slices of a split product in scratch memory.
template <class T>
void add_splits(const kernel_call& call, const char* operation, const convolution_operands<T>& o, std::int64_t count,
                int splits, std::int64_t channels) {
    launch(call, operation, {std::min(pieces_of(count, 256), 4096u), 256u}, kernels::sum_splits<T>,
           static_cast<const T*>(call.workspace), o.out, count, splits, o.bias, static_cast<int>(channels), o.relu);
}

template <class T, convolution_pass Pass>
struct convolution_run {
    /// The plans for this thread's device; valid until the next call.
    static const convolution_plans& plans(const convolution_geometry& g) {
        return plans_of<T, Pass>(g,
                                 [&g](const kernel_call& call, const T* a, const T* b, const convolution_plan& plan) {
                                     check_convolution(g, convolution_op::name.data());
                                     run_as(call, "trials of plans", g, {a, b, call.out[0].as<T>()}, plan);
                                 });
    }
    static std::size_t workspace(const convolution_geometry& g) { return plans(g).workspace; }

    template <class Forward>
    static auto problem(const convolution_geometry& g, const convolution_plan& plan, const convolution_operands<T>& o) {
        if constexpr (Pass == convolution_pass::forward)
            return Forward(g, plan.batch_innermost, o.a, o.b, o.bias, o.relu, o.out);
        else if constexpr (Pass == convolution_pass::input_gradient)
            return kernels::input_gradient_problem<T>(g, plan.batch_innermost, o.a, o.b, o.out);
        else
            return kernels::filter_gradient_problem<T>(g, o.a, o.b, o.out);
    }

    template <class Forward = kernels::forward_problem<T>>
    static void run_product(const kernel_call& call, const char* operation, const convolution_geometry& g,
                            const convolution_operands<T>& o, convolution_plan plan, T* to) {
        while (plan.vector > 1 && !aligned_to(sizeof(T) * static_cast<std::size_t>(plan.vector), {o.a, o.b})) {
            plan.vector /= 2;
            plan.tile = 0; // handles what the others cannot
        }
        auto p = problem<Forward>(g, plan, o);
        p.splits = plan.splits;
        p.out = to;
        p.width = width_of(p.n, Pass == convolution_pass::input_gradient ? g.in_channels : g.out_channels, to);
        if (plan.algorithm != convolution_algorithm::direct)
            return product_launch<decltype(p)>{call, operation, p}.run(plan);
        const std::int64_t results = static_cast<std::int64_t>(p.m) * p.n * p.groups;
        const unsigned blocks = std::min(pieces_of(results, 256), 65535u);
        if constexpr (kernels::pools_rows<Forward>)
            return; // never planned in this way
        else if constexpr (Pass == convolution_pass::filter_gradient)
            launch(call, operation, {{blocks, static_cast<unsigned>(p.splits)}, 256u},
                   kernels::direct_filter_gradient<T>, p);
        else
            launch(call, operation, {blocks, 256u}, kernels::direct_convolution<decltype(p)>, p);
    }

    static void run_by_product(const kernel_call& call, const char* operation, const convolution_geometry& g,
                               const convolution_operands<T>& o) {
        const auto multiply = [&](const gemm_arguments<T>& a) {
            gemm(static_cast<driver::stream>(call.stream), operation, a);
        };
        const convolution_by_product<T, decltype(multiply)> product(call, operation, g, call.workspace,
                                                                    convolution_workspace_limit, multiply);
        if constexpr (Pass == convolution_pass::forward)
            product.forward(o.a, o.b, o.bias, o.relu, o.out);
        else if constexpr (Pass == convolution_pass::input_gradient)
            product.input_gradient(o.a, o.b, o.out);
        else
            product.filter_gradient(o.a, o.b, o.out);
    }

    /// `pooled`: a forward pass gives the largest of 2 by 2 outputs.
    static void run_by_winograd(const kernel_call& call, const char* operation, const convolution_geometry& g,
                                const convolution_operands<T>& o, bool pooled = false) {
        if constexpr (std::is_same_v<T, float>) {
            const auto multiply = [&](const gemm_arguments<T>& a) {
                gemm(static_cast<driver::stream>(call.stream), operation, a, math_mode::fp32);
            };
            const convolution_by_winograd<decltype(multiply)> winograd(call, operation, g, Pass, call.workspace,
                                                                       convolution_workspace_limit, multiply);
            if constexpr (Pass == convolution_pass::forward)
                winograd.forward(o.a, o.b, o.bias, o.relu, pooled, o.out);
            else if constexpr (Pass == convolution_pass::input_gradient)
                winograd.input_gradient(o.a, o.b, o.out);
            else
                winograd.filter_gradient(o.a, o.b, o.out);
        }
    }

    static void run_by_warpgroups(const kernel_call& call, const char* operation, const convolution_geometry& g,
                                  const convolution_operands<T>& o) {
        const library_convolution_operands operands{o.a, o.b, o.out, o.bias, o.relu}; // not inline: nvcc 13.0
        convolution_of_library.run(operation, call.stream, g, Pass, dtype_of<T>, operands,
                                   library_scratch(call.workspace));
    }

    static void run(const kernel_call& call, const char* operation, const convolution_geometry& g,
                    const convolution_operands<T>& o) {
        check_convolution(g, operation);
        if (call.out[0].elements() == 0) return;
        const convolution_plan plan = plans(g)[current_math_mode()];
        run_as(call, operation, g, o, plan);
    }
    static void run_as(const kernel_call& call, const char* operation, const convolution_geometry& g,
                       const convolution_operands<T>& o, const convolution_plan& plan) {
        if (plan.algorithm == convolution_algorithm::product) return run_by_product(call, operation, g, o);
        if (plan.algorithm == convolution_algorithm::warpgroups) return run_by_warpgroups(call, operation, g, o);
        if (plan.algorithm == convolution_algorithm::winograd) return run_by_winograd(call, operation, g, o);
        T* const to = plan.splits > 1 ? static_cast<T*>(call.workspace) : o.out;
        run_slices(call, operation, g, o, plan, to);
        if (plan.splits > 1) add_splits(call, operation, o, call.out[0].elements(), plan.splits, g.out_channels);
    }

    /// Runs without the epilogue if the plan has several splits: `to` then receives a slice for
    /// each.
    static void run_slices(const kernel_call& call, const char* operation, const convolution_geometry& g,
                           const convolution_operands<T>& o, const convolution_plan& plan, T* to) {
        if (plan.algorithm == convolution_algorithm::few_channels) {
            if constexpr (Pass != convolution_pass::input_gradient)
                run_few_channels<T, Pass>(call, operation, g, o, to, plan.splits);
        } else if (plan.algorithm == convolution_algorithm::few_channels_tensor_cores) {
            if constexpr (Pass != convolution_pass::input_gradient && std::is_same_v<T, float>)
                run_few_channels_on_tensor_cores<Pass>(call, operation, g, o, to, plan.splits);
        } else {
            run_product(call, operation, g, o, plan, to);
        }
    }
};

} // namespace detail

template <class T>
    requires std::is_floating_point_v<T>
struct kernel<convolution_op, T> {
    using pass = detail::convolution_run<T, convolution_pass::forward>;
    static std::size_t workspace(const kernel_call& c) {
        return pass::workspace(runtime::geometry_of<convolution_op>(c));
    }
    static void run(const kernel_call& c) {
        pass::run(c, convolution_op::name.data(), runtime::geometry_of<convolution_op>(c),
                  {c.in[0].as<const T>(), c.in[1].as<const T>(), c.out[0].as<T>()});
    }
};

template <bool Relu, class T>
    requires std::is_floating_point_v<T>
struct kernel<convolution_bias_op<Relu>, T> {
    using pass = detail::convolution_run<T, convolution_pass::forward>;
    static std::size_t workspace(const kernel_call& c) {
        return pass::workspace(runtime::geometry_of<convolution_op>(c));
    }
    static void run(const kernel_call& c) {
        pass::run(c, convolution_bias_op<Relu>::name.data(), runtime::geometry_of<convolution_op>(c),
                  {c.in[0].as<const T>(), c.in[1].as<const T>(), c.out[0].as<T>(), c.in[2].as<const T>(), Relu});
    }
};

template <class T>
    requires std::is_floating_point_v<T>
struct kernel<convolution_input_gradient_op, T> {
    using op = convolution_input_gradient_op;
    using pass = detail::convolution_run<T, convolution_pass::input_gradient>;
    static std::size_t workspace(const kernel_call& c) { return pass::workspace(runtime::geometry_of<op>(c)); }
    static void run(const kernel_call& c) {
        pass::run(c, op::name.data(), runtime::geometry_of<op>(c),
                  {c.in[0].as<const T>(), c.in[1].as<const T>(), c.out[0].as<T>()});
    }
};

template <class T>
    requires std::is_floating_point_v<T>
struct kernel<convolution_filter_gradient_op, T> {
    using op = convolution_filter_gradient_op;
    using pass = detail::convolution_run<T, convolution_pass::filter_gradient>;
    static std::size_t workspace(const kernel_call& c) { return pass::workspace(runtime::geometry_of<op>(c)); }
    static void run(const kernel_call& c) {
        pass::run(c, op::name.data(), runtime::geometry_of<op>(c),
                  {c.in[0].as<const T>(), c.in[1].as<const T>(), c.out[0].as<T>()});
    }
};

} // namespace tapegraph::cuda
