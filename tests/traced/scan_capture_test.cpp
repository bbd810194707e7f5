#include <nn/models.hpp>
#include <support/messages.hpp>

#include <tapegraph/nn/scan.hpp>
#include <tapegraph/traced.hpp>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

namespace traced_scan_capture_test {

/// Cells of scans that capture: data of the moment, values of the model around them, its scope. The bits are those of a cell that is
/// given the same values as weights.

using namespace nn_test;

namespace {

/// A leaky integrator whose weights are arguments.
struct plain_cell {
    constexpr auto operator()(auto state, auto x, auto w, auto rate) const {
        const auto drive = tg::eval(matmul(x, w));
        const auto next = tg::eval(state + rate * (tanh(drive) - state));
        return std::pair{next, next};
    }
};
constexpr auto score = [](const auto& last, const auto& sequence) {
    const auto a = tg::eval(sum(tg::sin(last)));
    const auto b = tg::eval(sum(sequence * sequence));
    return tg::eval(a + b);
};

constexpr auto given = [](auto xs, auto v, auto w, auto rate) {
    const auto [last, sequence] = tg::scan(plain_cell{}, v, xs, {}, w, rate);
    return score(last, sequence);
};
const auto captured = [](auto xs, auto v, auto w, auto rate) {
    const auto [last, sequence] = tg::scan([&](auto state, auto x) { return plain_cell{}(state, x, w, rate); }, v, xs);
    return score(last, sequence);
};
const auto some_captured = [](auto xs, auto v, auto w, auto rate) { // one is a weight, and each step masks
    const auto [last, sequence] = tg::scan([w](auto state, auto x, auto r) { return plain_cell{}(state, x, w, r); }, v,
                                           xs, {.recompute = true}, rate);
    return score(last, sequence);
};

/// The gradient of a score of the gradient.
constexpr auto second = [](const auto& f) {
    return tg::gradient([f](auto... x) {
        return std::apply(
            [](auto... g) {
                auto total = tg::eval(0.0 * (sum(g) + ...));
                ((total = tg::eval(total + sum(tg::sin(g)))), ...);
                return total;
            },
            tg::gradient(f)(x...));
    });
};

const auto arguments = [](std::int64_t batch, std::int64_t time) {
    return std::tuple{noise<double>({batch, time, 3}, 1), noise<double>({batch, 4}, 2), noise<double>({3, 4}, 3),
                      noise<double>({4}, 4)};
};
template <class F>
auto made(const F& f) {
    return tg::function<tg::traced>(f, tg::spec<double, tg::dyn, tg::dyn, 3>{}, tg::spec<double, tg::dyn, 4>{},
                                    tg::spec<double, 3, 4>{}, tg::spec<double, 4>{});
}
/// Both functions have the same results, one tensor or several.
template <class A, class B>
void check_alike(const A& a, const B& b) {
    auto right = made(a);
    auto found = made(b);
    for (const std::int64_t batch : {2, 1})
        for (const std::int64_t time : {4, 1, 7}) {
            const auto x = arguments(batch, time);
            const auto same = [](const auto& p, const auto& q) {
                if constexpr (requires { p.shape(); })
                    CHECK(same_bits(p, q));
                else
                    [&]<std::size_t... I>(std::index_sequence<I...>) {
                        CHECK((same_bits(std::get<I>(p), std::get<I>(q)) && ...));
                    }
                (std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(p)>>>{});
            };
            same(std::apply(right, x), std::apply(found, x));
        }
}

} // namespace

TEST_CASE("run-time scans: captured values have the bits of weights, with all derivatives") {
    SUBCASE("value") { check_alike(given, captured); }
    SUBCASE("some of them, recomputed") { check_alike(given, some_captured); }
    SUBCASE("gradient") { check_alike(tg::gradient(given), tg::gradient(captured)); }
    SUBCASE("second derivative") { check_alike(second(given), second(captured)); }
}

TEST_CASE("run-time scans: masks, backwards, and numbers and branches of the moment") {
    for (const bool doubled : {false, true}) {
        const double rate = doubled ? 0.2 : 0.1;
        const std::vector<double> shifts{0.5, -0.25};
        auto f = tg::function<tg::traced>(
            [&](auto xs, auto v, auto w, auto mask) {
                const auto cell = [&](auto state, auto x) {
                    auto next = tg::eval(state + rate * tanh(matmul(x, w)));
                    for (const double s : shifts) next = tg::eval(next + s);
                    if (doubled) next = tg::eval(2 * next);
                    return std::pair{next, next};
                };
                const auto [last, sequence] = tg::scan(cell, v, xs, {.go_backwards = true}, tg::step_mask{mask});
                return std::tuple{last, sequence};
            },
            tg::spec<double, 2, tg::dyn, 3>{}, tg::spec<double, 2, 4>{}, tg::spec<double, 3, 4>{},
            tg::spec<bool, 2, tg::dyn>{});
        const auto xs = noise<double>({2, 5, 3}, 1), v = noise<double>({2, 4}, 2), w = noise<double>({3, 4}, 3);
        const tg::tensor<bool> mask{{true, true, false, true, true}, {true, false, true, true, false}};
        const auto [last, sequence] = f(xs, v, w, mask);
        for (int i = 0; i < 2; ++i)
            for (int k = 0; k < 4; ++k) {
                double state = v(i, k);
                for (int t = 4; t >= 0; --t) {
                    if (!mask(i, t)) continue;
                    double drive = 0;
                    for (int j = 0; j < 3; ++j) drive += xs(i, t, j) * w(j, k);
                    state += rate * std::tanh(drive) + 0.5 - 0.25;
                    if (doubled) state *= 2;
                }
                CHECK(last(i, k) == doctest::Approx(state).epsilon(1e-13));
            }
    }
}

namespace {
/// A cell of layers: its variables are the model's, of the scope that it captures.
struct of_layers {
    int units;
    auto operator()(auto scope, auto x) const {
        const auto w = scope.variable_like(x, "out/kernel", {units, 1}, {.initializer = tg::init::glorot_uniform{}});
        const auto v = tg::eval(0 * tg::dense(scope / "start", tg::take(x, 0, 1), {.units = units}));
        const auto cell = [&](auto state, auto step) {
            const auto in = tg::dense(scope / "cell" / "in", step, {.units = units});
            const auto back = tg::dense(scope / "cell" / "back", state, {.units = units, .use_bias = false});
            const auto next = tg::eval(tanh(in + back));
            return std::pair{next, tg::eval(matmul(next, w))};
        };
        const auto [last, sequence] = tg::scan(cell, v, x);
        return tg::eval(mean(sequence, {1}));
    }
};
struct of_weights {
    struct cell {
        constexpr auto operator()(auto state, auto step, auto a, auto b, auto c, auto w) const {
            const auto in = tg::eval(matmul(step, a) + b);
            const auto back = tg::eval(matmul(state, c));
            const auto next = tg::eval(tanh(in + back));
            return std::pair{next, tg::eval(matmul(next, w))};
        }
    };
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = scope.variable_like(x, "out/kernel", {5, 1}, {.initializer = tg::init::glorot_uniform{}});
        const auto v = tg::eval(0 * tg::dense(scope / "start", tg::take(x, 0, 1), {.units = 5}));
        const auto in = scope / "cell" / "in";
        const auto a = in.variable_like(x, "kernel", {6, 5}, {.initializer = tg::init::glorot_uniform{}});
        const auto b = in.variable_like(x, "bias", {5}, {.initializer = tg::init::zeros{}});
        const auto c =
            (scope / "cell" / "back").variable_like(x, "kernel", {5, 5}, {.initializer = tg::init::glorot_uniform{}});
        const auto [last, sequence] = tg::scan(cell{}, v, x, {}, a, b, c, w);
        return tg::eval(mean(sequence, {1}));
    }
};
} // namespace

TEST_CASE("run-time scans: a cell of layers trains as one that is given their weights") {
    using spec = tg::spec<float, tg::dyn, tg::dyn, 6>;
    const auto compiled = [](const auto& model) {
        return tg::compile<tg::traced>(model, spec{}, tg::mean_squared_error{}, tg::adam{.learning_rate = 0.05},
                                       {.seed = 2});
    };
    auto right = compiled(of_weights{});
    auto found = compiled(of_layers{5});
    REQUIRE(first_difference(right, found) == "");
    for (const std::int64_t size : {6, 1, 20}) {
        const auto x = noise<float>({size, 3 + size % 4, 6}, 1);
        const auto y = noise<float>({size, 1}, 2);
        CHECK(right.train_on_batch(x, y).loss == found.train_on_batch(x, y).loss);
        CHECK(same_bits(right.predict(x), found.predict(x)));
    }
    CHECK(first_difference(right, found) == "");
    CHECK(found.summary().find("cell/in (dense)") != std::string::npos);
}

TEST_CASE("run-time scans: a scan in a cell captures the cell's state") {
    const auto nested = [](auto xs, auto v, auto w, auto rate) {
        const auto outer = [&](auto state, auto x) { // the inner one runs over the rows of w
            const auto inner = [&](auto sum, auto row) {
                const auto next = tg::eval(sum + rate * row * tg::sum(x) + 0.1 * tg::sum(state));
                return std::pair{next, next};
            };
            const auto [last, all] = tg::scan(inner, tg::eval(0 * rate), w, {.axis = 0});
            const auto next = tg::eval(tanh(state + last));
            return std::pair{next, next};
        };
        const auto [last, sequence] = tg::scan(outer, v, xs);
        return score(last, sequence);
    };
    const auto unrolled = [](auto xs, auto v, auto w, auto rate) {
        auto state = tg::eval(1 * v);
        auto squares = tg::eval(0 * sum(v));
        for (int t = 0; t < 4; ++t) {
            const auto x = tg::eval(tg::take(xs, t, 1));
            auto total = tg::eval(0 * rate);
            for (int r = 0; r < 3; ++r)
                total = tg::eval(total + rate * tg::take(w, r, 0) * tg::sum(x) + 0.1 * tg::sum(state));
            state = tg::eval(tanh(state + total));
            squares = tg::eval(squares + sum(state * state));
        }
        return tg::eval(sum(tg::sin(state)) + squares);
    };
    using xs_spec = tg::spec<double, 2, 4, 3>;
    const auto function = [](const auto& f) {
        return tg::function<tg::traced>(f, xs_spec{}, tg::spec<double, 2, 4>{}, tg::spec<double, 3, 4>{},
                                        tg::spec<double, 4>{});
    };
    auto right = function(tg::value_and_gradient(unrolled));
    auto found = function(tg::value_and_gradient(nested));
    const auto x = arguments(2, 4);
    const auto a = std::apply(right, x), b = std::apply(found, x);
    CHECK(a.value.item() == doctest::Approx(b.value.item()).epsilon(1e-12));
    const auto close = [](const tg::tensor<double>& p, const tg::tensor<double>& q) {
        for (std::int64_t i = 0; i < p.size(); ++i) CHECK(p.data()[i] == doctest::Approx(q.data()[i]).epsilon(1e-10));
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) { (close(std::get<I>(a.gradient), std::get<I>(b.gradient)), ...); }
    (std::make_index_sequence<4>{});
}

TEST_CASE("run-time scans: a scan in a cell without captures captures the cell's state") {
    const auto nested = [](auto xs, auto v, auto w) {
        const auto outer = [](auto state, auto x, auto rows) {
            const auto inner = [&](auto total, auto row) {
                const auto next = tg::eval(total + row * tg::sum(x) + 0.1 * tg::sum(state));
                return std::pair{next, next};
            };
            const auto [last, all] = tg::scan(inner, tg::eval(0 * tg::take(rows, 0, 0)), rows, {.axis = 0});
            const auto next = tg::eval(tanh(state + last));
            return std::pair{next, next};
        };
        const auto [last, sequence] = tg::scan(outer, v, xs, {}, w);
        return score(last, sequence);
    };
    const auto unrolled = [](auto xs, auto v, auto w) {
        auto state = tg::eval(1 * v);
        auto squares = tg::eval(0 * sum(v));
        for (int t = 0; t < 4; ++t) {
            const auto x = tg::eval(tg::take(xs, t, 1));
            auto total = tg::eval(0 * tg::take(w, 0, 0));
            for (int r = 0; r < 3; ++r) total = tg::eval(total + tg::take(w, r, 0) * tg::sum(x) + 0.1 * tg::sum(state));
            state = tg::eval(tanh(state + total));
            squares = tg::eval(squares + sum(state * state));
        }
        return tg::eval(sum(tg::sin(state)) + squares);
    };
    const auto function = [](const auto& f) {
        return tg::function<tg::traced>(f, tg::spec<double, 2, 4, 3>{}, tg::spec<double, 2, 4>{},
                                        tg::spec<double, 3, 4>{});
    };
    auto right = function(tg::value_and_gradient(unrolled));
    auto found = function(tg::value_and_gradient(nested));
    const auto xs = noise<double>({2, 4, 3}, 1), v = noise<double>({2, 4}, 2), w = noise<double>({3, 4}, 3);
    const auto a = right(xs, v, w), b = found(xs, v, w);
    CHECK(a.value.item() == doctest::Approx(b.value.item()).epsilon(1e-12));
    const tg::tensor<double> p = std::get<2>(a.gradient), q = std::get<2>(b.gradient);
    for (std::int64_t i = 0; i < p.size(); ++i) CHECK(p.data()[i] == doctest::Approx(q.data()[i]).epsilon(1e-10));
}

TEST_CASE("run-time scans: what a capturing cell may not do is refused") {
    const auto refused = [](const auto& cell_of) {
        return support::message_of<tg::shape_error>([&] {
            static_cast<void>(tg::compile<tg::traced>(
                [&](auto scope, auto x) {
                    const auto v = tg::eval(tg::take(x, 0, 1));
                    const auto [last, sequence] = tg::scan(cell_of(scope), v, x);
                    return last;
                },
                tg::spec<float, tg::dyn, 4, 3>{}));
        });
    };
    const auto text = refused([](auto scope) {
        return [scope](auto state, auto x) {
            const auto next = tg::print<"state">(tg::eval(state + x));
            return std::pair{next, next};
        };
    });
    CHECK(text.find("scan: in graph mode a cell prints and checks nothing") == 0);
    const auto moving = refused([](auto scope) {
        return [scope](auto state, auto x) {
            const auto next = tg::batch_normalization(scope / "norm", tg::eval(state + x));
            return std::pair{next, next};
        };
    });
    CHECK(moving.find("scan: a cell assigns no variables") == 0);
    const auto wider = refused([](auto scope) {
        return [scope](auto state, auto x) {
            return std::pair{tg::dense(scope / "wide", tg::eval(state + x), {.units = 4}), x};
        };
    });
    CHECK(wider.find("scan: the cell's new state has another shape or type than the state") == 0);
}

} // namespace traced_scan_capture_test
