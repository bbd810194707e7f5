#pragma once

#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstdint>
#include <source_location>
#include <string_view>

/// Operations that are in no list, and a model of them, for sources that know tapegraph/traced.hpp and one that does not.

namespace traced_shared {

namespace tg = tapegraph;

struct mirrored_op : tg::custom_op<1> {
    static constexpr std::string_view name = "mirrored";
    static constexpr void infer(const attributes&, tg::inference& io) { io.result = io.in[0].dims; }
    template <int I>
    static constexpr auto vjp(const attributes&, auto dy, auto, auto);
};
template <tg::handle X>
constexpr X mirrored(const X& x, std::source_location where = std::source_location::current()) {
    return tg::invoke<mirrored_op>({}, nullptr, where, x);
}
template <int I>
constexpr auto mirrored_op::vjp(const attributes&, auto dy, auto, auto) {
    return mirrored(dy);
}

struct recurrent_model {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::lstm(scope / "lstm", x, {.units = 4, .return_sequences = true});
        const auto g = tg::gru(scope / "gru", h, {.units = 3});
        const auto y = mirrored(g);
        tg::check<"of several sources">(y < 10);
        return y;
    }
};
using spec = tg::spec<float, tg::dyn, 5, 2>;

/// The prediction of the model in graph mode, by a source without tapegraph/traced.hpp.
tg::tensor<float> predicted_elsewhere(const tg::tensor<float>& x);

} // namespace traced_shared

template <class T>
struct tapegraph::runtime::kernel<traced_shared::mirrored_op, T> {
    static void run(const kernel_call& c) {
        const std::int64_t n = c.in[0].elements();
        for (std::int64_t i = 0; i < n; ++i) c.out[0].as<T>()[i] = c.in[0].as<const T>()[n - 1 - i];
    }
};
