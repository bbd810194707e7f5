#pragma once

#include <support/graph_runner.hpp>

#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/scan.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

/// Cells for tests of tg::scan, and the functions around them.

namespace scan_test {

namespace tg = tapegraph;
using tapegraph::testing::difference;
using tapegraph::testing::drawn;
using tapegraph::testing::flattened;
using tg::tensor;

/// v' = v + rate (x_t w - v); the output is the sum of all units, [batch], whose shape differs from the state's.
struct leaky_integrator {
    constexpr auto operator()(auto v, auto x, auto w, auto rate) const {
        const auto next = tg::eval(v + rate * (matmul(x, w) - v));
        return std::pair{next, tg::sum(next, -1)};
    }
};

/// The LSTM of ops/recurrent/lstm.hpp, spelled out.
struct lstm_cell {
    constexpr auto operator()(auto state, auto x, auto w, auto r, auto b) const {
        const auto z = tg::eval(matmul(x, w) + matmul(std::get<0>(state), r) + b);
        const auto gates = tg::split<4>(z, -1);
        const auto c = tg::eval(tg::sigmoid(gates[1]) * std::get<1>(state) + tg::sigmoid(gates[0]) * tanh(gates[2]));
        const auto h = tg::eval(tg::sigmoid(gates[3]) * tanh(c));
        return std::pair{std::tuple{h, c}, h};
    }
};

/// The function of a sequence and the last states that tests differentiate: not linear, and with a different factor for every
/// element.
constexpr auto score(const auto& first, const auto&... rest) {
    const auto sum = [](const auto& y) { return tg::eval(tg::sum(tg::sin(y) * y)); };
    return tg::eval((sum(first) + ... + sum(rest)));
}

/// The largest difference of elements of two flattened results, relative to the larger of 1 and the second one.
inline double distance(const std::vector<tg::any_tensor>& a, const std::vector<tg::any_tensor>& b) {
    double worst = a.size() == b.size() ? 0 : 1e300;
    for (std::size_t k = 0; k < a.size() && worst < 1e300; ++k) {
        if (!(a[k].shape() == b[k].shape())) return 1e300;
        const tensor<double> x(a[k]), y(b[k]);
        for (std::int64_t i = 0; i < x.size(); ++i) {
            const double error = std::abs(x.data()[i] - y.data()[i]) / std::max(1.0, std::abs(y.data()[i]));
            worst = error <= worst ? worst : error; // a NaN is the worst
        }
    }
    return worst;
}

} // namespace scan_test
