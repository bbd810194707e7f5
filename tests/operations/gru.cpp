#include <tapegraph/graph/kernel_registry.hpp> // so that graphs made at run time find kernels that no list has
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>

#include <operations/builders.hpp>

namespace tapegraph::testing {

namespace grus {

/// A GRU or, with a kernel as wide as its state, a simple recurrent layer. Empty arrays: no mask, no dropout, a state of zeros.
struct recurrence_reference {
    struct extras {
        array h0{extents{0}}, mask{extents{0}}, dropped{extents{0}};
        bool after = true, relu = false, hard = false, backwards = false;
    };

    array x, w, r, b;
    extras e;

    real squash(real v) const { return e.relu ? std::max(v, real(0)) : std::tanh(v); }
    real gate(real v) const { return e.hard ? std::clamp(v + 3, real(0), real(6)) / 6 : 1 / (1 + std::exp(-v)); }
    /// One element of x_t W, and of g R with the state g.
    real projected(std::int64_t n, std::int64_t t, std::int64_t column) const {
        real sum = 0;
        for (std::int64_t k = 0; k < w.dims[0]; ++k) sum += x.at({n, t, k}) * w.at({k, column});
        return sum;
    }
    real multiplied(const std::vector<real>& g, std::int64_t n, std::int64_t column) const {
        real sum = 0;
        for (std::int64_t k = 0; k < r.dims[0]; ++k)
            sum += g[std::size_t(k)] * (e.dropped.size() > 0 ? e.dropped.at({n, k}) : 1) * r.at({k, column});
        return sum;
    }
    std::vector<real> step(const std::vector<real>& h, std::int64_t n, std::int64_t t) const {
        const std::int64_t units = r.dims[0];
        std::vector<real> next(h), kept(h), z(h);
        const auto column = [&](std::int64_t gate, std::int64_t u) { return gate * units + u; };
        for (std::int64_t u = 0; u < units; ++u) {
            if (w.dims[1] == units) {
                next[std::size_t(u)] = squash(projected(n, t, u) + multiplied(h, n, u) + b[u]);
                continue;
            }
            const auto argument = [&](std::int64_t g) {
                const std::int64_t c = column(g, u);
                return projected(n, t, c) + multiplied(h, n, c) + b[c] + (e.after ? b[3 * units + c] : 0);
            };
            z[std::size_t(u)] = gate(argument(0));
            kept[std::size_t(u)] = gate(argument(1)) * (e.after ? 1 : h[std::size_t(u)]);
        }
        for (std::int64_t u = 0; u < units && w.dims[1] != units; ++u) {
            const std::int64_t c = column(2, u);
            const real inner =
                e.after ? kept[std::size_t(u)] * (multiplied(h, n, c) + b[3 * units + c]) : multiplied(kept, n, c);
            const real candidate = squash(projected(n, t, c) + b[c] + inner), weight = z[std::size_t(u)];
            next[std::size_t(u)] = weight * h[std::size_t(u)] + (1 - weight) * candidate;
        }
        return next;
    }
    /// h of every step [batch, time, units], or of the last.
    array rows(bool sequences) const {
        const std::int64_t batch = x.dims[0], time = x.dims[1], units = r.dims[0];
        array all({batch, time, units}), end({batch, units});
        for (std::int64_t n = 0; n < batch; ++n) {
            std::vector<real> h(static_cast<std::size_t>(units));
            for (std::int64_t u = 0; u < units && e.h0.size() > 0; ++u) h[std::size_t(u)] = e.h0.at({n, u});
            for (std::int64_t t = 0; t < time; ++t) {
                const std::int64_t at = e.backwards ? time - 1 - t : t;
                if (e.mask.size() == 0 || e.mask.at({n, at}) != 0) h = step(h, n, at);
                for (std::int64_t u = 0; u < units; ++u) all.at({n, t, u}) = h[std::size_t(u)];
            }
            for (std::int64_t u = 0; u < units; ++u) end.at({n, u}) = h[std::size_t(u)];
        }
        return sequences ? all : end;
    }
};

std::vector<extents> shapes_of(std::int64_t batch, std::int64_t time, std::int64_t features, std::int64_t units,
                               bool after = true) {
    extents bias{3 * units};
    if (after) bias.insert(bias.begin(), 2);
    return {{batch, time, features}, {features, 3 * units}, {units, 3 * units}, bias};
}
std::vector<extents> simple_shapes(std::int64_t batch, std::int64_t time, std::int64_t features, std::int64_t units) {
    return {{batch, time, features}, {features, units}, {units, units}, {units}};
}
/// An initial state, and [batch, time + units] of numbers that say what counts and what is dropped.
std::vector<extents> with_extras(std::vector<extents> s) {
    s.push_back({s[0][0], s[2][0]});
    s.push_back({s[0][0], s[0][1] + s[2][0]});
    return s;
}

/// Calls f with what the numbers of with_extras stand for.
constexpr auto with_picks = [](const auto& x, const auto& r, const auto& picks, const auto& f) {
    const extent time = shape_of(x)[1], units = shape_of(r)[0];
    const auto mask = eval(detail::part_of(picks, 1, extent(0, time.table), time, {}) > 0);
    return f(step_mask{mask}, recurrent_dropout{detail::part_of(picks, 1, time, units, {})});
};

array expected_whole(const std::vector<array>& x, bool after, bool backwards) {
    const std::int64_t batch = x[0].dims[0], time = x[0].dims[1], units = x[2].dims[0];
    array mask({batch, time}), factors({batch, units}), all({batch, time + 1, units});
    for (std::int64_t n = 0; n < batch; ++n) {
        for (std::int64_t t = 0; t < time; ++t) mask.at({n, t}) = x[5].at({n, t}) > 0;
        for (std::int64_t u = 0; u < units; ++u) factors.at({n, u}) = x[5].at({n, time + u});
    }
    const recurrence_reference reference{
        x[0], x[1], x[2], x[3], {.h0 = x[4], .mask = mask, .dropped = factors, .after = after, .backwards = backwards}};
    const array rows = reference.rows(true), last = reference.rows(false);
    for (std::int64_t n = 0; n < batch; ++n)
        for (std::int64_t u = 0; u < units; ++u) {
            for (std::int64_t t = 0; t < time; ++t) all.at({n, t, u}) = rows.at({n, t, u});
            all.at({n, time, u}) = last.at({n, u});
        }
    return all;
}

// whole: sequences, recomputed, relu, hard sigmoid, backwards, and of a GRU whether the reset gate comes after the product.
template <class Options>
Options options_of(const attributes& with) {
    Options options;
    if (with.whole[0] != 0) options.return_sequences = true;
    if (with.whole[1] != 0) options.recompute = true;
    if (with.whole[4] != 0) options.go_backwards = true;
    if (with.whole[2] != 0) options.activation = cell_activation::relu;
    if constexpr (requires { options.reset_after; }) {
        if (with.whole[3] != 0) options.recurrent_activation = gate_activation::hard_sigmoid;
        if (with.whole[5] == 0) options.reset_after = false;
    }
    return options;
}
array expected_plain(const std::vector<array>& x, const attributes& with) {
    return recurrence_reference{x[0],
                                x[1],
                                x[2],
                                x[3],
                                {.after = with.whole[5] != 0,
                                 .relu = with.whole[2] != 0,
                                 .hard = with.whole[3] != 0,
                                 .backwards = with.whole[4] != 0}}
        .rows(with.whole[0] != 0);
}
// Weights are smaller than elsewhere where a step would move the state far, for differences along all of R at once.
row at(attributes with, shape_list shapes, double most = 0.3) {
    row r = recurrent_row(std::move(with), std::move(shapes), most);
    r.domains.push_back({-most, most});
    return r;
}
row whole(attributes with, shape_list shapes, double most = 0.3) {
    for (auto& s : shapes) s = with_extras(s);
    row r = at(std::move(with), std::move(shapes), most);
    r.domains.insert(r.domains.end(), {{-0.5, 0.5}, {0, 3}});
    r.watched = 5;
    return r;
}

operation gates() {
    const attributes before{{1, 1, 0, 0, 0, 0}, {}};
    operation made = make_operation<floating, floating, floating, floating>(
        "gru", not_drawn{[](const auto& x, const auto& w, const auto& r, const auto& b, const attributes& with) {
            return gru(x, w, r, b, options_of<gru_options>(with));
        }},
        // More than a group of 64 units, more than the 96 rows whose products are kept, more than a tile, primes, one of each.
        {at({{0, 0, 0, 0, 0, 1}, {}},
            {shapes_of(1, 1, 1, 1), shapes_of(2, 3, 2, 3), shapes_of(1, 5, 3, 67), shapes_of(97, 3, 2, 2),
             shapes_of(3, 2, 5, 131), shapes_of(0, 3, 2, 3), shapes_of(2, 0, 2, 3)}),
         at(before, {shapes_of(1, 1, 1, 1, false), shapes_of(2, 3, 2, 3, false), shapes_of(1, 5, 3, 67, false),
                     shapes_of(97, 3, 2, 2, false), shapes_of(3, 2, 5, 131, false), shapes_of(0, 3, 2, 3, false),
                     shapes_of(2, 0, 2, 3, false)}),
         at({{1, 0, 1, 1, 1, 1}, {}}, {shapes_of(1, 1, 1, 1), shapes_of(2, 3, 2, 3), shapes_of(7, 4, 3, 17)})});
    made.reference = expected_plain;
    return made;
}
operation gates_from_a_state() {
    const auto shapes = [](bool after) {
        return shape_list{shapes_of(1, 1, 1, 1, after), shapes_of(5, 4, 2, 3, after), shapes_of(2, 3, 1, 67, after)};
    };
    operation made = make_operation<double, double, double, double, double, double>(
        "gru from a state to a state with gaps, dropped out",
        not_drawn{[](const auto& x, const auto& w, const auto& r, const auto& b, const auto& h, const auto& picks,
                     const attributes& with) {
            return with_picks(x, r, picks, [&](const auto&... extras) {
                const auto [y, last] =
                    gru_with_state(x, w, r, b, options_of<gru_options>(with), initial_state{h}, extras...);
                return concat({y, expand_dims(last, 1)}, 1);
            });
        }},
        {whole({{1, 0, 0, 0, 0, 1}, {}}, shapes(true)), whole({{1, 0, 0, 0, 0, 0}, {}}, shapes(false))});
    made.reference = [](const std::vector<array>& x, const attributes& with) {
        return expected_whole(x, with.whole[5] != 0, false);
    };
    return made;
}

operation simple() {
    // Nothing holds a step back here, so functions of many units are too far from straight for differences: see
    // composed_recurrent_test.cpp.
    row far = at({{0, 0, 0, 0, 0, 1}, {}}, {simple_shapes(1, 5, 3, 67), simple_shapes(3, 2, 5, 131)});
    far.derivatives = 0;
    operation made = make_operation<floating, floating, floating, floating>(
        "simple_rnn", not_drawn{[](const auto& x, const auto& w, const auto& r, const auto& b, const attributes& with) {
            return simple_rnn(x, w, r, b, options_of<simple_rnn_options>(with));
        }},
        {at({{0, 0, 0, 0, 0, 1}, {}},
            {simple_shapes(1, 1, 1, 1), simple_shapes(2, 3, 2, 3), simple_shapes(97, 3, 2, 2),
             simple_shapes(0, 3, 2, 3), simple_shapes(2, 0, 2, 3)},
            0.1),
         far, at({{0, 1, 1, 0, 0, 1}, {}}, {simple_shapes(1, 1, 1, 1), simple_shapes(3, 4, 2, 7)})});
    made.reference = expected_plain;
    return made;
}
operation simple_from_a_state() {
    operation made = make_operation<double, double, double, double, double, double>(
        "simple_rnn backwards from a state to a state with gaps, dropped out",
        not_drawn{[](const auto& x, const auto& w, const auto& r, const auto& b, const auto& h, const auto& picks,
                     const attributes&) {
            return with_picks(x, r, picks, [&](const auto&... extras) {
                const auto [y, last] = simple_rnn_with_state(
                    x, w, r, b, {.return_sequences = true, .go_backwards = true}, extras..., initial_state{h});
                return concat({y, expand_dims(last, 1)}, 1);
            });
        }},
        {whole({}, {simple_shapes(1, 1, 1, 1), simple_shapes(5, 4, 2, 3), simple_shapes(2, 3, 1, 11)}, 0.1)});
    made.reference = [](const std::vector<array>& x, const attributes&) { return expected_whole(x, true, true); };
    return made;
}

} // namespace grus

std::vector<operation> gru_operations() {
    using namespace grus;
    std::vector<operation> made{gates(), gates_from_a_state(), simple(), simple_from_a_state()};
    for (operation& each : made) each.graph_types = {dtype::f64, dtype::f32}; // registered where used: these alone
    return made;
}

} // namespace tapegraph::testing
