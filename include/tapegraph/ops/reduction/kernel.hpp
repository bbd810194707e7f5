#pragma once

#include <tapegraph/ops/reduction/reduction.hpp>
#include <tapegraph/runtime/kernel.hpp>

namespace tapegraph::runtime {

/// A reduction of a tensor in memory, which eager mode calls for a sealed operand.
template <class Op, class T>
    requires whole_reduction<Op>
struct kernel<Op, T> {
    using reduction = reduction_kernel<Op, region<slots<dtype_of<T>>, results<0>>, T>;
    static kernel_call over_operand(kernel_call call) {
        call.domain = call.in[0];
        return call;
    }
    static void run(const kernel_call& call) { reduction::run(over_operand(call)); }
    static std::size_t workspace(const kernel_call& call) { return reduction::workspace(over_operand(call)); }
};

} // namespace tapegraph::runtime

#include <tapegraph/ops/compiled_kernels.hpp>
