#pragma once

#include <tapegraph/cuda/context.hpp>
#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/lstm_rows.cuh>
#include <tapegraph/cuda/lstm.cuh>
#include <tapegraph/runtime/lstm.hpp>

#include <algorithm>
#include <type_traits>

/// lstm and its derivative on a device. Values have the CPU's layout; second derivatives and tangents are computed there.

namespace tapegraph::cuda {

namespace detail {

using lstm_cell = tapegraph::detail::lstm_layer_cell;
template <class T>
using lstm_states_view = runtime::detail::recurrent_states_view<lstm_cell, T>;
template <class T>
using lstm_result_rows = runtime::detail::recurrent_result_rows<lstm_cell, T>;

template <class T>
lstm_geometry geometry_of(const cpu::recurrent_shape<T>& s) {
    return {s.batch, s.time, s.units, false, {s.kinds.relu, s.kinds.hard}};
}
template <class T>
step_rows<T> device_rows(const cpu::step_rows<T>& rows) {
    return {rows.data, rows.record};
}
/// The same row for every step.
template <class T>
step_rows<T> one_row(T* data, std::int64_t record) {
    return {data, record, 0};
}

template <class T>
lstm_forward_operands<T> forward_operands(const cpu::recurrent_shape<T>& s, const T* projected) {
    lstm_forward_operands<T> p{};
    p.xz = projected;
    p.recurrent = s.recurrent;
    p.h0 = s.h0, p.c0 = s.c0;
    p.dropped = s.dropped;
    p.mask = reinterpret_cast<const unsigned char*>(s.mask);
    return p;
}
template <class T>
void run_forward(const kernel_call& call, const cpu::recurrent_shape<T>& s, const lstm_forward_operands<T>& p) {
    lstm_forward(static_cast<driver::stream>(call.stream), context::current().properties(), geometry_of(s), p,
                 call.workspace);
}

/// The rows that `a` asks for, from states.
template <class T>
void copy_rows(const kernel_call& call, const char* operation, const lstm_attributes& a, const lstm_geometry& g,
               const lstm_forward_operands<T>& p) {
    if (call.out[0].elements() == 0) return;
    lstm_detail::check_lstm(g, operation);
    const lstm_result_rows<T> rows(a, nullptr, g.time, g.units);
    const kernels::lstm_copy<T> copy{
        {p.h.data, p.h.record, p.h.kept}, {p.c.data, p.c.record, p.c.kept}, p.h0,       p.c0, call.out[0].as<T>(),
        rows.last - rows.first,           static_cast<int>(rows.first),     a.cell != 0};
    constexpr unsigned warps = 8, most_blocks = 4096; // more than any device runs at once
    const std::int64_t blocks = divide_up(g.batch * (copy.rows + copy.cell), warps);
    launch(call, operation, {static_cast<unsigned>(std::min<std::int64_t>(blocks, most_blocks)), warps * 32},
           kernels::copy_lstm_rows<T>, copy, kernels::lstm_shape(g));
}

} // namespace detail

template <int Extras, class T>
    requires std::is_floating_point_v<T>
struct kernel<lstm_states_op<Extras>, T> {
    using on_cpu = runtime::kernel<lstm_states_op<Extras>, T>;
    static std::size_t workspace(const kernel_call& c) {
        return lstm_workspace<T>(detail::geometry_of(on_cpu::shape_of(c)), lstm_pass::forward);
    }
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<lstm_states_op<Extras>>(c);
        const cpu::recurrent_shape<T> s = on_cpu::shape_of(c);
        const detail::lstm_states_view<T> states(a, c.out[0].as<T>(), s.batch, s.time, s.units);
        auto p = detail::forward_operands(s, c.in[0].as<const T>());
        p.h = detail::device_rows(states.h), p.c = detail::device_rows(states.c);
        p.gates = states.gates.data;
        detail::run_forward(c, s, p);
    }
};

template <int Extras, class T>
    requires std::is_floating_point_v<T>
struct kernel<lstm_result_op<Extras>, T> {
    using on_cpu = runtime::kernel<lstm_result_op<Extras>, T>;
    static void run(const kernel_call& c) {
        using op = lstm_result_op<Extras>;
        const auto a = runtime::attributes_of<op>(c);
        const cpu::recurrent_shape<T> s = on_cpu::shape_of(c);
        const detail::lstm_states_view<T> states(a, c.in[0].as<T>(), s.batch, s.time, s.units);
        auto p = detail::forward_operands<T>(s, nullptr);
        p.h = detail::device_rows(states.h), p.c = detail::device_rows(states.c);
        detail::copy_rows(c, op::name.data(), a, detail::geometry_of(s), p);
    }
};

/// States that are no results are kept in scratch memory: h of two steps in turn, since all units of one are read while those
/// of the next are written, and c of one.
template <int Extras, class T>
    requires std::is_floating_point_v<T>
struct kernel<lstm_op<Extras>, T> {
    using on_cpu = runtime::kernel<lstm_op<Extras>, T>;
    static std::size_t workspace(const kernel_call& c) {
        const lstm_geometry g = detail::geometry_of(on_cpu::shape_of(c));
        return lstm_workspace<T>(g, lstm_pass::forward) + static_cast<std::size_t>(3 * g.batch * g.units) * sizeof(T);
    }
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<lstm_op<Extras>>(c);
        const cpu::recurrent_shape<T> s = on_cpu::shape_of(c);
        const lstm_geometry g = detail::geometry_of(s);
        T* const h =
            reinterpret_cast<T*>(static_cast<unsigned char*>(c.workspace) + lstm_workspace<T>(g, lstm_pass::forward));
        auto p = detail::forward_operands(s, c.in[0].as<const T>());
        const bool in_place = a.rows != lstm_attributes::last && s.time > 0;
        const detail::lstm_result_rows<T> rows(a, c.out[0].as<T>(), s.time, s.units);
        p.h = in_place ? detail::device_rows(rows.steps) : step_rows<T>{h, 2 * s.units, 1};
        p.c = in_place && a.cell != 0 ? detail::one_row(rows.cell.data, rows.cell.record)
                                      : detail::one_row(h + 2 * s.batch * s.units, s.units);
        detail::run_forward(c, s, p);
        if (!in_place) detail::copy_rows(c, lstm_op<Extras>::name.data(), a, g, p);
    }
};

template <int Extras, class T>
    requires std::is_floating_point_v<T>
struct kernel<lstm_gradient_op<Extras>, T> {
    using on_cpu = runtime::kernel<lstm_gradient_op<Extras>, T>;
    static std::size_t workspace(const kernel_call& c) {
        return lstm_workspace<T>(detail::geometry_of(on_cpu::shape_of(c)), lstm_pass::backward);
    }
    static void run(const kernel_call& c) {
        constexpr bool initial = tapegraph::detail::recurrent_initial<Extras>;
        const auto a = runtime::attributes_of<lstm_gradient_op<Extras>>(c);
        const cpu::recurrent_shape<T> s = on_cpu::shape_of(c);
        const detail::lstm_states_view<const T> states(a, c.in[1].as<const T>(), s.batch, s.time, s.units);
        const detail::lstm_result_rows<const T> rows(a, c.in[0].as<const T>(), s.time, s.units);
        const std::int64_t u = s.units, record = (4 * s.time + 2 * initial) * u;
        T* const out = c.out[0].as<T>();
        lstm_backward_operands<T> p{};
        if (a.rows == lstm_attributes::last) {
            p.dh_last = detail::one_row(rows.steps.data, rows.steps.record);
        } else if (rows.last > rows.first) {
            p.dh = detail::device_rows(rows.steps);
            p.dh_steps = static_cast<int>(rows.last);
            if (rows.first < 0) p.dh_first = detail::one_row(rows.steps.at(0, -1), rows.steps.record);
        }
        p.dc_last = detail::one_row(rows.cell.data, rows.cell.record);
        p.gates = states.gates.data, p.c = states.c.data, p.c0 = s.c0;
        p.recurrent = s.recurrent, p.dropped = s.dropped;
        p.mask = reinterpret_cast<const unsigned char*>(s.mask);
        p.dz = {out, record};
        if (initial) {
            p.dh0 = detail::one_row(out + 4 * s.time * u, record);
            p.dc0 = detail::one_row(out + (4 * s.time + 1) * u, record);
        }
        lstm_backward(static_cast<driver::stream>(c.stream), context::current().properties(), detail::geometry_of(s), p,
                      c.workspace);
    }
};

} // namespace tapegraph::cuda
