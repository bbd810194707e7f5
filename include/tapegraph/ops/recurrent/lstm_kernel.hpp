#pragma once

#include <tapegraph/ops/recurrent/cpu_lstm_cell.hpp>
#include <tapegraph/ops/recurrent/lstm.hpp>
#include <tapegraph/ops/recurrent/kernel.hpp>

/// The kernels of lstm.

namespace tapegraph::runtime::detail {

template <>
struct cpu_cells<tapegraph::detail::lstm_layer_cell> {
    template <class F>
    static auto call(const recurrent_attributes&, const F& f) {
        return f(cpu::lstm_cell{});
    }
};

} // namespace tapegraph::runtime::detail
