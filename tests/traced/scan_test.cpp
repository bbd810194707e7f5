#include "words.hpp"

#include <nn/scan_cells.hpp>
#include <support/messages.hpp>

#include <thread>
#include <tuple>
#include <vector>

namespace traced_scan_test {

/// Scans in graphs that are made when the program runs: the words and bits of graph mode, of the derivatives that it has.

using namespace nn_test;
using scan_test::flattened;
using scan_test::leaky_integrator;

namespace {

// scan_test's cell and score make nodes in one order by every compiler when their operands have names.
struct lstm_cell {
    constexpr auto operator()(auto state, auto x, auto w, auto r, auto b) const {
        const auto& [before, memory] = state;
        const auto from_x = matmul(x, w);
        const auto from_state = matmul(before, r);
        const auto z = tg::eval(from_x + from_state + b);
        const auto gates = tg::split<4>(z, -1);
        const auto c = tg::eval(tg::sigmoid(gates[1]) * memory + tg::sigmoid(gates[0]) * tanh(gates[2]));
        const auto h = tg::eval(tg::sigmoid(gates[3]) * tanh(c));
        return std::pair{std::tuple{h, c}, h};
    }
};
constexpr auto score(const auto& first, const auto&... rest) {
    const auto term = [](const auto& y) {
        const auto s = tg::eval(tg::sin(y));
        return tg::eval(tg::sum(s * y));
    };
    auto total = term(first);
    const auto add = [&](const auto& each) {
        const auto next = term(each);
        total = tg::eval(total + next);
    };
    (add(rest), ...);
    return total;
}

// By a masked LSTM cell, backwards.
constexpr auto lstm_score = [](auto xs, auto w, auto r, auto b, auto h, auto c, auto mask) {
    const auto [last, sequence] =
        tg::scan(lstm_cell{}, std::tuple{h, c}, xs, {.go_backwards = true}, tg::step_mask{mask}, w, r, b);
    return score(sequence, std::get<0>(last), std::get<1>(last));
};
constexpr auto lstm_slopes = [](auto xs, auto w, auto r, auto b, auto h, auto c, auto mask) {
    return tg::value_and_gradient([mask](auto... x) { return lstm_score(x..., mask); })(xs, w, r, b, h, c);
};

constexpr auto integrated = [](auto xs, auto v, auto w, auto rate) {
    const auto [last, sequence] = tg::scan(leaky_integrator{}, v, xs, w, rate);
    return std::tuple{last, sequence};
};
constexpr auto integrated_score = [](auto xs, auto v, auto w, auto rate) {
    const auto [last, sequence] = integrated(xs, v, w, rate);
    return score(last, sequence);
};
constexpr auto second = [](auto... x) {
    return tg::gradient([](auto... operands) {
        return std::apply([](auto... g) { return score(g...); }, tg::gradient(integrated_score)(operands...));
    })(x...);
};

// A gated unit of one's own in a model; what the derivative reads is computed again.
struct leaky_model {
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = scope.variable_like(x, "kernel", {6, 5}, {.initializer = tg::init::glorot_uniform{}});
        const auto rate = scope.variable_like(x, "rate", {5}, {.initializer = tg::init::constant{0.3}});
        tg::shape state;
        state.push_back(tg::shape_of(x)[0]);
        state.push_back(5);
        const auto [last, sequence] =
            tg::scan(leaky_integrator{}, tg::fill<float>(x, state, 0), x, {.recompute = true}, w, rate);
        return tg::dense(scope / "score", eval(tanh(last)), {.units = 1});
    }
};

/// A function in both modes; `arguments(batch, time)` is a tuple of tensors.
template <class F, class Arguments, class... Specs>
void check(const F& f, const Arguments& arguments, Specs... specs) {
    auto compiled = tg::function<tg::graph>(f, specs...);
    auto traced = tg::function<tg::traced>(f, specs...);
    CHECK(words_test::difference(compiled.view(), traced.view()) == "");
    for (const std::int64_t batch : {3, 1, 8})
        for (const std::int64_t time : {4, 1, 9, 4}) {
            const auto x = arguments(batch, time);
            CHECK(tapegraph::testing::difference(flattened(std::apply(traced, x)),
                                                 flattened(std::apply(compiled, x))) == "");
        }
}

auto lstm_arguments(std::int64_t batch, std::int64_t time) {
    auto mask = tg::full<bool>({batch, time}, true);
    for (std::int64_t i = 0; i < mask.size(); ++i) mask.mutable_data()[i] = i * i % 7 < 3;
    return std::tuple{noise<double>({batch, time, 3}, 1),
                      noise<double>({3, 8}, 2),
                      noise<double>({2, 8}, 3),
                      noise<double>({8}, 4),
                      noise<double>({batch, 2}, 5),
                      noise<double>({batch, 2}, 6),
                      mask};
}
auto leaky_arguments(std::int64_t batch, std::int64_t time) {
    return std::tuple{noise<float>({batch, time, 3}, 1), noise<float>({batch, 5}, 2), noise<float>({3, 5}, 3),
                      noise<float>({5}, 4)};
}

} // namespace

TEST_CASE("run-time graphs: a masked scan that runs backwards, and its gradient") {
    using sequence = tg::spec<double, tg::dyn, tg::dyn, 3>;
    using mask = tg::spec<bool, tg::dyn, tg::dyn>;
    using unit = tg::spec<double, tg::dyn, 2>;
    const auto checked = [](const auto& f) {
        check(f, &lstm_arguments, sequence{}, tg::spec<double, 3, 8>{}, tg::spec<double, 2, 8>{}, tg::spec<double, 8>{},
              unit{}, unit{}, mask{});
    };
    SUBCASE("value") { checked(lstm_score); }
    SUBCASE("gradient") { checked(lstm_slopes); }
}

TEST_CASE("run-time graphs: a scan of floats, and its second derivative") {
    const auto checked = [](const auto& f) {
        check(f, &leaky_arguments, tg::spec<float, tg::dyn, tg::dyn, 3>{}, tg::spec<float, tg::dyn, 5>{},
              tg::spec<float, 3, 5>{}, tg::spec<float, 5>{});
    };
    SUBCASE("value") { checked(integrated); }
    SUBCASE("second derivative") { checked(second); }
}

TEST_CASE("run-time graphs: a model with a cell of its own trains as in graph mode") {
    const auto batch = [](std::int64_t size, std::uint64_t seed) {
        const auto time = static_cast<std::int64_t>(3 + seed % 4);
        return std::pair(noise<float>({size, time, 6}, seed), coin_flips<float>(size, seed + 1));
    };
    words_test::check<tg::spec<float, tg::dyn, tg::dyn, 6>>(leaky_model{}, tg::sigmoid_cross_entropy{},
                                                            tg::adam{.learning_rate = 0.01}, batch);
}

TEST_CASE("run-time graphs: predictions with a scan from several threads, of several lengths") {
    const auto model = tg::compile<tg::traced>(leaky_model{}, tg::spec<float, tg::dyn, tg::dyn, 6>{});
    std::vector<tg::tensor<float>> x, expected, found(8);
    for (std::int64_t k = 0; k < 8; ++k) {
        x.push_back(noise<float>({3, 2 + k, 6}, static_cast<std::uint64_t>(k)));
        expected.push_back(model.predict(x.back()));
    }
    std::vector<std::thread> threads;
    for (std::size_t k = 0; k < found.size(); ++k)
        threads.emplace_back([&, k] {
            for (int again = 0; again < 20; ++again) found[k] = model.predict(x[k]);
        });
    for (std::thread& each : threads) each.join();
    for (std::size_t k = 0; k < found.size(); ++k) CHECK(same_bits(found[k], expected[k]));
}

TEST_CASE("run-time graphs: errors of a cell are those of the compiler") {
    const std::string text = support::message_of<tg::shape_error>([] {
        static_cast<void>(tg::function<tg::traced>(
            [](auto v, auto xs) {
                const auto cell = [](auto state, auto x) { return std::pair{tg::eval(tg::sum(state, 1)), x}; };
                const auto [last, sequence] = tg::scan(cell, v, xs, {});
                return last;
            },
            tg::spec<float, 3, 5>{}, tg::spec<float, 3, 4, 5>{}));
    });
    CHECK(text.find("scan: the cell's new state has another shape or type than the state") == 0);
    CHECK(text.find("scan_test.cpp:") != std::string::npos);
}

} // namespace traced_scan_test
