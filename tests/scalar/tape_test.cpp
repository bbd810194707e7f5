#include <support/messages.hpp>

#include <tapegraph/real.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

/// The tape of numbers: scopes, positions, memory, several results, and errors.

namespace tape_test {

namespace tg = tapegraph;
using real = tg::real<>;
using tape_type = tg::real_tape<>;
using support::contains;
using support::message_of;

TEST_CASE("real_tape: constants record nothing, one assignment is one statement") {
    tape_type tape;
    real a = 2, x = 3;
    real y = a * a + sin(a);
    CHECK(tape.operands() == 0);
    CHECK(tape.statements() == 0);
    tape.watch(x);
    CHECK(tape.statements() == 1);
    y = a * x + exp(x) / x - a * a;
    CHECK(tape.statements() == 2);
    CHECK(tape.operands() == 3);
    y = 5;
    const real z = y * a;
    CHECK(tape.statements() == 2);
    real copy = x; // a copy is the same number
    CHECK(tape.statements() == 2);
    CHECK(tape.gradient(copy * copy, x) == 6);
    CHECK(tape.gradient(z, x) == 0);
}

TEST_CASE("real_tape: many statements over chunks, again and again in the same memory") {
    // A thread of its own: a tape takes over the memory that earlier tapes of its thread have left.
    std::thread([] {
        std::size_t first_bytes = 0;
        for (int run = 0; run < 3; ++run) {
            tape_type tape;
            real x = 0.5;
            tape.watch(x);
            real y = 1;
            for (int i = 0; i < 400000; ++i) y = 0.999999 * y + 1e-6 * x * y;
            const double factor = 0.999999 + 1e-6 * 0.5;
            CHECK(tape.gradient(y, x) == doctest::Approx(400000 * 1e-6 * std::pow(factor, 399999.0)).epsilon(1e-9));
            CHECK(tape.operands() == 3u * 400000u - 2u);
            if (run == 0) first_bytes = tape.bytes();
            CHECK(tape.bytes() == first_bytes);
            // 12 bytes an operand, 8 a statement, and what chunks and vectors have to spare
            CHECK(tape.bytes() < (12 * tape.operands() + 8 * tape.statements()) * 3 / 2);
        }
    }).join();
}

TEST_CASE("real_tape: watched numbers in between, and intermediate results") {
    tape_type tape;
    real x = 2, z = 7;
    tape.watch(x);
    const real y = x * x;
    tape.watch(z);
    const real w = y * z;
    tape.backward(w);
    CHECK(tape.adjoint(x) == 28);
    CHECK(tape.adjoint(y) == 7);
    CHECK(tape.adjoint(z) == 4);
    tape.clear_adjoints();
    tape.add_adjoint(w, 1);
    tape.add_adjoint(y, 100);
    tape.sweep();
    CHECK(tape.adjoint(x) == 428);
    // Derivatives by what was computed before: its own statement is not followed.
    CHECK(tape.gradient(w, std::vector<real>{z, x, w}) == std::vector<double>{4, 28, 1});
}

TEST_CASE("real_tape: tapes in tapes") {
    tape_type outer;
    real x = 3;
    outer.watch(x);
    const real before = x * x;
    {
        tape_type inner;
        real t = x.value();
        inner.watch(t);
        CHECK(inner.gradient(t * t * t, t) == 27);
        CHECK(outer.gradient(before, x) == 6); // may be asked while another is active
        CHECK(contains(message_of([&] { (void)real(x * t); }), "another tape"));
        CHECK(contains(message_of([&] { (void)inner.adjoint(x); }), "real_tape::adjoint"));
        CHECK(contains(message_of([&] { inner.backward(x); }), "real_tape::backward"));
    }
    const real after = before * x;
    CHECK(outer.gradient(after, x) == 27);
}

TEST_CASE("real_tape: tapes that end in another order") {
    auto first = std::make_unique<tape_type>();
    real x = 3;
    first->watch(x);
    tape_type second;
    real y = 2;
    second.watch(y);
    first.reset();
    CHECK(second.gradient(y * y, y) == 4);
    CHECK(contains(message_of([&] { (void)real(x * 2); }), "another tape"));
}

TEST_CASE("real_tape: a number whose tape has ended") {
    real x = 3;
    {
        tape_type tape;
        tape.watch(x);
    }
    CHECK(contains(message_of([&] { (void)real(x * 2); }), "has ended"));
    CHECK(real(x.value() * 2) == 6);
    tape_type next;
    real y = 1;
    next.watch(y);
    CHECK(contains(message_of([&] { y = y + x; }), "another tape"));
    CHECK(contains(message_of([&] { (void)next.gradient(y, x); }), "another tape"));
    CHECK(next.gradient(y * 2, y) == 2); // the tape is none the worse
}

TEST_CASE("real_tape: errors name what is wrong") {
    tape_type tape;
    real x = 3, constant = 2;
    CHECK(contains(message_of([&] { (void)tape.adjoint(constant); }), "constant of this tape; watch it"));
    tape.watch(x);
    CHECK(contains(message_of([&] { (void)tape.gradient(x * x, constant); }), "watch it"));
    const auto position = tape.position();
    const real y = x * x;
    tape.clear();
    CHECK(contains(message_of([&] { tape.rewind(position); }), "rewind"));
    CHECK(contains(message_of([&] { (void)real(y + 1); }), "cleared"));
    std::string in_thread;
    std::thread([&] { in_thread = message_of([&] { (void)tape.statements(); }); }).join();
    CHECK(contains(in_thread, "another thread"));
}

TEST_CASE("real_tape: positions") {
    tape_type tape;
    real x = 2;
    tape.watch(x);
    const real y = x * x;
    const auto position = tape.position();
    const auto bytes = tape.operands();
    for (double power = 1; power < 4; ++power) {
        real z = y;
        for (int i = 0; i < 10000; ++i) z = z * 1.0001;
        z = pow(z, power);
        const double f = std::pow(1.0001, 10000);
        CHECK(tape.gradient(z, x) == doctest::Approx(2 * power * std::pow(2.0, 2 * power - 1) * std::pow(f, power)));
        tape.rewind(position);
        CHECK(tape.operands() == bytes);
    }
    CHECK(tape.gradient(y, x) == 4);
}

TEST_CASE("real_tape: pause") {
    tape_type tape;
    real x = 2;
    tape.watch(x);
    {
        const tg::no_recording<> pause;
        const tg::no_recording<> again;
        const real y = x * x;
        CHECK(y.value() == 4);
        CHECK(tape.operands() == 0);
        const real z = y * x;
        CHECK_FALSE(z.on_a_tape());
    }
    CHECK_FALSE(tape.paused());
    CHECK(tape.gradient(x * x, x) == 4);
    tape.pause();
    real late = 5;
    tape.watch(late); // inputs may come while the tape pauses
    const real ignored = late * late;
    tape.resume();
    CHECK(tape.gradient(late * x, late) == 2);
    CHECK(tape.gradient(ignored, late) == 0);
    const tg::no_recording<float> no_tape_of_float;
}

TEST_CASE("real_tape: a limit of memory") {
    tape_type tape;
    real x = 2, y = 1;
    tape.watch(x);
    tape.limit_bytes(tape.bytes() + 200000);
    const auto run = [&] {
        for (int i = 0; i < 10000000; ++i) y = y * x;
    };
    const std::string message = message_of<tg::out_of_memory>(run);
    CHECK(contains(message, "exceed its limit of"));
    CHECK(contains(message, "checkpointed_steps"));
    CHECK(tape.bytes() < 1000000);
    tape.limit_bytes(std::numeric_limits<std::size_t>::max());
    CHECK(tape.gradient(x * x, x) == 4); // what was recorded is still there
}

TEST_CASE("real_tape: exceptions through recorded code") {
    tape_type tape;
    real x = 2;
    tape.watch(x);
    try {
        const real y = x * x;
        if (y > 3) throw std::runtime_error("beyond");
        CHECK(false);
    } catch (const std::runtime_error&) {
        CHECK(tape.gradient(x * x * x, x) == 12);
    }
}

TEST_CASE("real_tape: each thread has its own") {
    std::vector<double> slopes(4);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            for (int run = 0; run < 50; ++run) {
                tape_type tape;
                real x = i + 1;
                tape.watch(x);
                real y = 0;
                for (int k = 0; k < 1000; ++k) y += x * x;
                slopes[static_cast<std::size_t>(i)] = tape.gradient(y, x);
            }
        });
    for (auto& thread : threads) thread.join();
    CHECK(slopes == std::vector<double>{2000, 4000, 6000, 8000});
}

TEST_CASE("adjoint_lanes: several results in one sweep") {
    tape_type tape;
    std::vector<real> x{1, 2, 3};
    tape.watch(x);
    const real a = x[0] * x[1], b = a + x[2] * x[2], c = sin(b), d = 5;
    const real results[]{a, b, c, d};
    tg::adjoint_lanes<double, 4> lanes(tape);
    for (int i = 0; i < 4; ++i) lanes.add(results[i], i);
    lanes.sweep();
    for (int i = 0; i < 4; ++i) {
        tape.backward(results[i]);
        for (const real& v : x) CHECK(lanes(v, i) == tape.adjoint(v));
    }
    CHECK(contains(message_of([&] { lanes(d, 0); }), "watch it"));
    const real later = a * b;
    CHECK(contains(message_of([&] { lanes.add(later, 0); }), "clear()"));
    CHECK(contains(message_of([&] { lanes.sweep(); }), "clear()"));
}

} // namespace tape_test
