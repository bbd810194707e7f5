#pragma once

#include <tapegraph/ops/recurrent/cpu_gru_cell.hpp>
#include <tapegraph/ops/recurrent/gru.hpp>
#include <tapegraph/ops/recurrent/kernel.hpp>

/// The kernels of gru.

namespace tapegraph::runtime::detail {

template <>
struct cpu_cells<tapegraph::detail::gru_layer_cell> {
    template <class F>
    static auto call(const recurrent_attributes& a, const F& f) {
        return a.reset_after != 0 ? f(cpu::gru_cell<true>{}) : f(cpu::gru_cell<false>{});
    }
};

} // namespace tapegraph::runtime::detail
