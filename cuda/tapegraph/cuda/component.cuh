#pragma once

#include <tapegraph/cuda/kernel.cuh>

/// The device's half of the compiled component, `tapegraph::cuda_kernels` to CMake: kernels that depend on no model, compiled by nvcc
/// once per build. core/component.hpp tells of the host's half, which a program with this one has, too.
///
/// TG_CUDA_COMPONENT says which it is: not defined, everything is compiled where it is used; 1, the program links the component;
/// 2, the component itself is being compiled, and TG_CUDA_PART is which of its parts. What is in no list here is compiled by the
/// program: fused regions, reductions of them, operations of the user's.

#ifdef TG_CUDA_COMPONENT
#ifndef TG_COMPONENT
#error "TG_CUDA_COMPONENT goes with TG_COMPONENT: link tapegraph::cuda_kernels, which defines both"
#endif
#if TG_CUDA_COMPONENT == 1
#undef TG_CUDA_PART
#define TG_CUDA_PART none
#elif !defined(TG_CUDA_PART)
#error "TG_CUDA_COMPONENT is 2 for the sources of tapegraph::cuda_kernels alone; who links it defines it as 1"
#endif
#endif

namespace tapegraph::cuda {

#if TG_CUDA_COMPONENT == 2
template <class Op, class T>
void compiled_kernel<Op, T>::run(const kernel_call& call) {
    constexpr runtime::kernel_functions functions = defined_kernel<Op, T>();
    functions.run(call);
}
template <class Op, class T>
std::size_t compiled_kernel<Op, T>::workspace(const kernel_call& call) {
    constexpr runtime::kernel_functions functions = defined_kernel<Op, T>();
    return functions.workspace(call);
}
template <class Op, class T>
void compiled_reduction<Op, T>::run(const kernel_call& call) {
    reduction_kernel<Op, region<slots<dtype_of<T>>, results<0>>, T>::run(call);
}
template <class Op, class T>
std::size_t compiled_reduction<Op, T>::workspace(const kernel_call& call) {
    return reduction_kernel<Op, region<slots<dtype_of<T>>, results<0>>, T>::workspace(call);
}
#endif

using runtime::common_types, runtime::computed_types, runtime::element_types, runtime::floating_types, runtime::number_types;

// F(part, types, operation): which of an operation's kernels the component holds, and in which of its parts.
#define TG_KERNELS_ON_DEVICE(F)                                                                                        \
    F(convolution, floating_types, convolution_op)                                                                     \
    F(convolution, floating_types, convolution_input_gradient_op)                                                      \
    F(convolution, floating_types, convolution_filter_gradient_op)                                                     \
    F(convolution, floating_types, convolution_bias_op<false>)                                                         \
    F(convolution, floating_types, convolution_bias_op<true>)                                                          \
    F(ordering, number_types, cumulative_sum_op)                                                                       \
    F(ordering, number_types, cumulative_product_op)                                                                   \
    F(movement, common_types, gather_op)                                                                               \
    F(movement, common_types, gather_nd_op)                                                                            \
    F(movement, common_types, take_along_op)                                                                           \
    F(movement, number_types, scatter_add_op)                                                                          \
    F(movement, number_types, scatter_nd_op)                                                                           \
    F(movement, number_types, put_along_op)                                                                            \
    F(movement, common_types, transpose_op)                                                                            \
    F(movement, common_types, slice_op)                                                                                \
    F(movement, common_types, pad_op)                                                                                  \
    F(movement, common_types, index_map_op)                                                                            \
    F(movement, number_types, index_map_adjoint_op)                                                                    \
    F(movement, common_types, concat_op)                                                                               \
    F(ordering, common_types, argsort_op)                                                                              \
    F(ordering, common_types, arg_reduce_op)                                                                           \
    F(pooling, floating_types, max_pool_op)                                                                            \
    F(pooling, floating_types, max_pool_gradient_op)                                                                   \
    F(pooling, floating_types, max_pool_select_op)                                                                     \
    F(pooling, floating_types, average_pool_op)                                                                        \
    F(pooling, floating_types, average_pool_gradient_op)                                                               \
    F(pooling, floating_types, lp_pool_op)                                                                             \
    F(pooling, floating_types, tapegraph::detail::lp_pool_gradient_op)                                                 \
    F(pooling, floating_types, tapegraph::detail::lp_pool_slope_op)                                                    \
    F(pooling, floating_types, convolution_bias_pool_op<false>)                                                        \
    F(pooling, floating_types, convolution_bias_pool_op<true>)                                                         \
    F(ordering, floating_types, matmul_op)                                                                             \
    F(ordering, floating_types, matmul_bias_op<false>)                                                                 \
    F(ordering, floating_types, matmul_bias_op<true>)                                                                  \
    F(movement, element_types<float>, random_op<float>)                                                                \
    F(movement, element_types<double>, random_op<double>)                                                              \
    F(movement, element_types<half>, random_op<half>)                                                                  \
    F(movement, element_types<bfloat16>, random_op<bfloat16>)                                                          \
    F(movement, element_types<std::int32_t>, random_integer_op<std::int32_t>)                                          \
    F(movement, element_types<std::int64_t>, random_integer_op<std::int64_t>)                                          \
    F(reduction, element_types<double>, tapegraph::detail::length_op)                                                  \
    F(reduction, floating_types, softmax_op)                                                                           \
    F(reduction, floating_types, log_softmax_op)                                                                       \
    F(reduction, floating_types, softmax_gradient_op)                                                                  \
    F(reduction, floating_types, log_softmax_gradient_op)                                                              \
    F(reduction, number_types, prod_op)                                                                                \
    F(reduction, number_types, max_op)                                                                                 \
    F(reduction, number_types, min_op)

// F(part, types, operation): the same of reductions of tensors in memory.
#define TG_REDUCTIONS_ON_DEVICE(F)                                                                                     \
    F(reduction, number_types, sum_op)                                                                                 \
    F(reduction, number_types, prod_op)                                                                                \
    F(reduction, number_types, max_op)                                                                                 \
    F(reduction, number_types, min_op)                                                                                 \
    F(reduction, element_types<bool>, any_op)                                                                          \
    F(reduction, element_types<bool>, all_op)

#ifdef TG_CUDA_COMPONENT
#define TG_COMPILED_ON_DEVICE(part, types, ...)                                                                        \
    template <>                                                                                                        \
    inline constexpr types compiled_types<__VA_ARGS__>;
TG_KERNELS_ON_DEVICE(TG_COMPILED_ON_DEVICE)
#undef TG_COMPILED_ON_DEVICE
#define TG_COMPILED_ON_DEVICE(part, types, ...)                                                                        \
    template <>                                                                                                        \
    inline constexpr types compiled_reductions<__VA_ARGS__>;
TG_REDUCTIONS_ON_DEVICE(TG_COMPILED_ON_DEVICE)
#undef TG_COMPILED_ON_DEVICE
#endif

#if TG_CUDA_COMPONENT == 2
/// nvcc compiles a kernel when something that is no template comes to launch it; an explicit instantiation on the host is not enough.
template <template <class, class> class Functions, class Op, class... T>
void hold(element_types<T...>, void (*take)(runtime::kernel_functions)) {
    (take({&Functions<Op, T>::run, &Functions<Op, T>::workspace}), ...);
}
[[gnu::used]] static void hold_kernels(void (*take)(runtime::kernel_functions)) {
#define TG_HELD_HERE(part, types)                                                                                      \
    std::conditional_t<TG_PART_##part == TG_NUMBER_OF_PART(TG_CUDA_PART), types, element_types<>>()
#define TG_HELD_ON_DEVICE(part, types, ...) hold<compiled_kernel, __VA_ARGS__>(TG_HELD_HERE(part, types), take);
    TG_KERNELS_ON_DEVICE(TG_HELD_ON_DEVICE)
#undef TG_HELD_ON_DEVICE
#define TG_HELD_ON_DEVICE(part, types, ...) hold<compiled_reduction, __VA_ARGS__>(TG_HELD_HERE(part, types), take);
    TG_REDUCTIONS_ON_DEVICE(TG_HELD_ON_DEVICE)
#undef TG_HELD_ON_DEVICE
#undef TG_HELD_HERE
}
#endif

#undef TG_KERNELS_ON_DEVICE
#undef TG_REDUCTIONS_ON_DEVICE

} // namespace tapegraph::cuda
