#include "scan_cells.hpp"

namespace scan_test {

/// tg::scan against loops and against the LSTM operation, with first derivatives, in both modes.

using namespace scan_test;

namespace {

using double_sequence = tg::spec<double, tg::dyn, tg::dyn, 3>;

constexpr auto integrate = [](auto xs, auto v, auto w, auto rate) {
    const auto [last, sequence] = tg::scan(leaky_integrator{}, v, xs, w, rate);
    return std::tuple{last, sequence};
};
constexpr auto integrate_gradient = [](auto xs, auto v, auto w, auto rate) {
    return tg::value_and_gradient([](auto xs, auto v, auto w, auto rate) {
        const auto [last, sequence] = integrate(xs, v, w, rate);
        return score(last, sequence);
    })(xs, v, w, rate);
};

// The same in plain loops.
struct integrated {
    std::vector<double> last, sequence;
};
integrated integrated_by_loops(const tensor<double>& xs, const tensor<double>& v, const tensor<double>& w,
                               double rate) {
    const std::int64_t batch = xs.shape()[0].value, time = xs.shape()[1].value, features = w.shape()[0].value,
                       units = w.shape()[1].value;
    integrated r{v.to_vector(), {}};
    for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t t = 0; t < time; ++t) {
            double total = 0;
            for (std::int64_t u = 0; u < units; ++u) {
                double drive = 0;
                for (std::int64_t f = 0; f < features; ++f) drive += xs(b, t, f) * w(f, u);
                double& at = r.last[static_cast<std::size_t>(b * units + u)];
                at += rate * (drive - at);
                total += at;
            }
            r.sequence.push_back(total);
        }
    return r;
}

double largest_error(const tensor<double>& got, const std::vector<double>& want) {
    double worst = got.size() == static_cast<std::int64_t>(want.size()) ? 0 : 1e300;
    for (std::size_t i = 0; i < want.size() && worst < 1e300; ++i) {
        const double error = std::abs(got.data()[i] - want[i]);
        worst = error <= worst ? worst : error;
    }
    return worst;
}

// By scan or by the operation: all outputs, h and c.
template <bool Scan>
struct lstm_of {
    constexpr auto operator()(auto xs, auto w, auto r, auto b, auto h, auto c) const {
        if constexpr (Scan) {
            const auto [last, sequence] = tg::scan(lstm_cell{}, std::tuple{h, c}, xs, w, r, b);
            return std::tuple{sequence, std::get<0>(last), std::get<1>(last)};
        } else {
            const auto y = tg::lstm_with_state(xs, w, r, b, {.return_sequences = true}, tg::initial_state{h, c});
            return std::tuple{y.output, y.hidden, y.cell};
        }
    }
};
template <bool Scan>
constexpr auto lstm_gradient = [](auto... operands) {
    return tg::value_and_gradient([](auto... x) {
        const auto [y, h, c] = lstm_of<Scan>{}(x...);
        return score(y, h, c);
    })(operands...);
};

template <class F>
auto compiled_lstm(const F& f) {
    return tg::function<tg::graph>(f, double_sequence{}, tg::spec<double, 3, 8>{}, tg::spec<double, 2, 8>{},
                                   tg::spec<double, 8>{}, tg::spec<double, tg::dyn, 2>{},
                                   tg::spec<double, tg::dyn, 2>{});
}

} // namespace

TEST_CASE("scan: a leaky integrator is what plain loops give, whatever the length") {
    auto graph = tg::function<tg::graph>(integrate, double_sequence{}, tg::spec<double, tg::dyn, 4>{},
                                         tg::spec<double, 3, 4>{}, tg::spec<double>{});
    for (const std::int64_t time : {1, 2, 17, 5, 300})
        for (const std::int64_t batch : {3, 1, 0}) {
            CAPTURE(time);
            CAPTURE(batch);
            const auto xs = drawn<double>({batch, time, 3}, 1), v = drawn<double>({batch, 4}, 2),
                       w = drawn<double>({3, 4}, 3);
            const auto want = integrated_by_loops(xs, v, w, 0.3);
            const auto [last, sequence] = graph(xs, v, w, 0.3);
            CHECK(last.shape() == tg::shape{batch, 4});
            CHECK(sequence.shape() == tg::shape{batch, time});
            // Sums of three and four products, of values below 5, with factors 0.7 that let rounding die away.
            CHECK(largest_error(last, want.last) < 1e-13);
            CHECK(largest_error(sequence, want.sequence) < 1e-13);
            const auto eager = integrate(xs, v, w, tensor<double>(0.3));
            const std::string found = difference({last, sequence}, flattened(eager));
            CHECK_MESSAGE(found.empty(), found);
        }
}

TEST_CASE("scan: derivatives of a leaky integrator are slopes, and the tape's bits") {
    auto graph = tg::function<tg::graph>(integrate_gradient, double_sequence{}, tg::spec<double, tg::dyn, 4>{},
                                         tg::spec<double, 3, 4>{}, tg::spec<double>{});
    for (const std::int64_t time : {1, 2, 17}) {
        CAPTURE(time);
        const tapegraph::testing::tensors<double> x{drawn<double>({2, time, 3}, 1), drawn<double>({2, 4}, 2),
                                                    drawn<double>({3, 4}, 3), tensor<double>(0.3)};
        const auto got = flattened(graph(x[0], x[1], x[2], x[3]));
        const auto eager = flattened(integrate_gradient(x[0], x[1], x[2], x[3]));
        CHECK(distance(got, eager) < 1e-12); // rounding of sums over steps
        const auto value = [&](const tapegraph::testing::tensors<double>& at) {
            return graph(at[0], at[1], at[2], at[3]).value.item();
        };
        for (std::size_t k = 0; k < 4; ++k)
            for (const auto& slope : tapegraph::testing::element_slopes(value, x, k, tensor<double>(got[k + 1])))
                CHECK(slope.agrees(tapegraph::testing::gradient_tolerance));
    }
}

TEST_CASE("scan: an LSTM cell is the LSTM operation, with its derivatives") {
    auto values = compiled_lstm(lstm_of<true>{});
    auto gradients = compiled_lstm(lstm_gradient<true>);
    for (const std::int64_t time : {1, 2, 17}) {
        CAPTURE(time);
        const auto check = [&](const auto&... x) {
            const auto want = flattened(lstm_of<false>{}(x...));
            CHECK(distance(flattened(values(x...)), want) < 1e-10);
            CHECK(distance(flattened(lstm_of<true>{}(x...)), want) < 1e-10);
            const auto slopes = flattened(lstm_gradient<false>(x...));
            CHECK(slopes.size() == 7);
            CHECK(distance(flattened(gradients(x...)), slopes) < 1e-10);
            CHECK(distance(flattened(lstm_gradient<true>(x...)), slopes) < 1e-10);
        };
        check(drawn<double>({5, time, 3}, 1), drawn<double>({3, 8}, 2), drawn<double>({2, 8}, 3), drawn<double>({8}, 4),
              drawn<double>({5, 2}, 5), drawn<double>({5, 2}, 6));
    }
}

} // namespace scan_test
