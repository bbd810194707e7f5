#include <tapegraph/graph/kernel_registry.hpp> // so that graphs made at run time find kernels that no list has
#include <tapegraph/nn/layers/recurrent.hpp>

#include <operations/builders.hpp>

namespace tapegraph::testing {

namespace lstms {

/// An LSTM with everything there is to it. Empty arrays: no mask, no dropout, states of zeros.
struct lstm_reference {
    array h, c; ///< of every step [batch, time, units]

    struct extras {
        array h0{extents{0}}, c0{extents{0}}, mask{extents{0}}, dropped{extents{0}};
        bool relu = false, hard = false, backwards = false;
    };

    lstm_reference(const array& x, const array& w, const array& r, const array& b, const extras& e) {
        const std::int64_t batch = x.dims[0], time = x.dims[1], features = x.dims[2], units = r.dims[0];
        h = c = array({batch, time, units});
        const auto squash = [&](real v) { return e.relu ? std::max(v, real(0)) : std::tanh(v); };
        const auto gate = [&](real v) {
            return e.hard ? std::clamp(v + 3, real(0), real(6)) / 6 : 1 / (1 + std::exp(-v));
        };
        for (std::int64_t n = 0; n < batch; ++n) {
            std::vector<real> state(static_cast<std::size_t>(units)), cell(state);
            for (std::int64_t u = 0; u < units && e.h0.size() > 0; ++u) {
                state[std::size_t(u)] = e.h0.at({n, u});
                cell[std::size_t(u)] = e.c0.at({n, u});
            }
            for (std::int64_t t = 0; t < time; ++t) {
                const std::int64_t at = e.backwards ? time - 1 - t : t;
                std::vector<real> next = state;
                for (std::int64_t u = 0; u < units && (e.mask.size() == 0 || e.mask.at({n, at}) != 0); ++u) {
                    real z[4];
                    for (std::int64_t g = 0; g < 4; ++g) {
                        z[g] = b[g * units + u];
                        for (std::int64_t k = 0; k < features; ++k) z[g] += x.at({n, at, k}) * w.at({k, g * units + u});
                        for (std::int64_t k = 0; k < units; ++k)
                            z[g] += state[std::size_t(k)] * (e.dropped.size() > 0 ? e.dropped.at({n, k}) : 1) *
                                    r.at({k, g * units + u});
                    }
                    real& own = cell[std::size_t(u)];
                    own = gate(z[1]) * own + gate(z[0]) * squash(z[2]);
                    next[std::size_t(u)] = gate(z[3]) * squash(own);
                }
                state = next;
                for (std::int64_t u = 0; u < units; ++u) {
                    h.at({n, t, u}) = state[std::size_t(u)];
                    c.at({n, t, u}) = cell[std::size_t(u)];
                }
            }
        }
    }

    /// Of one step, as [batch, units].
    static array step(const array& all, std::int64_t t) {
        array one({all.dims[0], all.dims[2]});
        for (std::int64_t n = 0; n < all.dims[0]; ++n)
            for (std::int64_t u = 0; u < all.dims[2]; ++u) one.at({n, u}) = all.at({n, t, u});
        return one;
    }
    array last() const { return h.dims[1] > 0 ? step(h, h.dims[1] - 1) : array({h.dims[0], h.dims[2]}); }
    /// Output, hidden and cell side by side.
    array with_state(bool sequences) const {
        const std::int64_t batch = h.dims[0], time = h.dims[1], units = h.dims[2], rows = sequences ? time : 1;
        array all({batch, rows + 2, units});
        for (std::int64_t n = 0; n < batch; ++n)
            for (std::int64_t u = 0; u < units; ++u) {
                for (std::int64_t t = 0; t < rows; ++t) all.at({n, t, u}) = h.at({n, sequences ? t : time - 1, u});
                all.at({n, rows, u}) = h.at({n, time - 1, u});
                all.at({n, rows + 1, u}) = c.at({n, time - 1, u});
            }
        return all;
    }
};

// Steps before lengths[n] count.
array length_mask(const array& lengths, std::int64_t time) {
    array mask({lengths.dims[0], time});
    for (std::int64_t i = 0; i < mask.size(); ++i) mask[i] = i % time < lengths[i / time];
    return mask;
}

std::vector<extents> shapes_of(std::int64_t batch, std::int64_t time, std::int64_t features, std::int64_t units) {
    return {{batch, time, features}, {features, 4 * units}, {units, 4 * units}, {4 * units}};
}

constexpr auto joined = [](const auto& values, bool sequences) {
    const auto row = [](const auto& x) { return expand_dims(x, 1); };
    return concat({sequences ? values.output : row(values.output), row(values.hidden), row(values.cell)}, 1);
};

// whole: sequences, recomputed, relu and hard sigmoid, backwards.
lstm_options options_of(const attributes& with) {
    lstm_options options;
    if (with.whole[0] != 0) options.return_sequences = true;
    if (with.whole[1] != 0) options.recompute = true;
    if (with.whole[2] != 0) options.activation = cell_activation::relu;
    if (with.whole[2] != 0) options.recurrent_activation = gate_activation::hard_sigmoid;
    if (with.whole[3] != 0) options.go_backwards = true;
    return options;
}
shape_list with_initial(shape_list shapes, bool lengths) {
    for (auto& s : shapes) {
        s.push_back({s[0][0], s[2][0]});
        s.push_back(s.back());
        if (lengths) s.push_back({s[0][0]});
    }
    return shapes;
}

operation plain() {
    // More than a group of 64 units, more than the 96 rows whose products are kept, more than a tile, primes, one of each.
    const shape_list all{shapes_of(1, 1, 1, 1),  shapes_of(2, 3, 2, 3),  shapes_of(1, 5, 3, 67),
                         shapes_of(13, 2, 1, 5), shapes_of(97, 3, 2, 2), shapes_of(3, 2, 5, 131),
                         shapes_of(0, 3, 2, 3),  shapes_of(2, 0, 2, 3)};
    operation made = make_operation<floating, floating, floating, floating>(
        "lstm", not_drawn{[](const auto& x, const auto& w, const auto& r, const auto& b, const attributes& with) {
            return lstm(x, w, r, b, options_of(with));
        }},
        {recurrent_row({{0, 0, 0, 0}, {}}, all), recurrent_row({{1, 0, 0, 0}, {}}, all),
         recurrent_row({{1, 1, 0, 0}, {}}, all),
         recurrent_row({{1, 0, 1, 1}, {}}, {shapes_of(1, 1, 1, 1), shapes_of(2, 3, 2, 3), shapes_of(7, 4, 3, 17)})});
    made.reference = [](const std::vector<array>& x, const attributes& with) {
        const bool other = with.whole[2] != 0;
        const lstm_reference reference(x[0], x[1], x[2], x[3],
                                       {.relu = other, .hard = other, .backwards = with.whole[3] != 0});
        return with.whole[0] != 0 ? reference.h : reference.last();
    };
    return made;
}

operation from_a_state() {
    operation made = make_operation<floating, floating, floating, floating, floating, floating>(
        "lstm from a state to a state",
        not_drawn{[](const auto& x, const auto& w, const auto& r, const auto& b, const auto& h, const auto& c,
                     const attributes&) {
            return joined(lstm_with_state(x, w, r, b, {}, initial_state{h, c}), false);
        }},
        {recurrent_row({},
                       with_initial({shapes_of(1, 1, 1, 1), shapes_of(3, 5, 2, 4), shapes_of(1, 2, 1, 71)}, false))});
    made.reference = [](const std::vector<array>& x, const attributes&) {
        return lstm_reference(x[0], x[1], x[2], x[3], {.h0 = x[4], .c0 = x[5]}).with_state(false);
    };
    return made;
}

operation by_length() {
    row masked =
        recurrent_row({}, with_initial({shapes_of(1, 1, 1, 1), shapes_of(5, 5, 2, 3), shapes_of(2, 4, 1, 67)}, true));
    masked.domains.resize(6);
    masked.domains.push_back({0, 6});
    operation made = make_operation<floating, floating, floating, floating, floating, floating, std::int64_t>(
        "lstm by length, dropped out, from a state to all",
        not_drawn{[](const auto& x, const auto& w, const auto& r, const auto& b, const auto& h, const auto& c,
                     const auto& lengths, const attributes&) {
            const auto mask = sequence_mask(lengths, shape_of(x)[1]);
            const auto factors = eval(where(full_like(h, 1) > 2, 0, 1.25 * zeros_like(h) + 0.75));
            return joined(lstm_with_state(x, w, r, b, {.return_sequences = true}, recurrent_dropout{factors},
                                          initial_state{h, c}, step_mask{mask}),
                          true);
        }},
        {masked});
    made.reference = [](const std::vector<array>& x, const attributes&) {
        const array factors(x[4].dims, 0.75);
        return lstm_reference(x[0], x[1], x[2], x[3],
                              {.h0 = x[4], .c0 = x[5], .mask = length_mask(x[6], x[0].dims[1]), .dropped = factors})
            .with_state(true);
    };
    return made;
}

operation with_gaps() {
    shape_list shapes{shapes_of(1, 1, 1, 1), shapes_of(5, 4, 2, 3), shapes_of(3, 3, 1, 19)};
    for (auto& s : shapes) s.push_back({s[0][0], s[0][1] + s[2][0]});
    row gaps = recurrent_row({}, shapes);
    gaps.domains.resize(4);
    gaps.domains.push_back({0, 3});
    gaps.watched = 4;
    operation made = make_operation<floating, floating, floating, floating, floating>(
        "lstm backwards with gaps, dropped out",
        not_drawn{[](const auto& x, const auto& w, const auto& r, const auto& b, const auto& picks,
                     const attributes&) { // picks [batch, time + units] of 0 to 2
            const extent time = shape_of(x)[1], units = shape_of(r)[0];
            const auto mask = eval(detail::part_of(picks, 1, extent(0, time.table), time, {}) > 0);
            const auto factors = detail::part_of(picks, 1, time, units, {});
            return lstm(x, w, r, b, {.return_sequences = true, .go_backwards = true}, step_mask{mask},
                        recurrent_dropout{factors});
        }},
        {gaps});
    made.reference = [](const std::vector<array>& x, const attributes&) {
        const std::int64_t batch = x[0].dims[0], time = x[0].dims[1], units = x[2].dims[0];
        array mask({batch, time}), factors({batch, units});
        for (std::int64_t n = 0; n < batch; ++n) {
            for (std::int64_t t = 0; t < time; ++t) mask.at({n, t}) = x[4].at({n, t}) > 0;
            for (std::int64_t u = 0; u < units; ++u) factors.at({n, u}) = x[4].at({n, time + u});
        }
        return lstm_reference(x[0], x[1], x[2], x[3], {.mask = mask, .dropped = factors, .backwards = true}).h;
    };
    return made;
}

} // namespace lstms

std::vector<operation> recurrent_operations() {
    using namespace lstms;
    std::vector<operation> made{plain(), from_a_state(), by_length(), with_gaps()};
    for (operation& each : made) each.graph_types = {dtype::f64, dtype::f32}; // registered where used: these alone
    return made;
}

} // namespace tapegraph::testing
