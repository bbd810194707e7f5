#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>
#include <tapegraph/ops/ops.hpp>

#include <support/graph_runner.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace composed_recurrent_test {

/// Recurrent operations against the same layers made of products and elementwise functions, step by step on the tape: values,
/// gradients and second derivatives by everything, without differences.

namespace tg = tapegraph;
using namespace tapegraph::testing;
using tg::tensor;

namespace {

/// Operands of a layer of `gates` gates; its bias may have two rows.
struct operands {
    tensor<double> x, w, r, b, h, c, factors;
    tensor<bool> mask;

    operands(std::int64_t batch, std::int64_t time, std::int64_t units, std::int64_t gates, bool two_biases)
        : x(drawn<double>({batch, time, 3}, 1)),
          w(drawn<double>({3, gates * units}, 2, -0.7, 0.7)),
          r(drawn<double>({units, gates * units}, 3, -0.7, 0.7)),
          b(two_biases ? drawn<double>({2, gates * units}, 4) : drawn<double>({gates * units}, 4)),
          h(drawn<double>({batch, units}, 5)),
          c(drawn<double>({batch, units}, 6)),
          factors(drawn<double>({batch, units}, 7, 0, 2)),
          mask(tg::eval(drawn<double>({batch, time}, 8) > -0.5)) {}
};

tensor<double> columns(const tensor<double>& all, std::int64_t units, std::int64_t gate) {
    return tg::detail::part_of(all, 1, units * gate, units, {});
}

/// h of all steps; `step(x_t, h)` gives the next h.
template <class Step>
tensor<double> composed(const operands& o, bool backwards, const Step& step) {
    tensor<double> h = o.h;
    std::vector<tensor<double>> rows;
    const std::int64_t time = o.x.shape()[1].value;
    for (std::int64_t i = 0; i < time; ++i) {
        const std::int64_t t = backwards ? time - 1 - i : i;
        const tensor<double> next = step(tensor<double>(tg::take(o.x, t, 1)), h);
        h = tg::where(tg::expand_dims(tg::take(o.mask, t, 1), 1), next, h);
        rows.push_back(tg::expand_dims(h, 1));
    }
    tensor<double> all = rows[0];
    for (std::size_t i = 1; i < rows.size(); ++i) all = tg::concat(all, rows[i], 1);
    return all;
}

tensor<double> composed_gru(const operands& o, bool after, bool backwards) {
    const std::int64_t u = o.h.shape()[1].value;
    return composed(o, backwards, [&](const tensor<double>& x, const tensor<double>& h) -> tensor<double> {
        const tensor<double> first = after ? tensor<double>(tg::take(o.b, 0, 0)) : o.b;
        const tensor<double> from_x = matmul(x, o.w) + first, given = h * o.factors;
        tensor<double> from_h = matmul(given, o.r);
        if (after) from_h = from_h + tg::take(o.b, 1, 0);
        const tensor<double> z = sigmoid(columns(from_x, u, 0) + columns(from_h, u, 0));
        const tensor<double> r = sigmoid(columns(from_x, u, 1) + columns(from_h, u, 1));
        const tensor<double> inner = after ? tensor<double>(r * columns(from_h, u, 2))
                                           : tensor<double>(matmul(tensor<double>(r * given), columns(o.r, u, 2)));
        return z * h + (1 - z) * tanh(columns(from_x, u, 2) + inner);
    });
}
tensor<double> composed_rnn(const operands& o) {
    return composed(o, false, [&](const tensor<double>& x, const tensor<double>& h) -> tensor<double> {
        return tanh(matmul(x, o.w) + o.b + matmul(tensor<double>(h * o.factors), o.r));
    });
}
tensor<double> composed_lstm(const operands& o) {
    const std::int64_t u = o.h.shape()[1].value;
    tensor<double> c = o.c;
    std::int64_t t = 0;
    return composed(o, false, [&](const tensor<double>& x, const tensor<double>& h) -> tensor<double> {
        const tensor<double> z = matmul(x, o.w) + o.b + matmul(tensor<double>(h * o.factors), o.r);
        const tensor<double> next = sigmoid(columns(z, u, 1)) * c + sigmoid(columns(z, u, 0)) * tanh(columns(z, u, 2));
        const tensor<double> shown = sigmoid(columns(z, u, 3)) * tanh(next);
        c = tg::where(tg::expand_dims(tg::take(o.mask, t++, 1), 1), next, c);
        return shown;
    });
}

/// The value, its gradient and the gradient of a number computed from that gradient, in this order.
template <class F>
std::vector<tensor<double>> derivatives(operands o, bool cell, const F& f) {
    std::vector<tensor<double>*> sources{&o.x, &o.w, &o.r, &o.b, &o.h};
    if (cell) sources.push_back(&o.c);
    const auto number = [](const tensor<double>& y, std::uint64_t seed) {
        return tensor<double>(sum(y * weights_like(y, seed)));
    };
    const auto handles = [&] {
        std::vector<tg::any_tensor> all;
        for (auto* s : sources) all.push_back(*s);
        return all;
    };
    tg::gradient_tape outer;
    for (auto* s : sources) outer.watch(*s);
    std::vector<tensor<double>> results;
    tensor<double> total;
    {
        tg::gradient_tape inner;
        for (auto* s : sources) inner.watch(*s);
        const tensor<double> y = f(o);
        results.push_back(y);
        std::uint64_t seed = 20;
        for (const tg::any_tensor& g : inner.gradient(number(y, 10), handles())) {
            results.push_back(tensor<double>(g));
            const tensor<double> part = number(tensor<double>(square(tensor<double>(g))), seed++);
            total = seed == 21 ? part : tensor<double>(total + part);
        }
    }
    for (const tg::any_tensor& g : outer.gradient(total, handles())) results.push_back(tensor<double>(g));
    return results;
}

/// Sums of some dozen numbers of order one, passed through at most five steps, and for second derivatives through ten.
template <class F, class G>
void check_same(const operands& o, bool cell, const F& f, const G& g) {
    const auto got = derivatives(o, cell, f), want = derivatives(o, cell, g);
    REQUIRE(got.size() == want.size());
    for (std::size_t k = 0; k < got.size(); ++k) {
        CAPTURE(k);
        REQUIRE(got[k].shape() == want[k].shape());
        double largest = 1, apart = 0;
        for (std::int64_t i = 0; i < got[k].size(); ++i) {
            largest = std::max(largest, std::abs(want[k].data()[i]));
            apart = std::max(apart, std::abs(got[k].data()[i] - want[k].data()[i]));
        }
        CHECK(apart <= 1e-12 * largest);
    }
}

constexpr struct { std::int64_t batch, time, units; } sizes[]{{1, 1, 1}, {3, 5, 2}, {2, 3, 67}};

} // namespace

TEST_CASE("gru computes its formulas, with first and second derivatives") {
    for (const auto& [batch, time, units] : sizes)
        for (const bool after : {true, false})
            for (const bool backwards : {false, true}) {
                const auto shown_units = units;
                CAPTURE(shown_units);
                CAPTURE(after);
                CAPTURE(backwards);
                const bool a = after, from_the_end = backwards; // which lambdas may name
                check_same(
                    operands(batch, time, units, 3, after), false,
                    [&](const operands& o) -> tensor<double> {
                        return tg::gru(o.x, o.w, o.r, o.b,
                                       {.reset_after = a, .return_sequences = true, .go_backwards = from_the_end},
                                       tg::initial_state{o.h}, tg::step_mask{o.mask}, tg::recurrent_dropout{o.factors});
                    },
                    [&](const operands& o) { return composed_gru(o, a, from_the_end); });
            }
}

TEST_CASE("simple_rnn and lstm compute their formulas, with first and second derivatives") {
    for (const auto& [batch, time, units] : sizes) {
        const auto shown_units = units;
        CAPTURE(shown_units);
        check_same(
            operands(batch, time, units, 1, false), false,
            [](const operands& o) -> tensor<double> {
                return tg::simple_rnn(o.x, o.w, o.r, o.b, {.return_sequences = true}, tg::initial_state{o.h},
                                      tg::step_mask{o.mask}, tg::recurrent_dropout{o.factors});
            },
            composed_rnn);
        check_same(
            operands(batch, time, units, 4, false), true,
            [](const operands& o) -> tensor<double> {
                return tg::lstm(o.x, o.w, o.r, o.b, {.return_sequences = true}, tg::initial_state{o.h, o.c},
                                tg::step_mask{o.mask}, tg::recurrent_dropout{o.factors});
            },
            composed_lstm);
    }
}

TEST_CASE("gru and simple_rnn have the same bits with nothing kept") {
    for (const auto& [batch, time, units] : sizes) {
        const auto shown_units = units;
        CAPTURE(shown_units);
        const auto last = [](const tensor<double>& rows) { return tensor<double>(tg::take(rows, -1, 1)).to_vector(); };
        const auto run = [](const operands& o, const auto& layer, const auto& options) -> tensor<double> {
            return layer(o.x, o.w, o.r, o.b, options, tg::initial_state{o.h}, tg::step_mask{o.mask},
                         tg::recurrent_dropout{o.factors});
        };
        const auto gru = [](const auto&... x) { return tg::gru(x...); };
        for (const bool after : {true, false}) {
            const operands o(batch, time, units, 3, after);
            const tg::gru_options kept{.reset_after = after, .return_sequences = true};
            const tg::gru_options all{.reset_after = after, .return_sequences = true, .recompute = true};
            const tg::gru_options end{.reset_after = after, .recompute = true};
            CHECK(run(o, gru, all).to_vector() == run(o, gru, kept).to_vector());
            CHECK(run(o, gru, end).to_vector() == last(run(o, gru, kept)));
        }
        const auto rnn = [](const auto&... x) { return tg::simple_rnn(x...); };
        const operands o(batch, time, units, 1, false);
        const tensor<double> kept = run(o, rnn, tg::simple_rnn_options{.return_sequences = true});
        CHECK(run(o, rnn, tg::simple_rnn_options{.recompute = true}).to_vector() == last(kept));
    }
}

} // namespace composed_recurrent_test
