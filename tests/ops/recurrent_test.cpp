#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/ops/ops.hpp>

#include <ops/recurrent_modes.hpp>

namespace recurrent_test {

/// LSTMs in graph mode, batch and time symbolic: the same bits as in eager mode; values, gradients, second derivatives.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

constexpr auto last = [](auto x, auto w, auto r, auto b) { return sum(square(lstm(x, w, r, b))); };

constexpr auto recomputed = [](auto x, auto w, auto r, auto b) {
    return sum(square(lstm(x, w, r, b, {.return_sequences = true, .go_backwards = true, .recompute = true})));
};

constexpr auto everything = [](auto x, auto w, auto r, auto b, auto h, auto c, auto factors) {
    // Steps whose first feature is not negative.
    const auto mask = tg::eval(tg::take(x, 0, -1) >= 0);
    const auto [y, hidden, cell] = tg::lstm_with_state(x, w, r, b, {.return_sequences = true}, tg::step_mask{mask},
                                                       tg::initial_state{h, c}, tg::recurrent_dropout{factors});
    const auto parts = std::tuple{tg::eval(sum(square(y))), tg::eval(sum(hidden)), tg::eval(sum(square(cell)))};
    return tg::eval(std::get<0>(parts) + std::get<1>(parts) + std::get<2>(parts));
};

constexpr auto curvature = [](auto... x) { return with_curvature(last, x...); };

} // namespace

TEST_CASE_TEMPLATE("both modes: lstm", T, double, float) {
    using spec_x = tg::spec<T, tg::dyn, tg::dyn, 3>;
    using spec_w = tg::spec<T, 3, 20>;
    using spec_r = tg::spec<T, 5, 20>;
    using spec_b = tg::spec<T, 20>;
    compiled_modes plain(tg::value_and_gradient(last), spec_x{}, spec_w{}, spec_r{}, spec_b{});
    compiled_modes lean(tg::value_and_gradient(recomputed), spec_x{}, spec_w{}, spec_r{}, spec_b{});
    const auto w = drawn<T>({3, 20}, 2), r = drawn<T>({5, 20}, 3), b = drawn<T>({20}, 4);
    // A larger batch, a longer sequence, then smaller ones again in the same arena.
    for (auto [n, t] : {std::pair<std::int64_t, std::int64_t>{2, 3}, {1, 1}, {19, 4}, {3, 11}, {2, 0}, {4, 2}}) {
        const auto shown_n = n;
        CAPTURE(shown_n);
        const auto shown_t = t;
        CAPTURE(shown_t);
        const auto x = drawn<T>({n, t, 3}, 1);
        check_bits(plain, x, w, r, b);
        check_bits(lean, x, w, r, b);
    }
}

TEST_CASE("both modes: lstm with mask, states and dropout") {
    compiled_modes modes(tg::value_and_gradient(everything), tg::spec<double, tg::dyn, tg::dyn, 3>{},
                         tg::spec<double, 3, 16>{}, tg::spec<double, 4, 16>{}, tg::spec<double, 16>{},
                         tg::spec<double, tg::dyn, 4>{}, tg::spec<double, tg::dyn, 4>{},
                         tg::spec<double, tg::dyn, 4>{});
    for (auto [n, t] : {std::pair<std::int64_t, std::int64_t>{2, 3}, {1, 1}, {17, 6}})
        check_bits(modes, drawn<double>({n, t, 3}, 1), drawn<double>({3, 16}, 2), drawn<double>({4, 16}, 3),
                   drawn<double>({16}, 4), drawn<double>({n, 4}, 5), drawn<double>({n, 4}, 6),
                   drawn<double>({n, 4}, 7));
}

TEST_CASE("both modes: second derivatives of lstm") {
    // Adjoints of a gradient that is itself recorded add up in another order than the compiled ones.
    compiled_modes modes(tg::value_and_gradient(curvature), tg::spec<double, tg::dyn, tg::dyn, 3>{},
                         tg::spec<double, 3, 16>{}, tg::spec<double, 4, 16>{}, tg::spec<double, 16>{});
    for (auto [n, t] : {std::pair<std::int64_t, std::int64_t>{2, 3}, {1, 1}, {15, 5}})
        CHECK(modes.distance(drawn<double>({n, t, 3}, 1), drawn<double>({3, 16}, 2), drawn<double>({4, 16}, 3),
                             drawn<double>({16}, 4)) < 1e-12);
}

TEST_CASE("lstm names the operand that does not fit") {
    const auto x = drawn<float>({2, 3, 4}, 1), w = drawn<float>({4, 20}, 2), r = drawn<float>({5, 20}, 3),
               b = drawn<float>({20}, 4), h = drawn<float>({2, 5}, 5);
    check_says([&] { tg::lstm(h, w, r, b); }, "lstm: input must be [batch, time, features]: f32[2, 5]");
    check_says([&] { tg::lstm(x, b, r, b); }, "lstm: kernel must be [features, 4 units]");
    check_says([&] { tg::lstm(x, w, w, b); }, "lstm: recurrent kernel must be [units, 4 units]");
    check_says(
        [&] {
            tg::lstm(x, w, drawn<float>({3, 12}, 1), b);
        },
        "lstm: kernel and recurrent kernel differ in units");
    check_says([&] { tg::lstm(x, w, r, h); }, "lstm: bias must be [4 units]");
    check_says(
        [&] {
            tg::lstm(x, w, r, b, {}, tg::initial_state{h, drawn<float>({2, 4}, 1)});
        },
        "lstm: initial states must be [batch, units]");
    check_says([&] { tg::lstm(x, w, r, b, {}, tg::step_mask{tg::eval(h > 0)}); },
               "lstm: the mask must be bool [batch, time]");
    check_says(
        [&] {
            tg::lstm(x, w, r, b, {}, tg::step_mask{drawn<float>({2, 3}, 1)});
        },
        "lstm: the mask must be bool");
    check_says([&] { tg::lstm(x, w, r, b, {}, tg::recurrent_dropout{b}); }, "lstm: factors of the recurrent dropout");
}

TEST_CASE("lstm refuses a third derivative") {
    const auto x = drawn<double>({1, 2, 1}, 1);
    const auto w = drawn<double>({1, 4}, 2), r = drawn<double>({1, 4}, 3), b = drawn<double>({4}, 4);
    check_third_refused([&](const auto& at) { return last(at, w, r, b); }, x, "a third");
}

} // namespace recurrent_test
