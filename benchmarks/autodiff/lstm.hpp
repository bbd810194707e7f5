#pragma once

#include <tapegraph/tapegraph.hpp>

#include <tapegraph/nn/scan.hpp>

#include <cstdint>
#include <tuple>
#include <utility>

/// ADBench's LSTM (lstm_by_hand.hpp has its formulas) as a scan over time.

namespace lstm {

namespace tg = tapegraph;

inline constexpr std::int64_t width = 14; ///< numbers per step, as in ADBench's data

/// One layer's step: gates multiply element by element. Rows are four of w, then four of v.
inline constexpr auto layer = [](const auto& x, const auto& h, const auto& c, const auto& w, const auto& v) {
    const auto gate = [&]<std::size_t G>(const auto& s) { return s * std::get<G>(w) + std::get<G>(v); };
    const auto cell = tg::eval(c * sigmoid(gate.template operator()<0>(x)) +
                               sigmoid(gate.template operator()<1>(h)) * tanh(gate.template operator()<3>(h)));
    return std::pair{tg::eval(sigmoid(gate.template operator()<2>(x)) * tanh(cell)), cell};
};

/// A step of two layers, with the input scaled before them and the output after them.
inline constexpr auto step = [](auto state, auto x, auto w0, auto w1, auto w2, auto w3, auto w4, auto w5, auto w6,
                                auto w7, auto v0, auto v1, auto v2, auto v3, auto v4, auto v5, auto v6, auto v7,
                                auto e0, auto e1, auto e2) {
    const auto& [h0, c0, h1, c1] = state;
    const auto [a, ca] = layer(tg::eval(x * e0), h0, c0, std::tie(w0, w1, w2, w3), std::tie(v0, v1, v2, v3));
    const auto [b, cb] = layer(a, h1, c1, std::tie(w4, w5, w6, w7), std::tie(v4, v5, v6, v7));
    return std::pair{std::tuple{a, ca, b, cb}, tg::eval(b * e1 + e2)};
};

/// w, v [8, width], e [3, width], state [4, width], inputs and their successors [time, width].
inline constexpr auto objective = [](auto w, auto v, auto e, auto state, auto inputs, auto next) {
    const auto s = tg::unstack<4>(state);
    const auto y = std::apply(
        [&](const auto&... rows) {
            const auto [last, outputs] =
                tg::scan(step, std::tuple{s[0], s[1], s[2], s[3]}, inputs, {.axis = 0}, rows...);
            return outputs;
        },
        std::tuple_cat(tg::unstack<8>(w), tg::unstack<8>(v), tg::unstack<3>(e)));
    const auto log_sum = tg::eval(log(2 + tg::sum(exp(y), 1)));
    return tg::eval(-tg::mean(next * (y - tg::expand_dims(log_sum, 1))));
};

inline constexpr auto gradient = [](auto w, auto v, auto e, auto state, auto inputs, auto next) {
    return tg::value_and_gradient([&](auto a, auto b, auto c) { return objective(a, b, c, state, inputs, next); })(w, v,
                                                                                                                   e);
};

} // namespace lstm
