#include "scan_cells.hpp"

namespace scan_options_test {

/// tg::scan: masks, directions, axes, what is kept, what is refused; cells that do other things.

using namespace scan_test;

namespace {

using double_sequence = tg::spec<double, tg::dyn, tg::dyn, 3>;

template <bool Scan>
struct masked_lstm {
    constexpr auto operator()(auto xs, auto w, auto r, auto b, auto h, auto c, auto mask) const {
        if constexpr (Scan) {
            const auto [last, sequence] =
                tg::scan(lstm_cell{}, std::tuple{h, c}, xs, {.go_backwards = true}, tg::step_mask{mask}, w, r, b);
            return std::tuple{sequence, std::get<0>(last), std::get<1>(last)};
        } else {
            const auto y = tg::lstm_with_state(xs, w, r, b, {.return_sequences = true, .go_backwards = true},
                                               tg::initial_state{h, c}, tg::step_mask{mask});
            return std::tuple{y.output, y.hidden, y.cell};
        }
    }
};
template <bool Scan>
constexpr auto masked_gradient = [](auto xs, auto w, auto r, auto b, auto h, auto c, auto mask) {
    return tg::value_and_gradient([mask](auto... x) {
        const auto [y, hidden, cell] = masked_lstm<Scan>{}(x..., mask);
        return score(y, hidden, cell);
    })(xs, w, r, b, h, c);
};

// Time first; the state turns round, and the output is a matrix made of it.
struct outer_cell {
    constexpr auto operator()(auto state, auto x) const {
        const auto& [a, b] = state;
        const auto next = tg::eval(tanh(a + x));
        return std::pair{std::tuple{b, next}, tg::expand_dims(next, -1) * tg::expand_dims(b, -2)};
    }
};
constexpr auto outer = [](auto xs, auto a, auto b) {
    return tg::value_and_gradient([](auto xs, auto a, auto b) {
        const auto [last, sequence] = tg::scan(outer_cell{}, std::tuple{a, b}, xs, {.axis = 0});
        return score(sequence, std::get<0>(last), std::get<1>(last));
    })(xs, a, b);
};

template <bool Recompute>
constexpr auto deep_gradient = [](auto xs, auto v, auto w) {
    const auto cell = [](auto h, auto x, auto u) {
        auto y = tg::eval(matmul(x, u));
        for (int i = 0; i < 4; ++i) y = tg::eval(tanh(matmul(y + h, u)));
        return std::pair{y, y};
    };
    return tg::value_and_gradient([cell](auto xs, auto v, auto w) {
        const auto [last, sequence] = tg::scan(cell, v, xs, {.recompute = Recompute}, w);
        return score(last, sequence);
    })(xs, v, w);
};

template <bool Checkpointed>
constexpr auto checkpointed_gradient = [](auto xs, auto v, auto w, auto rate) {
    const auto run = [](auto xs, auto v, auto w, auto rate) {
        const auto [last, sequence] = tg::scan(leaky_integrator{}, v, xs, w, rate);
        return tg::eval(sequence + tg::sum(last, -1, {.keepdims = true}));
    };
    return tg::value_and_gradient([run](auto... x) {
        if constexpr (Checkpointed)
            return score(tg::checkpoint(run)(x...));
        else
            return score(run(x...));
    })(xs, v, w, rate);
};

// Tokens: the cell looks rows of a table up, and what it reads of them is a scan of its own.
constexpr auto tokens = [](auto ids, auto v, auto table) {
    return tg::value_and_gradient([ids](auto v, auto table) {
        const auto cell = [](auto h, auto id, auto rows) {
            const auto running = [](auto s, auto x) {
                const auto next = tg::eval(s * 0.5 + x);
                return std::pair{next, next};
            };
            const auto row = tg::gather(rows, id, 0);
            const auto [last, smoothed] = tg::scan(running, tg::take(row, 0, 1), row);
            const auto next = tg::eval(tanh(h + smoothed));
            return std::pair{next, tg::eval(next * tg::expand_dims(last, -1))};
        };
        const auto [last, sequence] = tg::scan(cell, v, ids, table);
        return score(last, sequence);
    })(v, table);
};

constexpr auto plain_cell = [](auto v, auto x) { return std::pair{tg::eval(v + x), x}; };
constexpr auto wrong_cell = [](auto v, auto x) { return std::pair{tg::concat(v, x, 1), x}; };

} // namespace

TEST_CASE("scan: masks and the way back are the LSTM operation's, with derivatives") {
    using unit = tg::spec<double, tg::dyn, 2>;
    auto values = tg::function<tg::graph>(masked_lstm<true>{}, double_sequence{}, tg::spec<double, 3, 8>{},
                                          tg::spec<double, 2, 8>{}, tg::spec<double, 8>{}, unit{}, unit{},
                                          tg::spec<bool, tg::dyn, tg::dyn>{});
    auto gradients = tg::function<tg::graph>(masked_gradient<true>, double_sequence{}, tg::spec<double, 3, 8>{},
                                             tg::spec<double, 2, 8>{}, tg::spec<double, 8>{}, unit{}, unit{},
                                             tg::spec<bool, tg::dyn, tg::dyn>{});
    for (const std::int64_t time : {1, 2, 17}) {
        CAPTURE(time);
        auto mask = tg::full<bool>({5, time}, true);
        // Any pattern; the last step, which comes first, counts in every record: before it outputs are zero here and the
        // initial state there.
        for (std::int64_t i = 0; i < mask.size(); ++i) mask.mutable_data()[i] = i % time == time - 1 || i * i % 7 < 3;
        const auto check = [&](const auto&... x) {
            const auto want = flattened(masked_lstm<false>{}(x..., mask));
            CHECK(distance(flattened(values(x..., mask)), want) < 1e-10);
            CHECK(distance(flattened(masked_lstm<true>{}(x..., mask)), want) < 1e-10);
            const auto slopes = flattened(masked_gradient<false>(x..., mask));
            CHECK(distance(flattened(gradients(x..., mask)), slopes) < 1e-10);
            CHECK(distance(flattened(masked_gradient<true>(x..., mask)), slopes) < 1e-10);
        };
        check(drawn<double>({5, time, 3}, 1), drawn<double>({3, 8}, 2), drawn<double>({2, 8}, 3), drawn<double>({8}, 4),
              drawn<double>({5, 2}, 5), drawn<double>({5, 2}, 6));
    }
}

TEST_CASE("scan: before the first step that counts outputs are zero") {
    const auto run = [](auto xs, auto v, auto mask) {
        return tg::scan(plain_cell, v, xs, {}, tg::step_mask{mask}).sequence;
    };
    auto graph =
        tg::function<tg::graph>(run, tg::spec<double, 1, 4, 2>{}, tg::spec<double, 1, 2>{}, tg::spec<bool, 1, 4>{});
    const auto xs = drawn<double>({1, 4, 2}, 1), v = drawn<double>({1, 2}, 2);
    const tensor<bool> mask = tg::from_range<bool>(std::vector<int>{0, 1, 0, 1}, {1, 4});
    const std::vector<double> want{0, 0, xs(0, 1, 0), xs(0, 1, 1), xs(0, 1, 0), xs(0, 1, 1), xs(0, 3, 0), xs(0, 3, 1)};
    CHECK(graph(xs, v, mask).to_vector() == want);
    CHECK(run(xs, v, mask).to_vector() == want);
}

TEST_CASE("scan: time first, states that change places, outputs of higher rank") {
    auto graph = tg::function<tg::graph>(outer, tg::spec<double, tg::dyn, 2, 3>{}, tg::spec<double, 2, 3>{},
                                         tg::spec<double, 2, 3>{});
    for (const std::int64_t time : {1, 2, 7}) {
        const auto xs = drawn<double>({time, 2, 3}, 1), a = drawn<double>({2, 3}, 2), b = drawn<double>({2, 3}, 3);
        // Sums of a few hundred terms near 1.
        CHECK(distance(flattened(graph(xs, a, b)), flattened(outer(xs, a, b))) < 1e-12);
    }
}

TEST_CASE("scan: recompute keeps states alone, with the same bits") {
    using sequence = tg::spec<double, 8, 100, 5>;
    auto keeping =
        tg::function<tg::graph>(deep_gradient<false>, sequence{}, tg::spec<double, 8, 5>{}, tg::spec<double, 5, 5>{});
    auto again =
        tg::function<tg::graph>(deep_gradient<true>, sequence{}, tg::spec<double, 8, 5>{}, tg::spec<double, 5, 5>{});
    const auto xs = drawn<double>({8, 100, 5}, 1), v = drawn<double>({8, 5}, 2), w = drawn<double>({5, 5}, 3);
    const std::string found = difference(flattened(again(xs, v, w)), flattened(keeping(xs, v, w)));
    CHECK_MESSAGE(found.empty(), found);
    // Four values inside the cell and their sums, of 100 steps of 8 x 5 doubles, stand against the states.
    const std::size_t one = 100 * 8 * 5 * sizeof(double);
    CHECK(keeping.program().arena_bytes() >= again.program().arena_bytes() + 4 * one);
}

TEST_CASE("scan: in a checkpoint nothing is kept, with the same bits") {
    const auto make = [](const auto& f) {
        return tg::function<tg::graph>(f, double_sequence{}, tg::spec<double, tg::dyn, 4>{}, tg::spec<double, 3, 4>{},
                                       tg::spec<double>{});
    };
    auto graph = make(checkpointed_gradient<true>);
    auto plain = make(checkpointed_gradient<false>);
    const auto xs = drawn<double>({2, 9, 3}, 1), v = drawn<double>({2, 4}, 2), w = drawn<double>({3, 4}, 3);
    const tensor<double> rate(0.3);
    const std::string found = difference(flattened(graph(xs, v, w, rate)), flattened(plain(xs, v, w, rate)));
    CHECK_MESSAGE(found.empty(), found);
    CHECK(distance(flattened(checkpointed_gradient<true>(xs, v, w, rate)), flattened(plain(xs, v, w, rate))) < 1e-12);
}

TEST_CASE("scan: integer sequences, and a scan in a cell") {
    auto graph = tg::function<tg::graph>(tokens, tg::spec<std::int32_t, 2, tg::dyn>{}, tg::spec<double, 2, 4>{},
                                         tg::spec<double, 6, 4>{});
    for (const std::int64_t time : {1, 5}) {
        const auto ids = tg::arange<std::int32_t>(2 * time);
        auto wrapped = tensor<std::int32_t>::uninitialized({2, time});
        for (std::int64_t i = 0; i < ids.size(); ++i) wrapped.mutable_data()[i] = static_cast<std::int32_t>(i * 5 % 6);
        const auto v = drawn<double>({2, 4}, 1), table = drawn<double>({6, 4}, 2);
        CHECK(distance(flattened(graph(wrapped, v, table)), flattened(tokens(wrapped, v, table))) < 1e-12);
    }
}

TEST_CASE("scan: float and bfloat16") {
    const auto check = [](auto type, double tolerance) {
        using T = decltype(type);
        const auto run = [](auto xs, auto v, auto w, auto rate) {
            return tg::value_and_gradient([](auto... x) {
                const auto [last, sequence] =
                    tg::scan(leaky_integrator{}, std::get<1>(std::tuple{x...}), std::get<0>(std::tuple{x...}),
                             std::get<2>(std::tuple{x...}), std::get<3>(std::tuple{x...}));
                return score(last, sequence);
            })(xs, v, w, rate);
        };
        auto graph = tg::function<tg::graph>(run, tg::spec<T, 3, 9, 4>{}, tg::spec<T, 3, 5>{}, tg::spec<T, 4, 5>{},
                                             tg::spec<T>{});
        const auto xs = drawn<double>({3, 9, 4}, 1), v = drawn<double>({3, 5}, 2), w = drawn<double>({4, 5}, 3);
        const auto narrow = [](const tensor<double>& x) { return tensor<T>(tg::cast<T>(x)); };
        const auto got = flattened(graph(narrow(xs), narrow(v), narrow(w), narrow(tensor<double>(0.25))));
        const auto want = flattened(run(xs, v, w, tensor<double>(0.25)));
        double worst = 0;
        for (std::size_t k = 0; k < want.size(); ++k) {
            const tensor<double> a(tg::cast<double>(tensor<T>(got[k]))), b(want[k]);
            double largest = 1;
            for (std::int64_t i = 0; i < b.size(); ++i) largest = std::max(largest, std::abs(b.data()[i]));
            for (std::int64_t i = 0; i < b.size(); ++i) {
                const double error = std::abs(a.data()[i] - b.data()[i]) / largest;
                worst = error <= worst ? worst : error;
            }
        }
        CHECK(worst < tolerance);
    };
    check(0.0f, 1e-5);          // some tens of roundings of 6e-8 each
    check(tg::bfloat16(), 0.1); // of 4e-3 each
}

TEST_CASE("scan: errors at run time name the culprit") {
    const auto v = tg::zeros<double>({2, 3});
    const auto eager = [&](const auto& cell, const tg::shape& dims) {
        (void)tg::scan(cell, v, tg::zeros<double>(dims));
    };
    CHECK_THROWS_WITH_AS(eager(plain_cell, {2, 0, 3}), doctest::Contains("scan: a sequence of no steps: f64[2, 0, 3]"),
                         tg::shape_error);
    CHECK_THROWS_WITH_AS(eager(plain_cell, {2}),
                         doctest::Contains("scan: xs has no axis for time there: f64[2], axis 1"), tg::shape_error);
    CHECK_THROWS_WITH_AS(eager(wrong_cell, {2, 1, 3}), doctest::Contains("than the state: f64[2, 6], f64[2, 3]"),
                         tg::shape_error);
    CHECK_THROWS_WITH_AS(
        (void)tg::scan(plain_cell, v, tg::zeros<double>({2, 4, 3}), {}, tg::step_mask{tg::full<bool>({2, 5}, true)}),
        doctest::Contains("f64[2, 4, 3], bool[2, 5]"), tg::shape_error);

    const auto run = [](auto xs, auto v, auto mask) {
        return tg::scan(plain_cell, v, xs, {}, tg::step_mask{mask}).sequence;
    };
    auto graph = tg::function<tg::graph>(run, double_sequence{}, tg::spec<double, tg::dyn, 3>{},
                                         tg::spec<bool, tg::dyn, tg::dyn>{});
    const auto mask = [](std::int64_t time) { return tg::full<bool>({2, time}, true); };
    CHECK_THROWS_WITH_AS(graph(tg::zeros<double>({2, 0, 3}), v, mask(0)), doctest::Contains("is 0, at least 1"),
                         tg::shape_error);
    CHECK_THROWS_WITH_AS(graph(tg::zeros<double>({2, 4, 3}), v, mask(5)), doctest::Contains("is 4, axis 1 of"),
                         tg::shape_error);
    CHECK(graph(tg::zeros<double>({2, 4, 3}), v, mask(4)).shape() == tg::shape{2, 4, 3});
}

TEST_CASE("scan: a program does not grow with the sequence") {
    const auto run = [](auto xs, auto v, auto w, auto rate) {
        const auto [last, sequence] = tg::scan(leaky_integrator{}, v, xs, w, rate);
        return std::tuple{last, sequence};
    };
    const auto sizes = [&](auto time) {
        auto graph = tg::function<tg::graph>(run, tg::spec<double, 2, decltype(time)::value, 3>{},
                                             tg::spec<double, 2, 4>{}, tg::spec<double, 3, 4>{}, tg::spec<double>{});
        return std::tuple{graph.view().nodes.size(), graph.view().steps.size(), graph.view().kernels.size()};
    };
    // Both too many for what is done with few elements: small kernels are joined, small values kept for views of them.
    CHECK(sizes(std::integral_constant<std::int64_t, 5000>{}) == sizes(std::integral_constant<std::int64_t, 50000>{}));
}

} // namespace scan_options_test
