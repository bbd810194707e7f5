#pragma once

#include <tapegraph/cuda/region.cuh>
#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/runtime/widened.hpp>

/// Computes operations on 16-bit elements by their float kernels between conversions:
/// runtime/widened.hpp on the device. A conversion is a region of one instruction. (Reductions and
/// random numbers convert within their own kernels.)

namespace tapegraph::cuda {

namespace detail {

/// Converts elements: to = from, of types To and From.
template <class To, class From>
void convert(const kernel_call& call, const buffer_view& to, const buffer_view& from) {
    kernel_call one;
    one.in = &from, one.inputs = 1;
    one.out = &to, one.outputs = 1;
    one.domain = to;
    one.stream = call.stream;
    region_kernel<region<slots<dtype_of<From>>, results<1>, instruction<cast_op<To>, dtype_of<To>, 0>>>::run(one);
}

} // namespace detail

template <class Op>
struct widened_kernel {
    static std::size_t workspace(const kernel_call& c) {
        const runtime::detail::widened_call wide(c);
        return wide.bytes + kernel_for<Op, float>().workspace(wide.call);
    }
    static void run(const kernel_call& c) {
        const runtime::detail::widened_call wide(c);
        for (int i = 0; i < c.inputs; ++i) {
            storage_types::visit(c.in[i].type, [&]<class T>(std::type_identity<T>) {
                detail::convert<float, T>(c, wide.call.in[i], c.in[i]);
            });
        }
        kernel_for<Op, float>().run(wide.call);
        for (int k = 0; k < c.outputs; ++k) {
            storage_types::visit(c.out[k].type, [&]<class T>(std::type_identity<T>) {
                detail::convert<T, float>(c, c.out[k], wide.call.out[k]);
            });
        }
    }
};

} // namespace tapegraph::cuda
