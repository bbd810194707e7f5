#include <support/messages.hpp>

#include <tapegraph/real.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <span>
#include <stdexcept>
#include <vector>

/// What stands on the tape without its inside: functions with derivatives of their own, blocks, loops of steps.

namespace external_test {

namespace tg = tapegraph;
using real = tg::real<>;
using tape_type = tg::real_tape<>;
using numbers = std::vector<real>;
using support::contains;
using support::message_of;

// The two results x0 x1 and sin(x0), with and without the tape's help.
numbers recorded(const numbers& x) { return {x[0] * x[1], sin(x[0])}; }
numbers external(tape_type& tape, const numbers& x, int* calls) {
    const double a = x[0].value(), b = x[1].value();
    const std::vector<double> values{a * b, std::sin(a)};
    return tape.external(x, values, [=](std::span<const double> dy, std::span<double> dx) {
        ++*calls;
        dx[0] = dy[0] * b + dy[1] * std::cos(a);
        dx[1] = dy[0] * a;
    });
}

TEST_CASE("external: as if it had been recorded, at any position") {
    for (int before = 0; before < 2; ++before) {
        int calls = 0;
        const auto run = [&](auto f) {
            tape_type tape;
            numbers x{0.7, 1.9};
            tape.watch(x);
            numbers u = x;
            if (before == 1) u = {x[0] * x[0] + x[1], exp(x[1])};
            numbers v = f(tape, u);
            v = f(tape, {v[1] + u[0], v[0]}); // a second call, of the first one's results
            (void)f(tape, u);
            return tape.gradient(v[0] * v[1] + x[0], x);
        };
        const auto expected = run([](tape_type&, const numbers& x) { return recorded(x); });
        const auto own = run([&](tape_type& tape, const numbers& x) { return external(tape, x, &calls); });
        for (int i = 0; i < 2; ++i) CHECK(own[i] == doctest::Approx(expected[i]).epsilon(1e-14));
        CHECK(calls == 2); // results that nothing depends on need no call
    }
}

TEST_CASE("external: constants, lanes, rewinding, exceptions") {
    tape_type tape;
    int calls = 0;
    const numbers constants = external(tape, {0.5, 2}, &calls);
    CHECK(tape.statements() == 0);
    CHECK(constants[0] == 1);
    numbers x{0.7, 1.9};
    tape.watch(x[0]); // x[1] stays a constant
    const auto position = tape.position();
    numbers y = external(tape, x, &calls);
    CHECK(tape.gradient(y[0], x[0]) == 1.9);
    tape.rewind(position);
    y = external(tape, x, &calls);
    tg::adjoint_lanes<double, 2> lanes(tape);
    lanes.add(y[0], 0);
    lanes.add(y[1], 1);
    lanes.sweep();
    CHECK(lanes(x[0], 0) == 1.9);
    CHECK(lanes(x[0], 1) == std::cos(0.7));
    const numbers thrown =
        tape.external(x, std::vector<double>{1.0}, [](auto, auto) { throw std::runtime_error("pulled"); });
    CHECK(message_of<std::runtime_error>([&] { tape.backward(thrown[0]); }) == "pulled");
    CHECK(tape.gradient(y[0], x[0]) == 1.9);
}

TEST_CASE("statement: derivatives that are known") {
    tape_type tape;
    numbers x(5000, real(0.5));
    tape.watch(x);
    const std::vector<double> slopes(5000, 2.0);
    const real y = tape.statement(7, x, slopes);
    const auto g = tape.gradient(y * y, x);
    CHECK(y == 7);
    CHECK(g[0] == 28);
    CHECK(g[4999] == 28);
    CHECK_FALSE(tape.statement(3, {}, {}).on_a_tape());
    CHECK(contains(message_of([&] { (void)tape.statement(7, x, {}); }), "5000 operands and 0 derivatives"));
    tape_type inner;
    CHECK(contains(message_of([&] { (void)tape.statement(7, x, slopes); }), "another tape is active"));
}

TEST_CASE("preaccumulate: fewer statements, the same derivatives") {
    const auto block = [](const numbers& x) {
        real a = x[0], b = x[1];
        for (int i = 0; i < 100; ++i) {
            const real next = sin(a) + 0.5 * b;
            b = a * b;
            a = next;
        }
        return numbers{a, b, x[2] * 3, 1.5};
    };
    const auto run = [&](bool shortened, std::size_t& length) {
        tape_type tape;
        numbers x{0.3, 0.9, 2};
        tape.watch(x);
        x[2] = 7; // a constant among the numbers
        const numbers u{x[0] * 1.5, x[1] - x[0], x[2]};
        const numbers y = shortened ? tg::preaccumulate<double>(tape, u, block) : block(u);
        const real sum = y[0] * y[1] + y[2] * y[3] + y[0];
        length = tape.operands();
        return tape.gradient(sum, numbers{x[0], x[1]});
    };
    std::size_t long_one = 0, short_one = 0;
    const auto expected = run(false, long_one), own = run(true, short_one);
    for (std::size_t i = 0; i < 2; ++i) CHECK(own[i] == doctest::Approx(expected[i]).epsilon(1e-13));
    CHECK(long_one > 300);
    CHECK(short_one < 20);
}

// A damped pendulum by Euler's method.
struct pendulum {
    int* runs;
    template <class X, class P>
    void operator()(std::vector<X>& x, const std::vector<P>& p, std::size_t i) const {
        if constexpr (std::is_same_v<X, double>) ++*runs;
        const X angle = x[0], speed = x[1];
        x[0] = angle + 0.01 * speed;
        x[1] = speed - 0.01 * (p[0] * sin(angle) + p[1] * speed) + 1e-5 * static_cast<double>(i);
    }
};

TEST_CASE("checkpointed_steps: the gradient of a loop in the memory of a few states") {
    const auto start = [](tape_type& tape) {
        numbers x{0.5, 0.1, 9.81, 0.3};
        tape.watch(x);
        return x;
    };
    for (std::size_t steps : {1, 2, 3, 10, 100, 1000}) {
        int runs = 0;
        tape_type tape;
        const numbers v = start(tape);
        numbers x{v[0], v[1]};
        const numbers parameters{v[2], v[3]};
        for (std::size_t i = 0; i < steps; ++i) pendulum{&runs}(x, parameters, i);
        const auto expected = tape.gradient(x[0] * x[1], v);
        for (std::size_t kept : {1, 2, 3, 5, 20, 2000}) {
            if (kept == 1 && steps > 100) continue;
            tape_type own;
            const numbers w = start(own);
            runs = 0;
            const numbers y = tg::checkpointed_steps(own, {w[0], w[1]}, {w[2], w[3]}, steps, kept, pendulum{&runs});
            CHECK(y[0].value() == x[0].value());
            CHECK(own.statements() < 12);
            for (int again = 0; again < 2; ++again) {
                const auto g = own.gradient(y[0] * y[1], w);
                for (std::size_t i = 0; i < 4; ++i) CHECK(g[i] == doctest::Approx(expected[i]).epsilon(1e-12));
                if (again > 0) continue;
                // Griewank and Walther's least number of steps, t l - binomial(c + t, c + 1), and the last one for its value
                std::int64_t t = 0;
                while (tg::scalars::reversible_steps(kept, t) < steps) ++t;
                const auto least =
                    static_cast<std::size_t>(t) * steps - (t > 0 ? tg::scalars::reversible_steps(kept + 1, t - 1) : 0);
                CHECK(static_cast<std::size_t>(runs) == least + 1);
            }
        }
    }
}

TEST_CASE("checkpointed_steps: steps of recording numbers only, and errors") {
    tape_type tape;
    numbers x{1.5};
    tape.watch(x);
    const auto step = [](numbers& state, const numbers&, std::size_t) { state[0] = sqrt(state[0]) * 1.1; };
    const numbers y = tg::checkpointed_steps(tape, x, {}, 20, 3, step);
    real z = x[0];
    for (int i = 0; i < 20; ++i) z = sqrt(z) * 1.1;
    CHECK(y[0].value() == z.value());
    CHECK(tape.gradient(y[0], x[0]) == doctest::Approx(tape.gradient(z, x[0])).epsilon(1e-14));
    CHECK(tg::checkpointed_steps(tape, x, {}, 0, 3, step)[0].value() == 1.5);
    CHECK(contains(message_of([&] { (void)tg::checkpointed_steps(tape, x, {}, 20, 0, step); }), "at least 1 state"));
    const auto longer = [](auto& state, const auto&, std::size_t) { state.push_back(1); };
    CHECK(contains(message_of([&] { (void)tg::checkpointed_steps(tape, x, {}, 2, 2, longer); }), "from 1 to 3"));
}

} // namespace external_test
