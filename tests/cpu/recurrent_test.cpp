#include <support/graph_runner.hpp>
#include <support/settings_guard.hpp>

#include <tapegraph/ops/recurrent/layers_kernel.hpp>

#include <doctest/doctest.h>

#include <algorithm>

namespace recurrent_test {

/// The kernels of recurrences: equal bits on any number of threads, floats near doubles on every instruction set, and the
/// functions of the gates.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

/// Everything the two passes write. `between` runs between them.
template <class Cell, class T>
struct passes {
    std::vector<T> h, c, gates, dz, dh0, dc0;

    passes(const tg::tensor<T>& z, const tg::tensor<T>& r, const tg::tensor<T>& h0, const tg::tensor<T>& c0,
           const bool* mask, const auto& between) {
        const std::int64_t batch = h0.shape()[0].value, units = h0.shape()[1].value, time = z.shape()[1].value;
        tg::cpu::recurrent_shape<T> s{};
        s.batch = batch, s.time = time, s.units = units;
        s.recurrent = r.data(), s.h0 = h0.data(), s.c0 = c0.data(), s.mask = mask;
        s.bias = z.data();
        const auto cells = static_cast<std::size_t>(batch * time * units),
                   state = static_cast<std::size_t>(batch * units);
        h = c = std::vector<T>(cells, T(NAN));
        gates = std::vector<T>(Cell::kept * cells, T(NAN));
        dz = std::vector<T>(Cell::columns * cells, T(NAN));
        dh0 = dc0 = std::vector<T>(state, T(NAN));
        if (Cell::states == 1) c.assign(cells, T(0)), dc0.assign(state, T(0)); // nobody writes them
        const auto bytes = [&](bool backward) {
            return tg::cpu::recurrent_workspace_bytes<Cell>(s, backward, tg::thread_count());
        };
        std::vector<std::byte> memory(std::max(bytes(true), bytes(false)) + 64);
        void* const workspace =
            reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
        const auto rows = [&](auto* data, std::int64_t width) {
            return tg::cpu::step_rows<std::remove_pointer_t<decltype(data)>>{data, time * width * units, width * units};
        };
        tg::cpu::recurrent_forward<Cell, T>(s, rows(z.data(), Cell::gates),
                                            {rows(h.data(), 1), rows(c.data(), 1), rows(gates.data(), Cell::kept)},
                                            workspace);
        between();
        tg::cpu::recurrent_gradients<T> g{};
        const auto read = [&](const std::vector<T>& from, std::int64_t width) { return rows(from.data(), width); };
        g.h = read(h, 1), g.c = read(c, 1), g.gates = read(gates, Cell::kept);
        g.seeds = read(h, 1), g.last_seed = time; // the gradient of sum(h^2) / 2
        g.dz = rows(dz.data(), Cell::columns);
        g.dh0 = {dh0.data(), units, 0}, g.dc0 = {dc0.data(), units, 0};
        tg::cpu::recurrent_backward<Cell, T>(s, g, workspace);
    }
    bool operator==(const passes&) const = default;
};

struct setting {
    std::int64_t batch, time, units;
    bool masked;
};

// More than the rows (16 and 96) and the units (64 and 128) that are taken at a time, one row, primes; products large enough for
// threads.
constexpr setting settings[]{{101, 3, 67, true}, {1, 9, 257, false}, {3, 5, 131, true}, {37, 7, 200, false},
                             {9, 2, 512, false}, {1, 8, 128, false}, {99, 2, 200, true}};

template <class Cell, class T>
struct operands {
    tg::tensor<T> z, r, h, c;
    std::vector<std::uint8_t> mask;

    explicit operands(const setting& s)
        : z(drawn<T>({s.batch, s.time, Cell::gates * s.units}, 1, -4, 4)),
          r(drawn<T>({s.units, Cell::gates * s.units}, 2, -0.1, 0.1)),
          h(drawn<T>({s.batch, s.units}, 3)),
          c(drawn<T>({s.batch, s.units}, 4)) {
        for (std::int64_t i = 0; i < s.batch * s.time && s.masked; ++i) mask.push_back(i % 3 != 1);
    }
    passes<Cell, T> run(const auto& between) const {
        return {z, r, h, c, mask.empty() ? nullptr : reinterpret_cast<const bool*>(mask.data()), between};
    }
    passes<Cell, T> run() const {
        return run([] {});
    }
};

template <class Cell, class T>
void check_threads() {
    for (const setting& s : settings) {
        CAPTURE(s.batch);
        const operands<Cell, T> x(s);
        tg::set_thread_count(1);
        const passes<Cell, T> alone = x.run();
        for (int threads : {2, 3, 4, 7}) {
            tg::set_thread_count(threads);
            for (double seconds : {1e-9, 1e-4}) { // threads share units wherever they can, or rows alone
                tg::cpu::round_trip::assume(seconds);
                CHECK(x.run() == alone);
            }
        }
        tg::set_thread_count(0);
    }
}

} // namespace

TEST_CASE_TEMPLATE("recurrent layers: the bits do not depend on the threads", Cell, tg::cpu::lstm_cell,
                   tg::cpu::gru_cell<true>, tg::cpu::gru_cell<false>, tg::cpu::simple_rnn_cell) {
    check_threads<Cell, float>();
    check_threads<Cell, double>();
}

TEST_CASE("recurrences: who shares units depends on what a round trip takes") {
    using tg::cpu::recurrence_part;
    constexpr std::size_t small = std::size_t{1} << 18,
                          large = std::size_t{1} << 22; // bytes: 128 and 512 units of an LSTM
    const auto members = [](std::int64_t batch, std::int64_t units, std::size_t bytes, double round_trip) {
        return recurrence_part(batch, units, 64, {bytes, round_trip}, 0, 2).members;
    };
    CHECK(members(1, 128, small, 1e-7) == 2); // cores that share a cache
    CHECK(members(1, 128, small, 5e-7) == 1);
    CHECK(members(8, 128, small, 1e-7) == 2);
    CHECK(members(8, 128, small, 5e-7) == 1);
    CHECK(members(16, 128, small, 1e-7) == 1); // rows enough for both
    CHECK(members(1, 64, small, 1e-7) == 1);   // one group
    CHECK(members(16, 512, large, 1) == 2);    // no cache of one core holds it
    const recurrence_part second(8, 128, 64, {small, 5e-7}, 1, 2);
    CHECK(second.first_row == 4);
    CHECK(second.rows == 4);
    CHECK(second.first_unit == 0);
    CHECK(second.last_unit == 128);
}

TEST_CASE("what a round trip between threads takes is measured by a team") {
    using tg::cpu::round_trip;
    const support::settings_guard guard;
    tg::set_thread_count(2);
    round_trip::assume(123);
    CHECK(round_trip::seconds() == 123);
    round_trip time;
    int threads_of_team = 1;
    tg::cpu::parallel_team(true, [&](int thread, int threads) {
        if (thread == 0) threads_of_team = threads;
        time.measure(thread, threads);
    });
    if (threads_of_team > 1) { // 1e-4: the other one did not run
        CHECK(round_trip::seconds() > 0);
        CHECK(round_trip::seconds() <= 1e-4);
    } else {
        CHECK(round_trip::seconds() == 123);
    }
    round_trip::assume(1e-7);
}

TEST_CASE(
    "the units of one row are shared by two threads that hear from each other quickly, on every instruction set") {
    const support::settings_guard guard;
    tg::set_thread_count(2);
    tg::cpu::round_trip::assume(1e-9);
    const auto before = tg::cpu::active_instruction_set();
    tg::cpu::recurrent_shape<float> s{};
    s.batch = 1, s.time = 40, s.units = 128;
    for (const auto set :
         {tg::cpu::instruction_set::baseline, tg::cpu::instruction_set::avx2, tg::cpu::instruction_set::avx512}) {
        tg::cpu::set_instruction_set(set);
        tg::cpu::detail::workspace_cutter cut(nullptr);
        const tg::cpu::detail::recurrent_workspace<tg::cpu::lstm_cell, float> work(cut, s, false, 2);
        CHECK(tg::cpu::recurrence_part(s.batch, s.units, work.share, work.division, 0, 2).members == 2);
    }
    tg::cpu::set_instruction_set(before);
    tg::cpu::round_trip::assume(1e-7);
}

TEST_CASE("a recurrence whose units are not shared measures a round trip, too, or they would never be again") {
    using tg::cpu::round_trip;
    const support::settings_guard guard;
    tg::set_thread_count(2);
    int threads_of_team = 1;
    tg::cpu::parallel_team(true, [&](int thread, int threads) {
        if (thread == 0) threads_of_team = threads;
    });
    if (threads_of_team < 2) return;
    // A second is too long for units to be shared, and longer than any measurement, which gives up after 1e-4. Each pass measures.
    const operands<tg::cpu::lstm_cell, float> x({1, 40, 128, false});
    const auto is_measured = [] { return round_trip::seconds() > 0 && round_trip::seconds() <= 1e-4; };
    round_trip::assume_outdated(1);
    x.run([&] {
        CHECK(is_measured());
        round_trip::assume_outdated(1);
    });
    CHECK(is_measured());
    round_trip::assume(1e-7);
}

TEST_CASE_TEMPLATE("recurrent layers: float is near double, on every instruction set", Cell, tg::cpu::lstm_cell,
                   tg::cpu::gru_cell<true>, tg::cpu::gru_cell<false>, tg::cpu::simple_rnn_cell) {
    // Gates err by 2e-7 and sums of 512 products of order 0.05 by some 512 x 6e-8 x 0.05 = 1.5e-6 at worst; both pass through
    // at most 9 steps. Gradients sum 2048 terms of order one.
    const auto before = tg::cpu::active_instruction_set();
    for (const setting& s : settings) {
        CAPTURE(s.batch);
        const passes<Cell, double> exact = operands<Cell, double>(s).run();
        for (const auto set :
             {tg::cpu::instruction_set::baseline, tg::cpu::instruction_set::avx2, tg::cpu::instruction_set::avx512}) {
            tg::cpu::set_instruction_set(set);
            const passes<Cell, float> rounded = operands<Cell, float>(s).run();
            const auto apart = [](const std::vector<float>& a, const std::vector<double>& b) {
                double largest = 0;
                for (std::size_t i = 0; i < a.size(); ++i) {
                    const double d = std::abs(static_cast<double>(a[i]) - b[i]) / (1 + std::abs(b[i]));
                    if (!(d <= largest)) largest = d;
                }
                return largest;
            };
            CHECK(apart(rounded.h, exact.h) < 5e-6);
            CHECK(apart(rounded.c, exact.c) < 5e-6);
            CHECK(apart(rounded.dz, exact.dz) < 2e-5);
            CHECK(apart(rounded.dh0, exact.dh0) < 2e-5);
            CHECK(apart(rounded.dc0, exact.dc0) < 2e-5);
        }
        tg::cpu::set_instruction_set(before);
    }
}

TEST_CASE_TEMPLATE("the workspace is known before any address is, as when a program is planned", Cell,
                   tg::cpu::lstm_cell, tg::cpu::gru_cell<true>, tg::cpu::gru_cell<false>, tg::cpu::simple_rnn_cell) {
    const auto bytes = [](const tg::cpu::recurrent_shape<float>& s, bool backward) {
        return tg::cpu::recurrent_workspace_bytes<Cell>(s, backward, 2);
    };
    for (const setting& each : settings) {
        tg::cpu::recurrent_shape<float> planned{};
        planned.batch = each.batch, planned.time = each.time, planned.units = each.units;
        tg::cpu::recurrent_shape<float> called = planned;
        const float state = 0;
        const bool mask = true;
        called.h0 = called.c0 = called.dropped = called.bias = &state;
        called.mask = &mask;
        for (const bool backward : {false, true}) CHECK(bytes(planned, backward) == bytes(called, backward));
    }
}

TEST_CASE("lstm: the functions of float gates") {
    using namespace tg::cpu::detail;
    // Three roundings of products, one of the division and those of polynomials, of at most 6e-8 each.
    double tanh_error = 0, sigmoid_error = 0;
    for (int i = -40000; i <= 40000; ++i) {
        const float x = static_cast<float>(i) / 1600;
        const double t = std::tanh(static_cast<double>(x)), s = 1 / (1 + std::exp(-static_cast<double>(x)));
        const float y = static_cast<float>((i * 7919LL) % 40000) / 1600, z = -x / 3;
        const auto g = fast_gates(x, y, x, z);
        for (const double got : {static_cast<double>(g.g), static_cast<double>(fast_tanh(x))}) {
            CHECK(std::abs(got) <= 1);
            if (i != 0) tanh_error = std::max(tanh_error, std::abs(got - t) / std::abs(t));
        }
        for (const double got : {static_cast<double>(g.i), static_cast<double>(fast_sigmoids(x, y).z),
                                 static_cast<double>(fast_sigmoids(y, x).r)}) {
            CHECK(got >= 0);
            CHECK(got <= 1);
            sigmoid_error = std::max(sigmoid_error, std::abs(got - s) / s);
        }
    }
    CHECK(tanh_error < 5e-7);
    CHECK(sigmoid_error < 5e-7);
    // Beyond what they are made for, and what is not a number.
    const auto far = fast_gates(1e30f, -1e30f, INFINITY, -INFINITY);
    CHECK(far.i == 1);
    CHECK(far.f <= 2e-11f);
    CHECK(far.g == doctest::Approx(1).epsilon(1e-7));
    CHECK(far.o >= 0);
    CHECK(fast_sigmoids(1e30f, -1e30f).z == 1);
    CHECK(fast_sigmoids(1e30f, -INFINITY).r <= 2e-11f);
    CHECK(std::isnan(fast_sigmoids(NAN, 0).z));
    CHECK(std::isnan(fast_gates(NAN, 0, 0, 0).i));
    CHECK(std::isnan(fast_gates(0, 0, NAN, 0).g));
    CHECK(std::isnan(fast_tanh(NAN)));
}

} // namespace recurrent_test
