#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>

#include <ops/table.hpp>

namespace tapegraph::testing {

namespace {

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

template <bool After>
constexpr auto whole_gru = [](auto x, auto w, auto r, auto b, auto h, auto picks) {
    return with_picks(x, r, picks, [&](const auto&... extras) {
        const auto [y, last] =
            gru_with_state(x, w, r, b, {.reset_after = After, .return_sequences = true}, initial_state{h}, extras...);
        return concat({y, expand_dims(last, 1)}, 1);
    });
};
constexpr auto whole_rnn = [](auto x, auto w, auto r, auto b, auto h, auto picks) {
    return with_picks(x, r, picks, [&](const auto&... extras) {
        const auto [y, last] = simple_rnn_with_state(x, w, r, b, {.return_sequences = true, .go_backwards = true},
                                                     extras..., initial_state{h});
        return concat({y, expand_dims(last, 1)}, 1);
    });
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

} // namespace

std::vector<row> gru_rows() {
    std::vector<row> rows;
    // Weights are smaller than elsewhere where a step would move the state far, for differences along all of R at once.
    const auto put = [&](row r, std::vector<std::vector<extents>> shapes, double most = 0.3) {
        r = recurrent_row(std::move(r), std::move(shapes));
        for (std::size_t k : {1, 2, 3}) r.domains[k] = {-most, most};
        if (r.domains.size() > 4) r.domains[4] = {-0.5, 0.5};
        rows.push_back(std::move(r));
    };
    // More than a group of 64 units, more than the 96 rows whose products are kept, more than a tile, primes, one of each.
    put(make_row<4>(
            "gru", [](auto x, auto w, auto r, auto b) { return gru(x, w, r, b); }, {},
            [](const std::vector<array>& x) {
                return recurrence_reference{x[0], x[1], x[2], x[3], {}}.rows(false);
            }),
        {shapes_of(1, 1, 1, 1), shapes_of(2, 3, 2, 3), shapes_of(1, 5, 3, 67), shapes_of(97, 3, 2, 2),
         shapes_of(3, 2, 5, 131), shapes_of(0, 3, 2, 3), shapes_of(2, 0, 2, 3)});
    put(make_row<4>(
            "gru, recomputed, the reset gate before the product",
            [](auto x, auto w, auto r, auto b) {
                return gru(x, w, r, b, {.reset_after = false, .return_sequences = true, .recompute = true});
            },
            {},
            [](const std::vector<array>& x) {
                return recurrence_reference{x[0], x[1], x[2], x[3], {.after = false}}.rows(true);
            }),
        {shapes_of(1, 1, 1, 1, false), shapes_of(2, 3, 2, 3, false), shapes_of(1, 5, 3, 67, false),
         shapes_of(97, 3, 2, 2, false), shapes_of(3, 2, 5, 131, false), shapes_of(0, 3, 2, 3, false),
         shapes_of(2, 0, 2, 3, false)});
    put(make_row<4, false>(
            "gru backwards with relu and hard sigmoid",
            [](auto x, auto w, auto r, auto b) {
                return gru(x, w, r, b,
                           {.activation = cell_activation::relu,
                            .recurrent_activation = gate_activation::hard_sigmoid,
                            .return_sequences = true,
                            .go_backwards = true});
            },
            {},
            [](const std::vector<array>& x) {
                return recurrence_reference{x[0], x[1], x[2], x[3], {.relu = true, .hard = true, .backwards = true}}
                    .rows(true);
            }),
        {shapes_of(1, 1, 1, 1), shapes_of(2, 3, 2, 3), shapes_of(7, 4, 3, 17)});
    const auto whole = [&](row r, bool after) {
        r.watched = 5;
        put(std::move(r), {with_extras(shapes_of(1, 1, 1, 1, after)), with_extras(shapes_of(5, 4, 2, 3, after)),
                           with_extras(shapes_of(2, 3, 1, 67, after))});
    };
    const std::vector<interval> picks{{}, {}, {}, {}, {}, {0, 3}};
    whole(make_row<6, false>("gru from a state to a state with gaps, dropped out", whole_gru<true>, picks,
                             [](const std::vector<array>& x) { return expected_whole(x, true, false); }),
          true);
    whole(make_row<6, false>("the same, the reset gate before the product", whole_gru<false>, picks,
                             [](const std::vector<array>& x) { return expected_whole(x, false, false); }),
          false);
    const auto simple = [](const std::vector<array>& x) {
        return recurrence_reference{x[0], x[1], x[2], x[3], {}}.rows(false);
    };
    row rnn = make_row<4>(
        "simple_rnn", [](auto x, auto w, auto r, auto b) { return simple_rnn(x, w, r, b); }, {}, simple);
    put(rnn,
        {simple_shapes(1, 1, 1, 1), simple_shapes(2, 3, 2, 3), simple_shapes(97, 3, 2, 2), simple_shapes(0, 3, 2, 3),
         simple_shapes(2, 0, 2, 3)},
        0.1);
    // Nothing holds a step back here, so functions of many units are too far from straight for differences: see
    // composed_recurrent_test.cpp.
    rnn.derivatives = 0;
    put(rnn, {simple_shapes(1, 5, 3, 67), simple_shapes(3, 2, 5, 131)});
    put(make_row<4, false>(
            "simple_rnn with relu, recomputed",
            [](auto x, auto w, auto r, auto b) {
                return simple_rnn(x, w, r, b, {.activation = cell_activation::relu, .recompute = true});
            },
            {},
            [](const std::vector<array>& x) {
                return recurrence_reference{x[0], x[1], x[2], x[3], {.relu = true}}.rows(false);
            }),
        {simple_shapes(1, 1, 1, 1), simple_shapes(3, 4, 2, 7)});
    row whole_row =
        make_row<6, false>("simple_rnn backwards from a state to a state with gaps, dropped out", whole_rnn, picks,
                           [](const std::vector<array>& x) { return expected_whole(x, true, true); });
    whole_row.watched = 5;
    put(whole_row,
        {with_extras(simple_shapes(1, 1, 1, 1)), with_extras(simple_shapes(5, 4, 2, 3)),
         with_extras(simple_shapes(2, 3, 1, 11))},
        0.1);
    return rows;
}

} // namespace tapegraph::testing
