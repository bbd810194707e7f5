#pragma once

#include <tapegraph/ops/recurrent/cpu_simple_rnn_cell.hpp>
#include <tapegraph/ops/recurrent/simple_rnn.hpp>
#include <tapegraph/ops/recurrent/kernel.hpp>

/// The kernels of simple_rnn.

namespace tapegraph::runtime::detail {

template <>
struct cpu_cells<tapegraph::detail::simple_rnn_layer_cell> {
    template <class F>
    static auto call(const recurrent_attributes&, const F& f) {
        return f(cpu::simple_rnn_cell{});
    }
};

} // namespace tapegraph::runtime::detail
