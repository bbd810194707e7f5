#pragma once

#include <tapegraph/ops/recurrent/cpu_gru_cell.hpp>
#include <tapegraph/ops/recurrent/cpu_lstm_cell.hpp>
#include <tapegraph/ops/recurrent/cpu_simple_rnn_cell.hpp>
#include <tapegraph/ops/recurrent/gru.hpp>
#include <tapegraph/ops/recurrent/kernel.hpp>
#include <tapegraph/ops/recurrent/lstm.hpp>
#include <tapegraph/ops/recurrent/simple_rnn.hpp>

/// Which cell of the CPU each recurrent layer is computed with.

namespace tapegraph::runtime::detail {

template <>
struct cpu_cells<tapegraph::detail::lstm_layer_cell> {
    template <class F>
    static auto call(const recurrent_attributes&, const F& f) {
        return f(cpu::lstm_cell{});
    }
};
template <>
struct cpu_cells<tapegraph::detail::gru_layer_cell> {
    template <class F>
    static auto call(const recurrent_attributes& a, const F& f) {
        return a.reset_after != 0 ? f(cpu::gru_cell<true>{}) : f(cpu::gru_cell<false>{});
    }
};
template <>
struct cpu_cells<tapegraph::detail::simple_rnn_layer_cell> {
    template <class F>
    static auto call(const recurrent_attributes&, const F& f) {
        return f(cpu::simple_rnn_cell{});
    }
};

} // namespace tapegraph::runtime::detail
