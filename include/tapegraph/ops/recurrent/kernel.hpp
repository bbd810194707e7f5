#pragma once

#include <tapegraph/ops/recurrent/cpu.hpp>
#include <tapegraph/ops/recurrent/cpu_second.hpp>
#include <tapegraph/ops/recurrent/recurrent_gradient.hpp>
#include <tapegraph/ops/recurrent/recurrent_second.hpp>
#include <tapegraph/runtime/kept_memory.hpp>
#include <tapegraph/runtime/kernel.hpp>

#include <algorithm>

/// Kernels of recurrent layers. layers_kernel.hpp maps their cells to those of the CPU. An operation is a
/// type for each set of operands that a layer may have (`Extras`), but what runs it is a function of
/// its cell and element type, which takes them as a number; the component has those of the layers.

namespace tapegraph::runtime {

namespace detail {

/// Specialised for each layer's cell: `call(attributes, f)` calls f with the cell that computes it on the CPU.
template <class Cell>
struct cpu_cells;

/// The layout of the parts of `states`: [planes, batch, time, units].
template <class Cell, class T>
struct recurrent_states_view {
    cpu::step_rows<T> h, c, gates;

    recurrent_states_view(const recurrent_attributes& a, T* data, std::int64_t batch, std::int64_t time,
                          std::int64_t units) {
        const std::int64_t plane = batch * time * units, kept = Cell::planes(a) - Cell::states;
        h = {data, time * units, units};
        if (Cell::states == 2) c = {data + plane, time * units, units};
        gates = {data + Cell::states * plane, kept * time * units, kept * units};
    }
};

/// Reads R and the extras from operand `first` on, and steps and batch from [..., batch, time,
/// units] or [batch, time, gates units].
template <class Cell, class T>
cpu::recurrent_shape<T> recurrent_operands_of(const kernel_call& c, const recurrent_attributes& a,
                                              const buffer_view& steps, int first, int extras) {
    cpu::recurrent_shape<T> s{};
    s.batch = steps.extents[steps.rank - 3];
    s.time = steps.extents[steps.rank - 2];
    s.units = c.in[first].extents[0];
    s.kinds = {a.relu != 0, a.hard != 0};
    s.recurrent = c.in[first++].as<const T>();
    if (tapegraph::detail::is_recurrent_biased(extras)) s.bias = c.in[first++].as<const T>();
    if (tapegraph::detail::is_recurrent_initial(extras)) {
        s.h0 = c.in[first++].as<const T>();
        if constexpr (Cell::states == 2) s.c0 = c.in[first++].as<const T>();
    }
    if ((extras & 1) != 0) s.mask = c.in[first++].as<const bool>();
    if ((extras & 2) != 0) s.dropped = c.in[first].as<const T>();
    return s;
}

/// The rows [batch, a.count(time), units] of a result or its derivative, by the steps they belong
/// to.
template <class Cell, class T>
struct recurrent_result_rows {
    cpu::step_rows<T> steps, cell;
    cpu::step_rows<T> reset;  ///< for `previous` rows, the operand of the last gate's part of R where that is not h
    std::int64_t first, last; ///< `steps` covers [first, last); -1 is the initial state

    recurrent_result_rows(const recurrent_attributes& a, T* data, std::int64_t time, std::int64_t units) {
        const bool previous = a.rows == recurrent_attributes::previous;
        const std::int64_t count = a.count(time).value, width = previous ? Cell::given(a) * units : units;
        steps = {data, count * width, a.rows == recurrent_attributes::last ? 0 : width};
        first = a.rows == recurrent_attributes::last ? time - 1 : previous ? -1 : 0;
        last = previous ? time - 1 : time;
        if (data == nullptr) return;
        if (width > units) reset = {data + units, steps.record, width};
        if (previous) steps.data += width;
        if (a.cell != 0) cell = {data + (count - 1) * units, count * units, 0};
    }
};

/// One record of an initial state, or zeros.
template <class T>
void copy_initial(const T* from, std::int64_t record, std::int64_t units, T* to) {
    if (from != nullptr)
        std::copy_n(from + record * units, units, to);
    else
        std::fill_n(to, units, T(0));
}

/// `columns` rows of units for each step of [batch, ...], followed with an initial state by one for
/// each state.
template <class Cell, class T>
struct recurrent_column_rows {
    cpu::step_rows<T> columns, h0, c0;

    recurrent_column_rows(const recurrent_attributes& a, T* data, std::int64_t time, std::int64_t units, int extras) {
        const bool initial = tapegraph::detail::is_recurrent_initial(extras);
        const std::int64_t width = Cell::columns(a) * units, record = width * time + Cell::states * initial * units;
        columns = {data, record, width};
        if (initial) h0 = {data + width * time, record, 0};
        if (initial && Cell::states == 2) c0 = {data + width * time + units, record, 0};
    }
};

struct has_recurrent_attributes {
    using attributes = recurrent_attributes;
};
inline recurrent_attributes recurrent_attributes_of(const kernel_call& c) {
    return attributes_of<has_recurrent_attributes>(c);
}

/// `before` is the number of an operation's operands before x W + b; the extents of operand `steps` give the
/// number of steps.
template <class Cell, class T>
cpu::recurrent_shape<T> recurrent_shape_of(const kernel_call& c, int extras, int steps, int before) {
    return recurrent_operands_of<Cell, T>(c, recurrent_attributes_of(c), c.in[steps], before + 1, extras);
}
template <class Cell, class T>
std::size_t recurrent_pass_bytes(const kernel_call& c, int extras, int steps, int before, bool backward) {
    return cpu_cells<Cell>::call(recurrent_attributes_of(c), [&](auto cell) {
        return cpu::recurrent_workspace_bytes<decltype(cell)>(recurrent_shape_of<Cell, T>(c, extras, steps, before),
                                                              backward, thread_count());
    });
}
template <class Cell, class T>
std::size_t recurrent_second_bytes(const kernel_call& c, int extras, int steps, int before) {
    return cpu_cells<Cell>::call(recurrent_attributes_of(c), [&](auto cell) {
        return cpu::recurrent_second_workspace_bytes<decltype(cell)>(
            recurrent_shape_of<Cell, T>(c, extras, steps, before), thread_count());
    });
}
template <class Cell, class T>
void recurrent_forward_pass(const kernel_call& c, const cpu::recurrent_shape<T>& s, int before,
                            const cpu::recurrent_results<T>& out) {
    const std::int64_t width = Cell::gates * s.units;
    cpu_cells<Cell>::call(recurrent_attributes_of(c), [&](auto cell) {
        cpu::recurrent_forward<decltype(cell), T>(s, {c.in[before].as<const T>(), s.time * width, width}, out,
                                                  c.workspace);
    });
}
/// Operand 0 is v, along which tangents are taken.
template <class Cell, class T>
cpu::recurrent_second_arguments<T> recurrent_arguments_of_second(const kernel_call& c, const cpu::recurrent_shape<T>& s,
                                                                 int extras, int steps) {
    const recurrent_attributes a = recurrent_attributes_of(c);
    const recurrent_states_view<Cell, const T> states(a, c.in[steps].as<const T>(), s.batch, s.time, s.units);
    const recurrent_column_rows<Cell, const T> v(a, c.in[0].as<const T>(), s.time, s.units, extras);
    const recurrent_result_rows<Cell, T> rows(a, nullptr, s.time, s.units);
    cpu::recurrent_second_arguments<T> g{};
    g.h = states.h, g.c = states.c, g.gates = states.gates;
    g.v = v.columns, g.v_h0 = v.h0, g.v_c0 = v.c0;
    g.first_seed = rows.first, g.last_seed = rows.last;
    return g;
}
template <class Cell, class T>
void recurrent_second_pass(const kernel_call& c, const cpu::recurrent_shape<T>& s,
                           const cpu::recurrent_second_arguments<T>& g) {
    cpu_cells<Cell>::call(recurrent_attributes_of(c),
                          [&](auto cell) { cpu::recurrent_second<decltype(cell), T>(s, g, c.workspace); });
}

template <class Cell, class T>
void run_recurrent_states(const kernel_call& c, int extras) {
    const cpu::recurrent_shape<T> s = recurrent_shape_of<Cell, T>(c, extras, 0, 0);
    const recurrent_states_view<Cell, T> states(recurrent_attributes_of(c), c.out[0].as<T>(), s.batch, s.time, s.units);
    recurrent_forward_pass<Cell, T>(c, s, 0, {states.h, states.c, states.gates});
}

template <class Cell, class T>
void run_recurrent_result(const kernel_call& c, int extras) {
    const recurrent_attributes a = recurrent_attributes_of(c);
    const cpu::recurrent_shape<T> s = recurrent_shape_of<Cell, T>(c, extras, 0, 1);
    const std::int64_t u = s.units;
    const recurrent_states_view<Cell, const T> states(a, c.in[0].as<const T>(), s.batch, s.time, u);
    const recurrent_result_rows<Cell, T> rows(a, c.out[0].as<T>(), s.time, u);
    // Step -1 is the initial state.
    const auto copy = [&](const cpu::step_rows<const T>& from, const T* initial, std::int64_t b, std::int64_t t,
                          T* to) {
        if (t >= 0)
            std::copy_n(from.at(b, t), u, to);
        else
            copy_initial(initial, b, u, to);
    };
    cpu::parallel_for(s.batch, s.batch * s.time * u > 100000, [&](std::int64_t b) {
        for (std::int64_t t = rows.first; t < rows.last; ++t) copy(states.h, s.h0, b, t, rows.steps.at(b, t));
        if (a.cell != 0) copy(states.c, s.c0, b, s.time - 1, rows.cell.at(b, 0));
        for (std::int64_t t = 0; t < s.time && rows.reset.data != nullptr; ++t) {
            const T *const h = rows.steps.at(b, t - 1), *const r = states.gates.at(b, t) + u;
            T* const to = rows.reset.at(b, t);
            for (std::int64_t n = 0; n < u; ++n) to[n] = r[n] * h[n];
        }
    });
}

/// Has the panels of R that the program keeps between runs, if it does.
template <class Cell, class T>
void keep_recurrent_matrix(const kernel_call& c, cpu::recurrent_shape<T>& s) {
    if (c.kept == nullptr || s.batch <= 0 || s.units <= 0 || s.time <= 0) return;
    cpu_cells<Cell>::call(recurrent_attributes_of(c), [&](auto cell) {
        using cpu_cell = decltype(cell);
        s.row_vectors = cpu::recurrent_row_vectors<cpu_cell, T>(s);
        const kept_memory::key_type key{kept_recurrence + s.row_vectors, s.units, cpu_cell::gates,
                                        cpu::active_tile_kernels<T>().lanes};
        const std::size_t bytes = cpu::recurrent_matrix_bytes<cpu_cell, T>(s.units);
        s.panels = static_cast<const T*>(c.kept->made_if_unchanged(c, 1, key, bytes, [&](void* to) {
            cpu::pack_recurrent_matrix<cpu_cell, T>(s, s.row_vectors, static_cast<T*>(to));
        }));
    });
}
template <class Cell, class T>
void announce_recurrent_matrix(const kernel_call& c) {
    if (c.kept == nullptr || !c.kept->watches(c, 1)) return;
    cpu_cells<Cell>::call(recurrent_attributes_of(c), [&](auto cell) {
        c.kept->announce(cpu::recurrent_matrix_bytes<decltype(cell), T>(c.in[1].extents[0]));
    });
}

template <class Cell, class T>
void run_recurrent(const kernel_call& c, int extras) {
    cpu::recurrent_shape<T> s = recurrent_shape_of<Cell, T>(c, extras, 0, 0);
    keep_recurrent_matrix<Cell, T>(c, s);
    const recurrent_result_rows<Cell, T> rows(recurrent_attributes_of(c), c.out[0].as<T>(), s.time, s.units);
    for (std::int64_t b = 0; b < s.batch && s.time == 0; ++b) { // the initial state is the last one
        for (std::int64_t t = rows.first; t < rows.last; ++t) copy_initial(s.h0, b, s.units, rows.steps.at(b, t));
        if (rows.cell.data != nullptr) copy_initial(s.c0, b, s.units, rows.cell.at(b, 0));
    }
    recurrent_forward_pass<Cell, T>(c, s, 0, {rows.steps, rows.cell, {}});
}

template <class Cell, class T>
void run_recurrent_gradient(const kernel_call& c, int extras) {
    const recurrent_attributes a = recurrent_attributes_of(c);
    const cpu::recurrent_shape<T> s = recurrent_shape_of<Cell, T>(c, extras, 1, 2);
    const recurrent_states_view<Cell, const T> states(a, c.in[1].as<const T>(), s.batch, s.time, s.units);
    const recurrent_result_rows<Cell, const T> rows(a, c.in[0].as<const T>(), s.time, s.units);
    const recurrent_column_rows<Cell, T> out(a, c.out[0].as<T>(), s.time, s.units, extras);
    cpu::recurrent_gradients<T> g{};
    g.h = states.h, g.c = states.c, g.gates = states.gates;
    g.seeds = rows.steps, g.first_seed = rows.first, g.last_seed = rows.last;
    g.reset_seeds = rows.reset, g.last_cell = rows.cell;
    g.dz = out.columns, g.dh0 = out.h0, g.dc0 = out.c0;
    cpu_cells<Cell>::call(a, [&](auto cell) { cpu::recurrent_backward<decltype(cell), T>(s, g, c.workspace); });
}

template <class Cell, class T>
void run_recurrent_tangent(const kernel_call& c, int extras) {
    const cpu::recurrent_shape<T> s = recurrent_shape_of<Cell, T>(c, extras, 1, 2);
    auto g = recurrent_arguments_of_second<Cell, T>(c, s, extras, 1);
    const recurrent_result_rows<Cell, T> rows(recurrent_attributes_of(c), c.out[0].as<T>(), s.time, s.units);
    g.d_rows = rows.steps, g.d_reset = rows.reset, g.d_c = rows.cell;
    recurrent_second_pass<Cell, T>(c, s, g);
}

template <class Cell, class T>
void run_recurrent_second(const kernel_call& c, int extras) {
    const recurrent_attributes a = recurrent_attributes_of(c);
    const cpu::recurrent_shape<T> s = recurrent_shape_of<Cell, T>(c, extras, 2, 3);
    auto g = recurrent_arguments_of_second<Cell, T>(c, s, extras, 2);
    const recurrent_result_rows<Cell, const T> rows(a, c.in[1].as<const T>(), s.time, s.units);
    g.seeds = rows.steps, g.reset_seeds = rows.reset, g.last_cell = rows.cell;
    const std::int64_t given = Cell::given(a) * s.units, width = Cell::columns(a) * s.units;
    const std::int64_t states = s.time * (given + width), record = states + Cell::states * s.units;
    T* const out = c.out[0].as<T>();
    g.d_before = {out, record, given};
    g.d_z = {out + s.time * given, record, width};
    g.d_h0 = {out + states, record, 0};
    if (Cell::states == 2) g.d_c0 = {out + states + s.units, record, 0};
    recurrent_second_pass<Cell, T>(c, s, g);
}

/// For devices, whose kernels read the same operands.
template <class Cell, int Extras, class T, int Steps, int Before>
struct recurrent_kernel {
    static cpu::recurrent_shape<T> shape_of(const kernel_call& c) {
        return recurrent_shape_of<Cell, T>(c, Extras, Steps, Before);
    }
};

} // namespace detail

template <class Cell, int Extras, class T>
struct kernel<recurrent_states_op<Cell, Extras>, T> : detail::recurrent_kernel<Cell, Extras, T, 0, 0> {
    static std::size_t workspace(const kernel_call& c) {
        return detail::recurrent_pass_bytes<Cell, T>(c, Extras, 0, 0, false);
    }
    static void run(const kernel_call& c) { detail::run_recurrent_states<Cell, T>(c, Extras); }
};

template <class Cell, int Extras, class T>
struct kernel<recurrent_result_op<Cell, Extras>, T> : detail::recurrent_kernel<Cell, Extras, T, 0, 1> {
    static void run(const kernel_call& c) { detail::run_recurrent_result<Cell, T>(c, Extras); }
};

template <class Cell, int Extras, class T>
struct kernel<recurrent_op<Cell, Extras>, T> : detail::recurrent_kernel<Cell, Extras, T, 0, 0> {
    static std::size_t workspace(const kernel_call& c) {
        detail::announce_recurrent_matrix<Cell, T>(c);
        return detail::recurrent_pass_bytes<Cell, T>(c, Extras, 0, 0, false);
    }
    static void run(const kernel_call& c) { detail::run_recurrent<Cell, T>(c, Extras); }
};

template <class Cell, int Extras, class T>
struct kernel<recurrent_gradient_op<Cell, Extras>, T> : detail::recurrent_kernel<Cell, Extras, T, 1, 2> {
    static std::size_t workspace(const kernel_call& c) {
        return detail::recurrent_pass_bytes<Cell, T>(c, Extras, 1, 2, true);
    }
    static void run(const kernel_call& c) { detail::run_recurrent_gradient<Cell, T>(c, Extras); }
};

template <class Cell, int Extras, class T>
struct kernel<recurrent_tangent_op<Cell, Extras>, T> {
    static std::size_t workspace(const kernel_call& c) {
        return detail::recurrent_second_bytes<Cell, T>(c, Extras, 1, 2);
    }
    static void run(const kernel_call& c) { detail::run_recurrent_tangent<Cell, T>(c, Extras); }
};

template <class Cell, int Extras, class T>
struct kernel<recurrent_second_op<Cell, Extras>, T> {
    static std::size_t workspace(const kernel_call& c) {
        return detail::recurrent_second_bytes<Cell, T>(c, Extras, 2, 3);
    }
    static void run(const kernel_call& c) { detail::run_recurrent_second<Cell, T>(c, Extras); }
};

} // namespace tapegraph::runtime
