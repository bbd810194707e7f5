#include <tapegraph/nn/layers/recurrent.hpp>

#include <ops/table.hpp>

namespace tapegraph::testing {

namespace {

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

} // namespace

std::vector<row> recurrent_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, std::vector<std::vector<extents>> shapes) {
        rows.push_back(recurrent_row(std::move(r), std::move(shapes)));
    };
    // More than a group of 64 units, more than the 96 rows whose products are kept, more than a tile, primes, one of each.
    const std::vector<std::vector<extents>> shapes{shapes_of(1, 1, 1, 1),  shapes_of(2, 3, 2, 3),
                                                   shapes_of(1, 5, 3, 67), shapes_of(13, 2, 1, 5),
                                                   shapes_of(97, 3, 2, 2), shapes_of(3, 2, 5, 131)};
    std::vector<std::vector<extents>> empty = shapes;
    empty.push_back(shapes_of(0, 3, 2, 3));
    empty.push_back(shapes_of(2, 0, 2, 3));
    put(make_row<4>(
            "lstm", [](auto x, auto w, auto r, auto b) { return lstm(x, w, r, b); }, {},
            [](const std::vector<array>& x) { return lstm_reference(x[0], x[1], x[2], x[3], {}).last(); }),
        empty);
    put(make_row<4>(
            "lstm, sequences",
            [](auto x, auto w, auto r, auto b) { return lstm(x, w, r, b, {.return_sequences = true}); }, {},
            [](const std::vector<array>& x) { return lstm_reference(x[0], x[1], x[2], x[3], {}).h; }),
        empty);
    put(make_row<4, false>(
            "lstm, recomputed",
            [](auto x, auto w, auto r, auto b) {
                return lstm(x, w, r, b, {.return_sequences = true, .recompute = true});
            },
            {}, [](const std::vector<array>& x) { return lstm_reference(x[0], x[1], x[2], x[3], {}).h; }),
        empty);
    put(make_row<4, false>(
            "lstm backwards with relu and hard sigmoid",
            [](auto x, auto w, auto r, auto b) {
                return lstm(x, w, r, b,
                            {.activation = cell_activation::relu,
                             .recurrent_activation = gate_activation::hard_sigmoid,
                             .return_sequences = true,
                             .go_backwards = true});
            },
            {},
            [](const std::vector<array>& x) {
                return lstm_reference(x[0], x[1], x[2], x[3], {.relu = true, .hard = true, .backwards = true}).h;
            }),
        {shapes_of(1, 1, 1, 1), shapes_of(2, 3, 2, 3), shapes_of(7, 4, 3, 17)});
    const auto with_initial = [](std::vector<extents> s, bool lengths) {
        s.push_back({s[0][0], s[2][0]});
        s.push_back(s.back());
        if (lengths) s.push_back({s[0][0]});
        return s;
    };
    put(make_row<6>(
            "lstm from a state to a state",
            [](auto x, auto w, auto r, auto b, auto h, auto c) {
                return joined(lstm_with_state(x, w, r, b, {}, initial_state{h, c}), false);
            },
            {},
            [](const std::vector<array>& x) {
                return lstm_reference(x[0], x[1], x[2], x[3], {.h0 = x[4], .c0 = x[5]}).with_state(false);
            }),
        {with_initial(shapes_of(1, 1, 1, 1), false), with_initial(shapes_of(3, 5, 2, 4), false),
         with_initial(shapes_of(1, 2, 1, 71), false)});
    row masked = make_row<7>(
        "lstm by length, dropped out, from a state to all",
        [](auto x, auto w, auto r, auto b, auto h, auto c, auto lengths) {
            const auto mask = sequence_mask(cast<std::int64_t>(lengths), shape_of(x)[1]);
            const auto factors = eval(where(full_like(h, 1) > 2, 0, 1.25 * zeros_like(h) + 0.75));
            return joined(lstm_with_state(x, w, r, b, {.return_sequences = true}, recurrent_dropout{factors},
                                          initial_state{h, c}, step_mask{mask}),
                          true);
        },
        {{}, {}, {}, {}, {}, {}, {0, 6}},
        [](const std::vector<array>& x) {
            array factors(x[4].dims, 0.75);
            return lstm_reference(x[0], x[1], x[2], x[3],
                                  {.h0 = x[4], .c0 = x[5], .mask = length_mask(x[6], x[0].dims[1]), .dropped = factors})
                .with_state(true);
        });
    masked.watched = 6;
    put(masked, {with_initial(shapes_of(1, 1, 1, 1), true), with_initial(shapes_of(5, 5, 2, 3), true),
                 with_initial(shapes_of(2, 4, 1, 67), true)});
    row gaps = make_row<5>(
        "lstm backwards with gaps, dropped out",
        [](auto x, auto w, auto r, auto b, auto picks) { // [batch, time + units] of 0 to 2
            const extent time = shape_of(x)[1], units = shape_of(r)[0];
            const auto mask = eval(detail::part_of(picks, 1, extent(0, time.table), time, {}) > 0);
            const auto factors = detail::part_of(picks, 1, time, units, {});
            return lstm(x, w, r, b, {.return_sequences = true, .go_backwards = true}, step_mask{mask},
                        recurrent_dropout{factors});
        },
        {{}, {}, {}, {}, {0, 3}},
        [](const std::vector<array>& x) {
            const std::int64_t batch = x[0].dims[0], time = x[0].dims[1], units = x[2].dims[0];
            array mask({batch, time}), factors({batch, units});
            for (std::int64_t n = 0; n < batch; ++n) {
                for (std::int64_t t = 0; t < time; ++t) mask.at({n, t}) = x[4].at({n, t}) > 0;
                for (std::int64_t u = 0; u < units; ++u) factors.at({n, u}) = x[4].at({n, time + u});
            }
            return lstm_reference(x[0], x[1], x[2], x[3], {.mask = mask, .dropped = factors, .backwards = true}).h;
        });
    gaps.watched = 4;
    const auto with_picks = [](std::vector<extents> s) {
        s.push_back({s[0][0], s[0][1] + s[2][0]});
        return s;
    };
    put(gaps,
        {with_picks(shapes_of(1, 1, 1, 1)), with_picks(shapes_of(5, 4, 2, 3)), with_picks(shapes_of(3, 3, 1, 19))});
    return rows;
}

} // namespace tapegraph::testing
