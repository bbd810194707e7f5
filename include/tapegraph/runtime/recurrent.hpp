#pragma once

#include <tapegraph/cpu/lstm.hpp>
#include <tapegraph/cpu/lstm_second.hpp>
#include <tapegraph/ops/lstm.hpp>
#include <tapegraph/runtime/kernel.hpp>

#include <algorithm>

/// Recurrent layers' kernels.

namespace tapegraph::runtime {

namespace detail {

/// Where the parts of `states` lie: [6, batch, time, units].
template <class T>
struct lstm_states_view {
    cpu::step_rows<T> h, c, gates;

    lstm_states_view(T* data, std::int64_t batch, std::int64_t time, std::int64_t units) {
        const std::int64_t plane = batch * time * units;
        h = {data, time * units, units};
        c = {data + plane, time * units, units};
        gates = {data + 2 * plane, 4 * time * units, 4 * units};
    }
};

/// R and the extras from operand `first` on; steps and batch as in [..., batch, time, units] or [batch, time, 4 units].
template <class T, int Extras>
cpu::lstm_shape<T> lstm_operands(const kernel_call& c, const lstm_attributes& a, const buffer_view& steps, int first) {
    cpu::lstm_shape<T> s{};
    s.batch = steps.extents[steps.rank - 3];
    s.time = steps.extents[steps.rank - 2];
    s.units = c.in[first].extents[0];
    s.kinds = {a.relu != 0, a.hard != 0};
    s.recurrent = c.in[first++].as<const T>();
    if constexpr (tapegraph::detail::lstm_initial<Extras>) {
        s.h0 = c.in[first++].as<const T>();
        s.c0 = c.in[first++].as<const T>();
    }
    if constexpr ((Extras & 1) != 0) s.mask = c.in[first++].as<const bool>();
    if constexpr ((Extras & 2) != 0) s.dropped = c.in[first].as<const T>();
    return s;
}

/// The rows [batch, a.count(time), units] of a result or its derivative, as the steps they belong to.
template <class T>
struct lstm_rows {
    cpu::step_rows<T> steps, cell;
    std::int64_t first, last; ///< `steps` are of [first, last); -1 is the initial state

    lstm_rows(const lstm_attributes& a, T* data, std::int64_t time, std::int64_t units) {
        const std::int64_t count = a.count(time).value;
        steps = {data, count * units, a.rows == lstm_attributes::last ? 0 : units};
        first = a.rows == lstm_attributes::last ? time - 1 : a.rows == lstm_attributes::previous ? -1 : 0;
        last = a.rows == lstm_attributes::previous ? time - 1 : time;
        if (data == nullptr) return;
        if (a.rows == lstm_attributes::previous) steps.data += units;
        if (a.cell != 0) cell = {data + (count - 1) * units, count * units, 0};
    }
};

/// One record of h0 or c0, operand `which`, or zeros.
template <int Extras, class T>
void copy_initial(const kernel_call& c, int which, std::int64_t record, std::int64_t units, T* to) {
    if constexpr (tapegraph::detail::lstm_initial<Extras>)
        std::copy_n(c.in[which].as<const T>() + record * units, units, to);
    else
        std::fill_n(to, units, T(0));
}

} // namespace detail

template <int Extras, class T>
struct kernel<lstm_states_op<Extras>, T> {
    static cpu::lstm_shape<T> shape_of(const kernel_call& c) {
        return detail::lstm_operands<T, Extras>(c, attributes_of<lstm_states_op<Extras>>(c), c.in[0], 1);
    }
    static std::size_t workspace(const kernel_call& c) {
        return cpu::lstm_workspace_bytes(shape_of(c), false, thread_count());
    }
    static void run(const kernel_call& c) {
        const cpu::lstm_shape<T> s = shape_of(c);
        const detail::lstm_states_view<T> states(c.out[0].as<T>(), s.batch, s.time, s.units);
        cpu::lstm_forward<T>(s, {c.in[0].as<const T>(), 4 * s.time * s.units, 4 * s.units},
                             {states.h, states.c, states.gates}, c.workspace);
    }
};

template <int Extras, class T>
struct kernel<lstm_result_op<Extras>, T> {
    static void run(const kernel_call& c) {
        const auto a = attributes_of<lstm_result_op<Extras>>(c);
        const std::int64_t batch = c.in[0].extents[1], time = c.in[0].extents[2], units = c.in[0].extents[3];
        const detail::lstm_states_view<const T> states(c.in[0].as<const T>(), batch, time, units);
        const detail::lstm_rows<T> rows(a, c.out[0].as<T>(), time, units);
        // Step -1 is the initial state.
        const auto copy = [&](const cpu::step_rows<const T>& from, int initial, std::int64_t b, std::int64_t t, T* to) {
            if (t >= 0)
                std::copy_n(from.at(b, t), units, to);
            else
                detail::copy_initial<Extras>(c, initial, b, units, to);
        };
        cpu::parallel_for(batch, batch * time * units > 100000, [&](std::int64_t b) {
            for (std::int64_t t = rows.first; t < rows.last; ++t) copy(states.h, 3, b, t, rows.steps.at(b, t));
            if (a.cell != 0) copy(states.c, 4, b, time - 1, rows.cell.at(b, 0));
        });
    }
};

template <int Extras, class T>
struct kernel<lstm_op<Extras>, T> {
    static cpu::lstm_shape<T> shape_of(const kernel_call& c) {
        return detail::lstm_operands<T, Extras>(c, attributes_of<lstm_op<Extras>>(c), c.in[0], 1);
    }
    static std::size_t workspace(const kernel_call& c) {
        return cpu::lstm_workspace_bytes(shape_of(c), false, thread_count());
    }
    static void run(const kernel_call& c) {
        const cpu::lstm_shape<T> s = shape_of(c);
        const detail::lstm_rows<T> rows(attributes_of<lstm_op<Extras>>(c), c.out[0].as<T>(), s.time, s.units);
        if (s.time == 0) // the initial state is the last one
            for (std::int64_t b = 0; b < s.batch; ++b) {
                for (std::int64_t t = rows.first; t < rows.last; ++t)
                    detail::copy_initial<Extras>(c, 2, b, s.units, rows.steps.at(b, t));
                if (rows.cell.data != nullptr) detail::copy_initial<Extras>(c, 3, b, s.units, rows.cell.at(b, 0));
            }
        cpu::lstm_forward<T>(s, {c.in[0].as<const T>(), 4 * s.time * s.units, 4 * s.units}, {rows.steps, rows.cell, {}},
                             c.workspace);
    }
};

template <int Extras, class T>
struct kernel<lstm_gradient_op<Extras>, T> {
    static cpu::lstm_shape<T> shape_of(const kernel_call& c) {
        return detail::lstm_operands<T, Extras>(c, attributes_of<lstm_gradient_op<Extras>>(c), c.in[1], 3);
    }
    static std::size_t workspace(const kernel_call& c) {
        return cpu::lstm_workspace_bytes(shape_of(c), true, thread_count());
    }
    static void run(const kernel_call& c) {
        constexpr bool initial = tapegraph::detail::lstm_initial<Extras>;
        const auto a = attributes_of<lstm_gradient_op<Extras>>(c);
        const cpu::lstm_shape<T> s = shape_of(c);
        const detail::lstm_states_view<const T> states(c.in[1].as<const T>(), s.batch, s.time, s.units);
        const detail::lstm_rows<const T> rows(a, c.in[0].as<const T>(), s.time, s.units);
        const std::int64_t u = s.units, record = (4 * s.time + 2 * initial) * u;
        T* const out = c.out[0].as<T>();
        cpu::lstm_gradients<T> g{};
        g.c = states.c, g.gates = states.gates;
        g.seeds = rows.steps, g.first_seed = rows.first, g.last_seed = rows.last;
        g.last_cell = rows.cell;
        g.dz = {out, record, 4 * u};
        if (initial) g.dh0 = {out + 4 * s.time * u, record, 0}, g.dc0 = {out + (4 * s.time + 1) * u, record, 0};
        cpu::lstm_backward<T>(s, g, c.workspace);
    }
};

namespace detail {

/// What the tangent and the second derivative have in common: operand 0 is v, rows of 4 units for each step and, with an
/// initial state, one by h0 and one by c0.
template <int Extras, class T>
cpu::lstm_second_arguments<T> lstm_second_operands(const kernel_call& c, const lstm_attributes& a,
                                                   const cpu::lstm_shape<T>& s, const buffer_view& kept) {
    constexpr bool initial = tapegraph::detail::lstm_initial<Extras>;
    const std::int64_t u = s.units, record = (4 * s.time + 2 * initial) * u;
    const lstm_states_view<const T> states(kept.as<const T>(), s.batch, s.time, u);
    const T* const v = c.in[0].as<const T>();
    cpu::lstm_second_arguments<T> g{};
    g.c = states.c, g.gates = states.gates;
    g.v = {v, record, 4 * u};
    if (initial) g.v_h0 = {v + 4 * s.time * u, record, 0}, g.v_c0 = {v + (4 * s.time + 1) * u, record, 0};
    const lstm_rows<T> rows(a, nullptr, s.time, u);
    g.first_seed = rows.first, g.last_seed = rows.last;
    return g;
}

} // namespace detail

template <int Extras, class T>
struct kernel<lstm_tangent_op<Extras>, T> {
    static cpu::lstm_shape<T> shape_of(const kernel_call& c) {
        return detail::lstm_operands<T, Extras>(c, attributes_of<lstm_tangent_op<Extras>>(c), c.in[1], 3);
    }
    static std::size_t workspace(const kernel_call& c) {
        return cpu::lstm_second_workspace_bytes(shape_of(c), thread_count());
    }
    static void run(const kernel_call& c) {
        const auto a = attributes_of<lstm_tangent_op<Extras>>(c);
        const cpu::lstm_shape<T> s = shape_of(c);
        auto g = detail::lstm_second_operands<Extras>(c, a, s, c.in[1]);
        const detail::lstm_rows<T> rows(a, c.out[0].as<T>(), s.time, s.units);
        g.d_rows = rows.steps;
        g.d_c = rows.cell;
        cpu::lstm_second<T>(s, g, c.workspace);
    }
};

template <int Extras, class T>
struct kernel<lstm_second_op<Extras>, T> {
    static cpu::lstm_shape<T> shape_of(const kernel_call& c) {
        return detail::lstm_operands<T, Extras>(c, attributes_of<lstm_second_op<Extras>>(c), c.in[2], 4);
    }
    static std::size_t workspace(const kernel_call& c) {
        return cpu::lstm_second_workspace_bytes(shape_of(c), thread_count());
    }
    static void run(const kernel_call& c) {
        const auto a = attributes_of<lstm_second_op<Extras>>(c);
        const cpu::lstm_shape<T> s = shape_of(c);
        auto g = detail::lstm_second_operands<Extras>(c, a, s, c.in[2]);
        const detail::lstm_rows<const T> rows(a, c.in[1].as<const T>(), s.time, s.units);
        g.seeds = rows.steps;
        g.last_cell = rows.cell;
        const std::int64_t u = s.units, record = (5 * s.time + 2) * u;
        T* const out = c.out[0].as<T>();
        g.d_before = {out, record, u};
        g.d_z = {out + s.time * u, record, 4 * u};
        g.d_h0 = {out + 5 * s.time * u, record, 0};
        g.d_c0 = {out + (5 * s.time + 1) * u, record, 0};
        cpu::lstm_second<T>(s, g, c.workspace);
    }
};

} // namespace tapegraph::runtime
