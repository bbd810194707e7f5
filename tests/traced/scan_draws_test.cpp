#include <nn/models.hpp>

#include <tapegraph/nn/scan.hpp>
#include <tapegraph/traced.hpp>

#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

namespace traced_scan_draws_test {

/// Random numbers in cells of scans: each step draws anew, numbered as a loop over the steps numbers them, which eager mode
/// is. A graph gives the same numbers, whether its time is known and whether the cell captures.

using namespace nn_test;

namespace {

/// Two draws a step, of which the derivative needs one; one more after the scan, whose number depends on the time.
template <bool Recompute = false>
struct noisy {
    static constexpr auto step(auto state, auto x, auto w) {
        const auto u = tg::random::uniform_like(state);
        const auto n = tg::random::normal_like(state);
        const auto drive = tg::eval(matmul(x, w));
        const auto next = tg::eval(state * u + tanh(drive) + 0.1 * n);
        return std::pair{next, next};
    }
    static constexpr auto score(const auto& last, const auto& all) {
        const auto after = tg::random::uniform_like(last);
        const auto a = tg::eval(sum(tg::sin(last) * after));
        const auto b = tg::eval(sum(all * all));
        return tg::eval(a + b);
    }
    constexpr auto operator()(auto xs, auto v, auto w) const {
        const auto before = tg::random::uniform_like(v);
        const auto start = tg::eval(v * before);
        const auto cell = [](auto state, auto x, auto weight) { return step(state, x, weight); };
        const auto [last, all] = tg::scan(cell, start, xs, {.recompute = Recompute}, w);
        return score(last, all);
    }
};
template <bool Recompute = false>
constexpr auto captured = [](auto xs, auto v, auto w) {
    const auto before = tg::random::uniform_like(v);
    const auto start = tg::eval(v * before);
    const auto [last, all] =
        tg::scan([&](auto state, auto x) { return noisy<>::step(state, x, w); }, start, xs, {.recompute = Recompute});
    return noisy<>::score(last, all);
};

/// Functions of the modes give the same bits, call by call.
template <class Reference, class... Functions>
void check_alike(Reference reference, Functions... others) {
    for (const std::int64_t time : {4, 1, 7, 4})
        for (const std::int64_t batch : {3, 1}) {
            const auto x =
                std::tuple{noise<double>({batch, time, 2}, 1), noise<double>({batch, 5}, 2), noise<double>({2, 5}, 3)};
            const auto want = std::apply(reference, x);
            const auto same = [&](const auto& got) {
                if constexpr (requires { want.shape(); }) {
                    CHECK(same_bits(got, want));
                } else {
                    CHECK(same_bits(std::get<0>(got), std::get<0>(want)));
                    CHECK(same_bits(std::get<1>(got), std::get<1>(want)));
                    CHECK(same_bits(std::get<2>(got), std::get<2>(want)));
                }
            };
            (same(std::apply(others, x)), ...);
        }
}
template <class Mode>
auto made(const auto& f) {
    return tg::function<Mode>(f, tg::spec<double, tg::dyn, tg::dyn, 2>{}, tg::spec<double, tg::dyn, 5>{},
                              tg::spec<double, 2, 5>{});
}

/// Calls f on tensors, where a capturing cell is a loop, with the numbers that a function's calls draw.
template <class F>
auto eagerly(const F& f) {
    return [f, calls = std::uint64_t{0}](const auto&... x) mutable {
        tg::detail::random_stream stream{{0, calls++}, 0};
        const tg::detail::random_scope now(stream);
        return f(x...);
    };
}

} // namespace

TEST_CASE("draws in scans: each step draws anew, and what follows is numbered after the last step") {
    // By hand: the numbers of (seed 0, call 0, ordinal).
    const auto xs = tg::zeros<double>({1, 3, 1});
    const auto f = [](auto x, auto v) {
        const auto cell = [](auto state, auto) {
            const auto u = tg::random::uniform_like(state);
            return std::pair{tg::eval(state + u), u};
        };
        const auto [last, all] = tg::scan(cell, v, x);
        const auto after = tg::random::uniform_like(v);
        return std::tuple{all, after};
    };
    const auto check = [&](auto&& function) {
        const auto [all, after] = function(xs, tg::zeros<double>({1, 2}));
        for (std::uint32_t t = 0; t < 3; ++t)
            for (std::uint32_t i = 0; i < 2; ++i) CHECK(all(0, t, i) == tg::random::uniform_at<double>(0, 0, t, i));
        for (std::uint32_t i = 0; i < 2; ++i) CHECK(after(0, i) == tg::random::uniform_at<double>(0, 0, 3, i));
    };
    check(tg::function<tg::eager>(f, tg::spec<double, 1, tg::dyn, 1>{}, tg::spec<double, 1, 2>{}));
    check(tg::function<tg::graph>(f, tg::spec<double, 1, tg::dyn, 1>{}, tg::spec<double, 1, 2>{}));
    check(tg::function<tg::traced>(f, tg::spec<double, 1, tg::dyn, 1>{}, tg::spec<double, 1, 2>{}));
    check(tg::function<tg::traced>(f, tg::spec<double, 1, 3, 1>{}, tg::spec<double, 1, 2>{}));
}

TEST_CASE("draws in scans: values have the bits of eager mode") {
    check_alike(eagerly(noisy{}), made<tg::eager>(noisy{}), made<tg::graph>(noisy{}), made<tg::traced>(noisy{}),
                made<tg::traced>(captured<>));
}

namespace {
constexpr auto slopes = tg::gradient(noisy{});
constexpr auto slopes_again = tg::gradient(noisy<true>{});
constexpr auto second = [](auto xs, auto v, auto w) {
    return tg::gradient([](auto... x) {
        const auto [a, b, c] = tg::gradient(noisy{})(x...);
        const auto p = tg::eval(sum(tg::sin(a))), q = tg::eval(sum(tg::sin(b)));
        return tg::eval(p + q + sum(tg::sin(c)));
    })(xs, v, w);
};
} // namespace

TEST_CASE("draws in scans: derivatives read the numbers of the forward pass") {
    const auto check = [](const auto& f, const auto& g) {
        check_alike(made<tg::traced>(slopes), made<tg::graph>(f), made<tg::traced>(f), made<tg::traced>(g));
    };
    SUBCASE("kept") { check(slopes, tg::gradient(captured<>)); }
    SUBCASE("drawn again") { check(slopes_again, tg::gradient(captured<true>)); }
    SUBCASE("finite differences") {
        auto f = made<tg::traced>(captured<>);
        auto g = made<tg::traced>(tg::gradient(captured<>));
        const auto xs = noise<double>({2, 3, 2}, 1), v = noise<double>({2, 5}, 2), w = noise<double>({2, 5}, 3);
        f.set_seed(7), g.set_seed(7);
        const auto [by_xs, by_v, by_w] = g(xs, v, w);
        const double h = 1e-6;
        for (std::int64_t i = 0; i < 10; ++i) {
            std::vector<double> up = w.to_vector(), down = up;
            up[static_cast<std::size_t>(i)] += h, down[static_cast<std::size_t>(i)] -= h;
            f.set_seed(7);
            const double above = f(xs, v, tg::tensor<double>(up, {2, 5})).item();
            f.set_seed(7);
            const double below = f(xs, v, tg::tensor<double>(down, {2, 5})).item();
            // The difference of two numbers near 10 errs by 1e-15 * 10 / h = 1e-8.
            CHECK(by_w.data()[i] == doctest::Approx((above - below) / (2 * h)).epsilon(1e-6));
        }
    }
    SUBCASE("second derivatives") { check_alike(made<tg::graph>(second), made<tg::traced>(second)); }
}

namespace {
/// A scan in a cell, both of which draw; the inner one captures the outer one's state.
const auto nested = [](auto xs, auto v, auto w) {
    const auto outer = [&](auto state, auto x) {
        const auto first = tg::random::uniform_like(state);
        const auto inner = [&](auto total, auto row) {
            const auto u = tg::random::uniform_like(total);
            const auto next = tg::eval(total + u * row * sum(x) + state);
            return std::pair{next, next};
        };
        const auto [last, all] = tg::scan(inner, tg::eval(state * first), w, {.axis = 0});
        const auto after = tg::random::uniform_like(state);
        const auto next = tg::eval(tanh(last) * after + tg::reshape(sum(all, {0}), {-1, 5}) * 0.1);
        return std::pair{next, next};
    };
    const auto [last, all] = tg::scan(outer, v, xs);
    return noisy<>::score(last, all);
};
} // namespace

TEST_CASE("draws in scans: scans in cells") {
    check_alike(eagerly(nested), made<tg::traced>(nested));
    // The outer scan's steps have a draw for each row of w, whose number is a symbol, too.
    auto want = eagerly(nested);
    auto got = tg::function<tg::traced>(nested, tg::spec<double, tg::dyn, tg::dyn, 2>{}, tg::spec<double, tg::dyn, 5>{},
                                        tg::spec<double, tg::dim<"rows">, 5>{});
    for (const std::int64_t rows : {3, 1, 4}) {
        const auto xs = noise<double>({2, 3, 2}, 1), v = noise<double>({2, 5}, 2), w = noise<double>({rows, 5}, 3);
        CHECK(same_bits(got(xs, v, w), want(xs, v, w)));
    }
    // Eager mode's tape adds over time in another order than a scan: a few roundings.
    auto slopes_of_loop = eagerly(tg::gradient(nested));
    auto slopes_of_scan = made<tg::traced>(tg::gradient(nested));
    const auto xs = noise<double>({2, 3, 2}, 1), v = noise<double>({2, 5}, 2), w = noise<double>({2, 5}, 3);
    const tg::tensor<double> a = std::get<2>(slopes_of_loop(xs, v, w)), b = std::get<2>(slopes_of_scan(xs, v, w));
    for (std::int64_t i = 0; i < 10; ++i) CHECK(a.data()[i] == doctest::Approx(b.data()[i]).epsilon(1e-12));
}

TEST_CASE("draws in scans: masks and the order of steps") {
    const auto f = [](auto xs, auto v, auto mask) {
        const auto cell = [&](auto state, auto x) {
            const auto next = tg::eval(state + x * tg::dropout(state, 0.5) + v);
            return std::pair{next, next};
        };
        const auto [last, all] = tg::scan(cell, v, xs, {.go_backwards = true}, tg::step_mask{mask});
        return std::tuple{last, all};
    };
    auto want = eagerly(f);
    auto got = tg::function<tg::traced>(f, tg::spec<float, 2, tg::dyn, 3>{}, tg::spec<float, 2, 3>{},
                                        tg::spec<bool, 2, tg::dyn>{});
    const auto xs = noise<float>({2, 5, 3}, 1), v = noise<float>({2, 3}, 2);
    const tg::tensor<bool> mask{{true, true, false, true, true}, {true, false, true, true, false}};
    for (int call = 0; call < 2; ++call) {
        const auto [last, all] = want(xs, v, mask);
        const auto [found_last, found_all] = got(xs, v, mask);
        CHECK(same_bits(found_last, last));
        CHECK(same_bits(found_all, all));
    }
}

namespace {
/// A layer that drops in a cell, with weights of the scope that the cell captures; or the same in a loop over four steps.
template <bool Scanned>
struct dropping {
    auto operator()(auto scope, auto x) const {
        const auto w = scope.variable_like(x, "w", {4, 4}, {.initializer = tg::init::glorot_uniform{}});
        const auto k = scope.variable_like(x, "k", {3, 4}, {.initializer = tg::init::glorot_uniform{}});
        const auto cell = [&](auto state, auto step) {
            const auto in = tg::eval(matmul(step, k));
            const auto back = tg::eval(matmul(state, w));
            const auto h = tg::eval(tanh(in + back));
            const auto next = tg::dropout(scope / "drop", h, {.rate = 0.25});
            return std::pair{next, next};
        };
        auto last = tg::eval(0 * matmul(tg::take(x, 0, 1), k));
        if constexpr (Scanned)
            last = tg::scan(cell, last, x).last;
        else
            for (int t = 0; t < 4; ++t) last = cell(last, tg::eval(tg::take(x, t, 1))).first;
        const auto dropped = tg::dropout(scope / "after", last, {.rate = 0.5});
        return tg::dense(scope / "out", dropped, {.units = 1});
    }
};
} // namespace

TEST_CASE("draws in scans: dropout in a cell, in training and prediction") {
    using spec = tg::spec<float, tg::dyn, 4, 3>;
    const auto compiled = [](const auto& model) {
        return tg::compile<tg::traced>(model, spec{}, tg::mean_squared_error{}, tg::sgd{.learning_rate = 0.1},
                                       {.seed = 3});
    };
    auto loop = compiled(dropping<false>{});
    auto scan = compiled(dropping<true>{});
    for (const std::int64_t size : {5, 1, 6}) {
        const auto x = noise<float>({size, 4, 3}, 4), y = noise<float>({size, 1}, 2);
        // Derivatives by weights add over time in another order: a few roundings.
        CHECK(loop.train_on_batch(x, y).loss == doctest::Approx(scan.train_on_batch(x, y).loss).epsilon(1e-5));
        const tg::tensor<float> a = loop.predict(x), b = scan.predict(x);
        for (std::int64_t i = 0; i < size; ++i) CHECK(a.data()[i] == doctest::Approx(b.data()[i]).epsilon(1e-4));
        CHECK(same_bits(b, scan.predict(x))); // nothing is drawn
    }
}

TEST_CASE("draws in scans: a checkpoint in a capturing cell, and a scan in a checkpoint") {
    const auto within = [](auto xs, auto v, auto w) {
        const auto shifted = tg::eval(w + 1); // nodes before the cell's own
        const auto cell = [&](auto state, auto x) {
            const auto block = [&](auto s) {
                const auto u = tg::random::uniform_like(s);
                const auto drive = tg::eval(matmul(x, shifted));
                return tg::eval(tanh(s * u + drive));
            };
            const auto next = tg::checkpoint(block)(state);
            return std::pair{next, next};
        };
        const auto [last, all] = tg::scan(cell, v, xs);
        return noisy<>::score(last, all);
    };
    const auto plain = [](auto xs, auto v, auto w) {
        const auto shifted = tg::eval(w + 1);
        const auto cell = [&](auto state, auto x) {
            const auto u = tg::random::uniform_like(state);
            const auto drive = tg::eval(matmul(x, shifted));
            const auto next = tg::eval(tanh(state * u + drive));
            return std::pair{next, next};
        };
        const auto [last, all] = tg::scan(cell, v, xs);
        return noisy<>::score(last, all);
    };
    const auto around = [plain](auto xs, auto v, auto w) { return tg::checkpoint(plain)(xs, v, w); };
    check_alike(made<tg::traced>(plain), made<tg::traced>(within), made<tg::traced>(around), eagerly(plain));
    check_alike(made<tg::traced>(tg::gradient(plain)), made<tg::traced>(tg::gradient(within)),
                made<tg::traced>(tg::gradient(around)));
}

} // namespace traced_scan_draws_test
