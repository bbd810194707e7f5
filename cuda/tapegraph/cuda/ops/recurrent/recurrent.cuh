#pragma once

#include <tapegraph/cuda/context.hpp>
#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/recurrent_rows.cuh>
#include <tapegraph/cuda/ops/recurrent/compiled_recurrences.cuh>
#include <tapegraph/cuda/ops/recurrent/recurrence.cuh>
#include <tapegraph/ops/recurrent/kernel.hpp>

#include <algorithm>
#include <type_traits>

/// Kernels of recurrent layers and their derivatives, for cells that name their CPU twin
/// (ops/recurrent/layers_kernel.hpp and the like). Values have the CPU's layout; second derivatives
/// and tangents are computed on the CPU.

namespace tapegraph::cuda {

namespace detail {

/// Calls f with the device's cell type for a call.
template <class Cell, class F>
auto with_cell(const recurrent_attributes& a, const F& f) {
    return runtime::detail::cpu_cells<Cell>::call(a, f);
}

template <class T>
recurrent_geometry geometry_of(const cpu::recurrent_shape<T>& s) {
    return {s.batch, s.time, s.units, false, {s.kinds.relu, s.kinds.hard}};
}
template <class T>
step_rows<T> device_rows(const cpu::step_rows<T>& rows) {
    return {rows.data, rows.record};
}
/// Uses the same row for every step.
template <class T>
step_rows<T> one_row(T* data, std::int64_t record) {
    return {data, record, 0};
}

template <class T>
recurrent_forward_operands<T> forward_operands(const cpu::recurrent_shape<T>& s, const T* projected) {
    recurrent_forward_operands<T> p{};
    p.xz = projected;
    p.recurrent = s.recurrent, p.bias = s.bias;
    p.h0 = s.h0, p.c0 = s.c0;
    p.dropped = s.dropped;
    p.mask = reinterpret_cast<const unsigned char*>(s.mask);
    return p;
}
template <class Cell, class T>
void run_forward(const kernel_call& call, const char* operation, const cpu::recurrent_shape<T>& s,
                 const recurrent_forward_operands<T>& p) {
    recurrent_forward<Cell>(static_cast<driver::stream>(call.stream), operation, context::current().properties(),
                            geometry_of(s), p, call.workspace);
}

/// Copies the rows that `a` asks for from the states. `reset`: r of every step, for a cell that
/// returns two rows per step.
template <class Cell, class T>
void copy_rows(const kernel_call& call, const char* operation, const recurrent_attributes& a,
               const recurrent_geometry& g, const recurrent_forward_operands<T>& p, step_rows<const T> reset = {},
               int reset_width = 0) {
    if (call.out[0].elements() == 0) return;
    recurrent_detail::check_geometry(g, operation);
    const runtime::detail::recurrent_result_rows<Cell, T> rows(a, nullptr, g.time, g.units);
    kernels::recurrent_copy<T> copy{};
    copy.h = {p.h.data, p.h.record, p.h.kept}, copy.c = {p.c.data, p.c.record, p.c.kept};
    copy.h0 = p.h0, copy.c0 = p.c0;
    copy.reset = reset, copy.reset_width = reset_width;
    copy.out = call.out[0].as<T>();
    copy.rows = rows.last - rows.first;
    copy.first = static_cast<int>(rows.first), copy.cell = a.cell != 0;
    constexpr unsigned warps = 8, most_blocks = 4096; // more than any device holds at once
    const std::int64_t blocks = divide_up(g.batch * (copy.rows + copy.cell), warps);
    launch(call, operation, {static_cast<unsigned>(std::min<std::int64_t>(blocks, most_blocks)), warps * 32},
           kernels::copy_recurrent_rows<T>, copy, kernels::recurrent_shape(g));
}

} // namespace detail

template <class Cell, int Extras, class T>
    requires std::is_floating_point_v<T>
struct kernel<recurrent_states_op<Cell, Extras>, T> {
    using op = recurrent_states_op<Cell, Extras>;
    using on_cpu = runtime::kernel<op, T>;
    static std::size_t workspace(const kernel_call& c) {
        return detail::with_cell<Cell>(runtime::attributes_of<op>(c), [&](auto cell) {
            return recurrent_workspace<decltype(cell), T>(detail::geometry_of(on_cpu::shape_of(c)),
                                                          recurrent_pass::forward);
        });
    }
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<op>(c);
        const cpu::recurrent_shape<T> s = on_cpu::shape_of(c);
        const runtime::detail::recurrent_states_view<Cell, T> states(a, c.out[0].as<T>(), s.batch, s.time, s.units);
        auto p = detail::forward_operands(s, c.in[0].as<const T>());
        p.h = detail::device_rows(states.h), p.c = detail::device_rows(states.c);
        detail::with_cell<Cell>(a, [&](auto cell) {
            if (decltype(cell)::kept > 0) p.gates = detail::device_rows(states.gates);
            detail::run_forward<decltype(cell)>(c, op::name.data(), s, p);
        });
    }
};

template <class Cell, int Extras, class T>
    requires std::is_floating_point_v<T>
struct kernel<recurrent_result_op<Cell, Extras>, T> {
    using op = recurrent_result_op<Cell, Extras>;
    using on_cpu = runtime::kernel<op, T>;
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<op>(c);
        const cpu::recurrent_shape<T> s = on_cpu::shape_of(c);
        const runtime::detail::recurrent_states_view<Cell, T> states(a, c.in[0].as<T>(), s.batch, s.time, s.units);
        auto p = detail::forward_operands<T>(s, nullptr);
        p.h = detail::device_rows(states.h), p.c = detail::device_rows(states.c);
        step_rows<const T> reset{};
        if (a.rows == recurrent_attributes::previous && Cell::given(a) == 2)
            reset = {states.gates.data + s.units, states.gates.record};
        const auto kept = static_cast<int>(Cell::planes(a) - Cell::states);
        detail::copy_rows<Cell>(c, op::name.data(), a, detail::geometry_of(s), p, reset, kept);
    }
};

/// States that are not results are kept in scratch memory: two alternating steps of h, since all
/// units of one step are read while those of the next are written; one step of c; and the gates
/// that a cell with reset_before needs.
template <class Cell, int Extras, class T>
    requires std::is_floating_point_v<T>
struct kernel<recurrent_op<Cell, Extras>, T> {
    using op = recurrent_op<Cell, Extras>;
    using on_cpu = runtime::kernel<op, T>;
    static std::size_t workspace(const kernel_call& c) {
        const recurrent_geometry g = detail::geometry_of(on_cpu::shape_of(c));
        return detail::with_cell<Cell>(runtime::attributes_of<op>(c), [&](auto cell) {
            using at = scratch<decltype(cell)>;
            return recurrent_workspace<decltype(cell), T>(g, recurrent_pass::forward) +
                   static_cast<std::size_t>(at::states * g.batch * g.units) * sizeof(T);
        });
    }
    static void run(const kernel_call& c) {
        detail::with_cell<Cell>(runtime::attributes_of<op>(c), [&](auto cell) { run<decltype(cell)>(c); });
    }

private:
    /// Offsets of the parts, in states of all samples.
    template <class DeviceCell>
    struct scratch {
        static constexpr int c = 2, gates = c + (DeviceCell::states == 2 ? 1 : 0),
                             states = gates + (DeviceCell::reset_before ? DeviceCell::kept : 0);
    };
    template <class DeviceCell>
    static void run(const kernel_call& c) {
        using at = scratch<DeviceCell>;
        const auto a = runtime::attributes_of<op>(c);
        const cpu::recurrent_shape<T> s = on_cpu::shape_of(c);
        const recurrent_geometry g = detail::geometry_of(s);
        const std::int64_t states = s.batch * s.units;
        T* const h = reinterpret_cast<T*>(static_cast<unsigned char*>(c.workspace) +
                                          recurrent_workspace<DeviceCell, T>(g, recurrent_pass::forward));
        auto p = detail::forward_operands(s, c.in[0].as<const T>());
        const bool in_place = a.rows != recurrent_attributes::last && s.time > 0;
        const runtime::detail::recurrent_result_rows<Cell, T> rows(a, c.out[0].as<T>(), s.time, s.units);
        p.h = in_place ? detail::device_rows(rows.steps) : step_rows<T>{h, 2 * s.units, 1};
        if (DeviceCell::states == 2)
            p.c = in_place && a.cell != 0 ? detail::one_row(rows.cell.data, rows.cell.record)
                                          : detail::one_row(h + at::c * states, s.units);
        if (DeviceCell::reset_before) p.gates = detail::one_row(h + at::gates * states, DeviceCell::kept * s.units);
        detail::run_forward<DeviceCell>(c, op::name.data(), s, p);
        if (!in_place) detail::copy_rows<Cell>(c, op::name.data(), a, g, p);
    }
};

template <class Cell, int Extras, class T>
    requires std::is_floating_point_v<T>
struct kernel<recurrent_gradient_op<Cell, Extras>, T> {
    using op = recurrent_gradient_op<Cell, Extras>;
    using on_cpu = runtime::kernel<op, T>;
    static std::size_t workspace(const kernel_call& c) {
        return detail::with_cell<Cell>(runtime::attributes_of<op>(c), [&](auto cell) {
            return recurrent_workspace<decltype(cell), T>(detail::geometry_of(on_cpu::shape_of(c)),
                                                          recurrent_pass::backward);
        });
    }
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<op>(c);
        const cpu::recurrent_shape<T> s = on_cpu::shape_of(c);
        const runtime::detail::recurrent_states_view<Cell, const T> states(a, c.in[1].as<const T>(), s.batch, s.time,
                                                                           s.units);
        const runtime::detail::recurrent_result_rows<Cell, const T> rows(a, c.in[0].as<const T>(), s.time, s.units);
        const runtime::detail::recurrent_column_rows<Cell, T> out(a, c.out[0].as<T>(), s.time, s.units, Extras);
        recurrent_backward_operands<T> p{};
        if (a.rows == recurrent_attributes::last) {
            p.dh_last = detail::one_row(rows.steps.data, rows.steps.record);
        } else if (rows.last > rows.first) {
            p.dh = detail::device_rows(rows.steps);
            p.dh_steps = static_cast<int>(rows.last);
            if (rows.first < 0) p.dh_first = detail::one_row(rows.steps.at(0, -1), rows.steps.record);
        }
        p.dh_width = rows.reset.data != nullptr ? 2 : 1, p.d_reset = detail::device_rows(rows.reset);
        p.dc_last = detail::one_row(rows.cell.data, rows.cell.record);
        p.gates = states.gates.data;
        p.memory = Cell::states == 2 ? states.c.data : states.h.data, p.memory0 = Cell::states == 2 ? s.c0 : s.h0;
        p.recurrent = s.recurrent, p.dropped = s.dropped;
        p.mask = reinterpret_cast<const unsigned char*>(s.mask);
        p.dz = detail::device_rows(out.columns);
        if (out.h0.data != nullptr) p.dh0 = detail::one_row(out.h0.data, out.h0.record);
        if (out.c0.data != nullptr) p.dc0 = detail::one_row(out.c0.data, out.c0.record);
        detail::with_cell<Cell>(a, [&](auto cell) {
            recurrent_backward<decltype(cell)>(static_cast<driver::stream>(c.stream), op::name.data(),
                                               context::current().properties(), detail::geometry_of(s), p, c.workspace);
        });
    }
};

} // namespace tapegraph::cuda
