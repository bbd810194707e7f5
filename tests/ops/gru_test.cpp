#include <support/graph_runner.hpp>

#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>
#include <tapegraph/ops/ops.hpp>

#include <ops/recurrent_modes.hpp>

namespace gru_test {

/// GRUs and simple recurrent layers in graph mode, batch and time symbolic: the same bits as in eager mode; values, gradients,
/// second derivatives; and errors.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

constexpr auto last = [](auto x, auto w, auto r, auto b) { return sum(square(gru(x, w, r, b))); };

/// With everything, from a state to a state; Layer is called with what may follow the options.
template <class Layer>
constexpr auto everything(const Layer& layer, const auto& x, const auto& h, const auto& factors) {
    // Steps whose first feature is not negative.
    const auto mask = tg::eval(tg::take(x, 0, -1) >= 0);
    const auto [y, hidden] = layer(tg::step_mask{mask}, tg::initial_state{h}, tg::recurrent_dropout{factors});
    const auto parts = std::tuple{tg::eval(sum(square(y))), tg::eval(sum(hidden))};
    return tg::eval(std::get<0>(parts) + std::get<1>(parts));
}
constexpr auto whole_gru = [](auto x, auto w, auto r, auto b, auto h, auto factors) {
    return everything(
        [&](const auto&... extras) {
            return tg::gru_with_state(
                x, w, r, b, {.reset_after = false, .return_sequences = true, .go_backwards = true}, extras...);
        },
        x, h, factors);
};
constexpr auto whole_rnn = [](auto x, auto w, auto r, auto b, auto h, auto factors) {
    return everything(
        [&](const auto&... extras) {
            return tg::simple_rnn_with_state(x, w, r, b, {.return_sequences = true, .recompute = true}, extras...);
        },
        x, h, factors);
};

constexpr auto curvature = [](auto... x) { return with_curvature(last, x...); };

} // namespace

TEST_CASE_TEMPLATE("both modes: gru", T, double, float) {
    compiled_modes modes(tg::value_and_gradient(last), tg::spec<T, tg::dyn, tg::dyn, 3>{}, tg::spec<T, 3, 15>{},
                         tg::spec<T, 5, 15>{}, tg::spec<T, 2, 15>{});
    // A larger batch, a longer sequence, then smaller ones again in the same arena.
    for (auto [n, t] : {std::pair<std::int64_t, std::int64_t>{2, 3}, {1, 1}, {19, 4}, {3, 11}, {2, 0}, {4, 2}})
        check_bits(modes, drawn<T>({n, t, 3}, 1), drawn<T>({3, 15}, 2), drawn<T>({5, 15}, 3), drawn<T>({2, 15}, 4));
}

TEST_CASE("both modes: gru and simple_rnn with mask, state and dropout") {
    using spec_x = tg::spec<double, tg::dyn, tg::dyn, 3>;
    using spec_h = tg::spec<double, tg::dyn, 4>;
    compiled_modes gated(tg::value_and_gradient(whole_gru), spec_x{}, tg::spec<double, 3, 12>{},
                         tg::spec<double, 4, 12>{}, tg::spec<double, 12>{}, spec_h{}, spec_h{});
    compiled_modes simple(tg::value_and_gradient(whole_rnn), spec_x{}, tg::spec<double, 3, 4>{},
                          tg::spec<double, 4, 4>{}, tg::spec<double, 4>{}, spec_h{}, spec_h{});
    for (auto [n, t] : {std::pair<std::int64_t, std::int64_t>{2, 3}, {1, 1}, {17, 6}}) {
        const auto x = drawn<double>({n, t, 3}, 1), h = drawn<double>({n, 4}, 5), factors = drawn<double>({n, 4}, 7);
        check_bits(gated, x, drawn<double>({3, 12}, 2), drawn<double>({4, 12}, 3), drawn<double>({12}, 4), h, factors);
        check_bits(simple, x, drawn<double>({3, 4}, 2), drawn<double>({4, 4}, 3), drawn<double>({4}, 4), h, factors);
    }
}

TEST_CASE("both modes: second derivatives of gru") {
    // Adjoints of a gradient that is itself recorded add up in another order than the compiled ones.
    compiled_modes modes(tg::value_and_gradient(curvature), tg::spec<double, tg::dyn, tg::dyn, 3>{},
                         tg::spec<double, 3, 12>{}, tg::spec<double, 4, 12>{}, tg::spec<double, 2, 12>{});
    for (auto [n, t] : {std::pair<std::int64_t, std::int64_t>{2, 3}, {1, 1}, {15, 5}})
        CHECK(modes.distance(drawn<double>({n, t, 3}, 1), drawn<double>({3, 12}, 2), drawn<double>({4, 12}, 3),
                             drawn<double>({2, 12}, 4)) < 1e-12);
}

TEST_CASE("gru and simple_rnn name the operand that does not fit") {
    const auto x = drawn<float>({2, 3, 4}, 1), w = drawn<float>({4, 15}, 2), r = drawn<float>({5, 15}, 3),
               b = drawn<float>({2, 15}, 4), h = drawn<float>({2, 5}, 5), one = drawn<float>({15}, 6);
    const auto v = drawn<float>({4, 5}, 7), s = drawn<float>({5, 5}, 8), c = drawn<float>({5}, 9);
    check_says([&] { tg::gru(h, w, r, b); }, "gru: input must be [batch, time, features]: f32[2, 5]");
    check_says([&] { tg::gru(x, one, r, b); },
               "gru: kernel must be [features, 3 units] and recurrent kernel [units, 3 units]");
    check_says([&] { tg::gru(x, w, drawn<float>({5, 10}, 3), b); }, "gru: recurrent kernel must be [units, 3 units]");
    check_says([&] { tg::gru(x, w, drawn<float>({3, 9}, 1), b); }, "gru: kernel and recurrent kernel differ in units");
    check_says([&] { tg::gru(x, w, r, one); }, "gru: bias must be [2, 3 units] with reset_after, [3 units] without");
    check_says([&] { tg::gru(x, w, r, b, {.reset_after = false}); }, "gru: bias must be [2, 3 units] with reset_after");
    check_says([&] { tg::gru(x, w, r, drawn<float>({2, 12}, 4)); }, "gru: bias must be");
    check_says([&] { tg::gru(x, w, r, b, {}, tg::initial_state{c}); }, "gru: initial states must be [batch, units]");
    check_says([&] { tg::gru(x, w, r, b, {}, tg::step_mask{tg::eval(h > 0)}); },
               "gru: the mask must be bool [batch, time]");
    check_says([&] { tg::gru(x, w, r, b, {}, tg::recurrent_dropout{c}); },
               "gru: factors of the recurrent dropout must be");
    check_says([&] { tg::simple_rnn(h, v, s, c); }, "simple_rnn: input must be [batch, time, features]");
    check_says([&] { tg::simple_rnn(x, v, v, c); }, "simple_rnn: recurrent kernel must be [units, units]");
    check_says(
        [&] {
            tg::simple_rnn(x, v, drawn<float>({3, 3}, 1), c);
        },
        "simple_rnn: kernel and recurrent kernel differ in units");
    check_says([&] { tg::simple_rnn(x, v, s, one); }, "simple_rnn: bias must be [units]");
    check_says(
        [&] {
            tg::simple_rnn(x, v, s, c, {}, tg::step_mask{drawn<float>({2, 3}, 1)});
        },
        "simple_rnn: the mask must be bool");
}

TEST_CASE("gru without steps gives its state, and refuses a third derivative") {
    const auto w = drawn<double>({1, 3}, 2), r = drawn<double>({1, 3}, 3), b = drawn<double>({2, 3}, 4);
    const auto h = drawn<double>({2, 1}, 5);
    for (const bool recompute : {false, true}) {
        const auto [y, hidden] =
            tg::gru_with_state(tg::zeros<double>({2, 0, 1}), w, r, b, {.recompute = recompute}, tg::initial_state{h});
        CHECK(y.to_vector() == h.to_vector());
        CHECK(hidden.to_vector() == h.to_vector());
    }
    const auto x = drawn<double>({1, 2, 1}, 1);
    check_third_refused([&](const auto& at) { return last(at, w, r, b); }, x, "gru: has first and second");
}

} // namespace gru_test
