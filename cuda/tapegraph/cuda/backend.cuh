#pragma once

#include <tapegraph/cuda/ops/pooling/of_convolution.cuh>
#include <tapegraph/cuda/ops/attention/attention.cuh>
#include <tapegraph/cuda/ops/convolution/storage.cuh>
#include <tapegraph/cuda/ops/effect/effect.cuh>
#include <tapegraph/cuda/ops/movement/fill.cuh>
#include <tapegraph/cuda/ops/gather/gather.cuh>
#include <tapegraph/cuda/ops/product/matmul.cuh>
#include <tapegraph/cuda/ops/movement/movement.cuh>
#include <tapegraph/cuda/ops/pooling/lp_pooling.cuh>
#include <tapegraph/cuda/ops/pooling/pooling.cuh>
#include <tapegraph/cuda/ops/random/random.cuh>
#include <tapegraph/cuda/ops/reduction/length.cuh>
#include <tapegraph/cuda/ops/reduction/normalization.cuh>
#include <tapegraph/cuda/ops/reduction/softmax.cuh>
#include <tapegraph/cuda/ops/reduction/softmax_cross_entropy.cuh>
#include <tapegraph/cuda/reduction.cuh>
#include <tapegraph/cuda/region.cuh>
#include <tapegraph/cuda/row_copies.cuh>
#include <tapegraph/cuda/runtime.hpp>
#include <tapegraph/cuda/ops/cumulative/cumulative.cuh>
#include <tapegraph/cuda/ops/cumulative/product_terms.cuh>
#include <tapegraph/cuda/ops/gather/scatter.cuh>
#include <tapegraph/cuda/ops/ordering/arg_reduce.cuh>
#include <tapegraph/cuda/ops/ordering/places.cuh>
#include <tapegraph/cuda/ops/ordering/sort.cuh>
#include <tapegraph/cuda/widened.cuh>

#include <tapegraph/cuda/component.cuh> // after all definitions

/// What runtime/kernel.hpp asks a backend for: the CUDA side of every operation.

namespace tapegraph::cuda {

struct backend {
    template <class Op, class T>
    static constexpr runtime::kernel_functions operation() {
        if constexpr (storage_type<T> && !runtime::takes_storage_types<Op>) {
            if constexpr (has_kernel<Op, float> && requires { sizeof(widened_kernel<Op>); }) return kernel_for<Op, T>();
        } else if constexpr (has_kernel<Op, T>) {
            return kernel_for<Op, T>();
        }
        return {};
    }
    template <class Region>
    static constexpr runtime::kernel_functions map() {
        return {&region_kernel<Region>::run, &runtime::no_workspace};
    }
    template <class Op, class Region, class T>
    static constexpr runtime::kernel_functions reduction() {
        if constexpr (runtime::is_one_of<T>(compiled_reductions<Op>) && runtime::reads_in_place<Region>)
            return {&compiled_reduction<Op, T>::run, &compiled_reduction<Op, T>::workspace};
        else if constexpr (requires { sizeof(reduction_kernel<Op, Region, T>); })
            return {&reduction_kernel<Op, Region, T>::run, &reduction_kernel<Op, Region, T>::workspace};
        return {};
    }
    static void copy_rows(const kernel_call& call, const runtime::row_copy* copies, std::size_t count) {
        cuda::copy_rows(call, copies, count);
    }
    static void store_words(const kernel_call& call, void* to, const std::uint64_t* words, std::size_t count) {
        cuda::store_words(call, to, words, count);
    }
    template <class Region>
    static constexpr runtime::kernel_functions result_sum() {
        return {&cuda::result_sum<Region>::run, &cuda::result_sum<Region>::workspace};
    }
};

} // namespace tapegraph::cuda
