#include <support/graph_runner.hpp>

#include <tapegraph/runtime/recurrent.hpp>

#include <doctest/doctest.h>

/// The recurrence's kernels: equal bits on any number of threads, floats near doubles on every instruction set, and the
/// functions of the gates.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

/// Everything the two passes write.
template <class T>
struct passes {
    std::vector<T> h, c, gates, dz, dh0, dc0;

    passes(const tg::tensor<T>& z, const tg::tensor<T>& r, const tg::tensor<T>& h0, const tg::tensor<T>& c0,
           const bool* mask) {
        const std::int64_t batch = h0.shape()[0].value, units = h0.shape()[1].value, time = z.shape()[1].value;
        tg::cpu::lstm_shape<T> s{};
        s.batch = batch, s.time = time, s.units = units;
        s.recurrent = r.data(), s.h0 = h0.data(), s.c0 = c0.data(), s.mask = mask;
        const auto cells = static_cast<std::size_t>(batch * time * units),
                   state = static_cast<std::size_t>(batch * units);
        h = c = std::vector<T>(cells, T(NAN));
        gates = dz = std::vector<T>(4 * cells, T(NAN));
        dh0 = dc0 = std::vector<T>(state, T(NAN));
        std::vector<std::byte> memory(tg::cpu::lstm_workspace_bytes(s, true, tg::thread_count()) +
                                      tg::cpu::lstm_workspace_bytes(s, false, tg::thread_count()) + 64);
        void* const workspace =
            reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
        const std::int64_t record = time * units;
        tg::cpu::lstm_forward<T>(
            s, {z.data(), 4 * record, 4 * units},
            {{h.data(), record, units}, {c.data(), record, units}, {gates.data(), 4 * record, 4 * units}}, workspace);
        tg::cpu::lstm_gradients<T> g{};
        g.c = {c.data(), record, units}, g.gates = {gates.data(), 4 * record, 4 * units};
        g.seeds = {h.data(), record, units}, g.last_seed = time; // the gradient of sum(h^2) / 2
        g.dz = {dz.data(), 4 * record, 4 * units};
        g.dh0 = {dh0.data(), units, 0}, g.dc0 = {dc0.data(), units, 0};
        tg::cpu::lstm_backward<T>(s, g, workspace);
    }
    bool operator==(const passes&) const = default;
};

struct setting {
    std::int64_t batch, time, units;
    bool masked;
};

// More than the 96 rows and the 64 units that are taken at a time, one row, primes; products large enough for threads.
constexpr setting settings[]{
    {101, 3, 67, true}, {1, 9, 257, false}, {3, 5, 131, true}, {37, 7, 200, false}, {9, 2, 512, false}};

template <class T>
struct operands {
    tg::tensor<T> z, r, h, c;
    std::vector<std::uint8_t> mask;

    explicit operands(const setting& s)
        : z(drawn<T>({s.batch, s.time, 4 * s.units}, 1, -4, 4)),
          r(drawn<T>({s.units, 4 * s.units}, 2, -0.1, 0.1)),
          h(drawn<T>({s.batch, s.units}, 3)),
          c(drawn<T>({s.batch, s.units}, 4)) {
        for (std::int64_t i = 0; i < s.batch * s.time && s.masked; ++i) mask.push_back(i % 3 != 1);
    }
    passes<T> run() const { return {z, r, h, c, mask.empty() ? nullptr : reinterpret_cast<const bool*>(mask.data())}; }
};

} // namespace

TEST_CASE_TEMPLATE("lstm: the bits do not depend on the threads", T, float, double) {
    for (const setting& s : settings) {
        CAPTURE(s.batch);
        const operands<T> x(s);
        tg::set_thread_count(1);
        const passes<T> alone = x.run();
        for (int threads : {2, 3, 4, 7}) {
            tg::set_thread_count(threads);
            CHECK(x.run() == alone);
        }
        tg::set_thread_count(0);
    }
}

TEST_CASE("lstm: float is near double, on every instruction set") {
    // Gates err by 2e-7 and sums of 512 products of order 0.05 by some 512 x 6e-8 x 0.05 = 1.5e-6 at worst; both pass through
    // at most 9 steps. Gradients sum 2048 terms of order one.
    const auto before = tg::cpu::active_instruction_set();
    for (const setting& s : settings) {
        CAPTURE(s.batch);
        const passes<double> exact = operands<double>(s).run();
        for (const auto set :
             {tg::cpu::instruction_set::baseline, tg::cpu::instruction_set::avx2, tg::cpu::instruction_set::avx512}) {
            tg::cpu::set_instruction_set(set);
            const passes<float> rounded = operands<float>(s).run();
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

TEST_CASE("the workspace is known before any address is, as when a program is planned") {
    const auto bytes = [](const tg::cpu::lstm_shape<float>& s, bool backward) {
        return tg::cpu::lstm_workspace_bytes(s, backward, 2);
    };
    for (const setting& each : settings) {
        tg::cpu::lstm_shape<float> planned{};
        planned.batch = each.batch, planned.time = each.time, planned.units = each.units;
        tg::cpu::lstm_shape<float> called = planned;
        const float state = 0;
        const bool mask = true;
        called.h0 = called.c0 = called.dropped = &state;
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
        CHECK(g.i >= 0);
        CHECK(g.i <= 1);
        sigmoid_error = std::max(sigmoid_error, std::abs(g.i - s) / s);
    }
    CHECK(tanh_error < 5e-7);
    CHECK(sigmoid_error < 5e-7);
    // Beyond what they are made for, and what is not a number.
    const auto far = fast_gates(1e30f, -1e30f, INFINITY, -INFINITY);
    CHECK(far.i == 1);
    CHECK(far.f <= 2e-11f);
    CHECK(far.g == doctest::Approx(1).epsilon(1e-7));
    CHECK(far.o >= 0);
    CHECK(std::isnan(fast_gates(NAN, 0, 0, 0).i));
    CHECK(std::isnan(fast_gates(0, 0, NAN, 0).g));
    CHECK(std::isnan(fast_tanh(NAN)));
}
