#define TG_SIMT
#include <simt/mutation.hpp>

#include <tapegraph/cuda/ops/recurrent/recurrence.cuh>
#include <tapegraph/ops/recurrent/cpu_gru_cell.hpp>
#include <tapegraph/ops/recurrent/cpu_simple_rnn_cell.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace gru_test {

/// The kernels of GRUs and simple RNNs on the SIMT executor: tiles, ways of running them, and
/// barriers. recurrent_test.cpp compares their results with the CPU's kernels.

namespace cuda = tapegraph::cuda;
namespace cpu = tapegraph::cpu;

namespace {

using cuda::recurrent_pass;
using cuda::recurrent_plan;
using cuda::recurrent_stage;

/// The results of both passes, concatenated.
template <class Cell, class T>
class layer {
public:
    layer(std::int64_t batch, std::int64_t time, std::int64_t units) : g{batch, time, units} {
        xz_ = numbers(batch * time * Cell::gates * units, 1.5);
        recurrent_ = numbers(units * Cell::gates * units, 1.5 / std::sqrt(double(units)));
        bias_ = numbers(units, 1), h0_ = numbers(batch * units, 1), dropped_ = numbers(batch * units, 2);
        seeds_ = numbers(batch * time * units, 1);
        mask_.resize(static_cast<std::size_t>(batch * time));
        for (std::size_t i = 0; i < mask_.size(); ++i) mask_[i] = i % 5 != 3;
    }
    std::vector<T> forward(const recurrent_plan& plan) {
        const T nan = static_cast<T>(NAN);
        h_.assign(size(g.time * g.units), nan), gates_.assign(size(g.time * Cell::kept * g.units), nan);
        cuda::recurrent_forward_operands<T> p{};
        p.xz = xz_.data(), p.recurrent = recurrent_.data(), p.bias = bias_.data();
        p.h0 = h0_.data(), p.dropped = dropped_.data(), p.mask = mask_.data();
        p.h = {h_.data(), g.time * g.units};
        if (Cell::kept > 0) p.gates = {gates_.data(), g.time * Cell::kept * g.units};
        std::vector<unsigned char> workspace(cuda::recurrent_workspace<Cell, T>(g, recurrent_pass::forward), 0xFF);
        cuda::run_recurrent_forward<Cell>(nullptr, "forward", plan, g, p, workspace.data());
        std::vector<T> all = h_;
        all.insert(all.end(), gates_.begin(), gates_.end());
        return all;
    }
    /// Runs the backward pass on the results of the last forward pass.
    std::vector<T> backward(const recurrent_plan& plan) {
        const std::int64_t record = (g.time * Cell::columns + 1) * g.units;
        std::vector<T> all(size(record), static_cast<T>(NAN));
        cuda::recurrent_backward_operands<T> p{};
        p.dh = {seeds_.data(), g.time * g.units}, p.dh_steps = static_cast<int>(g.time), p.dh_width = 1;
        p.gates = gates_.data(), p.memory = h_.data(), p.memory0 = h0_.data();
        p.recurrent = recurrent_.data(), p.dropped = dropped_.data(), p.mask = mask_.data();
        p.dz = {all.data(), record}, p.dh0 = {all.data() + record - g.units, record, 0};
        std::vector<unsigned char> workspace(cuda::recurrent_workspace<Cell, T>(g, recurrent_pass::backward), 0xFF);
        cuda::run_recurrent_backward<Cell>(nullptr, "backward", plan, g, p, workspace.data());
        return all;
    }

    cuda::recurrent_geometry g;

private:
    std::size_t size(std::int64_t of_sample) const { return static_cast<std::size_t>(g.batch * of_sample); }
    std::vector<T> numbers(std::int64_t count, double most) {
        std::vector<T> v(static_cast<std::size_t>(count));
        for (T& x : v) {
            seed_ = seed_ * 1664525u + 1013904223u;
            x = static_cast<T>(most * (static_cast<double>(seed_ >> 8) / (1 << 23) - 1));
        }
        return v;
    }

    unsigned seed_ = 1;
    std::vector<T> xz_, recurrent_, bias_, h0_, dropped_, seeds_, h_, gates_;
    std::vector<unsigned char> mask_;
};

/// Relative L2 distance, and tolerances as in lstm_reference.hpp.
template <class T>
double distance(const std::vector<T>& got, const std::vector<T>& want) {
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        const double d = double(got[i]) - double(want[i]);
        apart += d * d, size += double(want[i]) * double(want[i]);
    }
    return apart == 0 ? 0 : std::sqrt(apart / size);
}
template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;

recurrent_plan steps(bool large = false) {
    recurrent_plan p;
    p.large_tile = large;
    return p;
}
recurrent_plan tensor_steps(bool large = false, bool exact = false) {
    recurrent_plan p = steps(large);
    p.tensor = true, p.exact = exact;
    return p;
}

constexpr std::size_t shared_limit = 232448;

template <class Cell, class T>
recurrent_plan grid(const layer<Cell, T>& l, recurrent_pass pass, int block_units, int blocks) {
    recurrent_plan p;
    REQUIRE(cuda::plan_recurrent_grid<Cell, T>(p, l.g, shared_limit, pass, block_units, blocks));
    return p;
}
template <class Cell, class T>
recurrent_plan cluster(const layer<Cell, T>& l, recurrent_pass pass, int size) {
    recurrent_plan p;
    REQUIRE(cuda::plan_recurrent_clusters<Cell, T>(p, l.g, shared_limit, pass, size));
    return p;
}

/// Calls f(cell) for each cell.
template <class F>
void for_cells(const F& f) {
    f(cpu::gru_cell<true>{});
    f(cpu::gru_cell<false>{});
    f(cpu::simple_rnn_cell{});
}

} // namespace

// Both tiles add in the order of k.
TEST_CASE("GRU and simple RNN, a launch a step: both tiles give the same bits") {
    for_cells([](auto cell) {
        layer<decltype(cell), float> l(67, 2, 35);
        const auto forward = l.forward(steps()), backward = l.backward(steps());
        for (float x : forward) REQUIRE(std::abs(x) < 100); // everything is written
        for (float x : backward) REQUIRE(std::abs(x) < 1e4);
        CHECK(l.forward(steps(true)) == forward);
        CHECK(l.backward(steps(true)) == backward);
    });
}

// Bounds as in lstm_test.cpp. Backward receives the same states both times.
TEST_CASE("GRU and simple RNN on tensor cores, a launch a step: awkward sizes, both tiles") {
    const auto check = []<class Cell>(layer<Cell, float> l) {
        CAPTURE(l.g.batch);
        CAPTURE(l.g.units);
        const auto compare = [&](const std::vector<float>& want, const auto& run) {
            for (const bool large : {false, true}) {
                std::vector<float> first;
                for (simt::order o : {simt::order::forward, simt::order::greedy}) {
                    const simt::with_settings set(o);
                    simt::current_settings().truncating = true;
                    const std::vector<float> got = run(tensor_steps(large));
                    CHECK(distance(got, want) < 1e-3);
                    if (first.empty()) first = got;
                    CHECK(got == first);
                }
            }
            CHECK(distance(run(tensor_steps(false, true)), want) < tolerance<float>);
        };
        compare(l.forward(steps()), [&](const recurrent_plan& p) { return l.forward(p); });
        l.forward(steps());
        compare(l.backward(steps()), [&](const recurrent_plan& p) { return l.backward(p); });
    };
    for_cells([&](auto cell) {
        using Cell = decltype(cell);
        for (const auto& l :
             {layer<Cell, float>(1, 1, 1), layer<Cell, float>(5, 3, 7), layer<Cell, float>(17, 2, 33),
              layer<Cell, float>(40, 2, 20), layer<Cell, float>(70, 2, 16), layer<Cell, float>(2, 2, 128)})
            check(l);
    });
}

// 129 to 256 units take twice the registers for weights; above that, shared memory holds the rest.
TEST_CASE("GRU and simple RNN, all steps in one launch: splits of units and batch, places of weights") {
    const auto check = []<class Cell, class T>(layer<Cell, T> l, int clusters, int block_units, int blocks) {
        CAPTURE(l.g.batch);
        CAPTURE(l.g.units);
        const auto forward = l.forward(steps()), backward = l.backward(steps());
        const auto in_orders = [](const auto& run, const std::vector<T>& want) {
            std::vector<T> first;
            for (simt::order o : {simt::order::forward, simt::order::greedy}) {
                const simt::with_settings set(o);
                const std::vector<T> got = run();
                CHECK(distance(got, want) < tolerance<T>);
                if (first.empty()) first = got;
                CHECK(got == first);
            }
        };
        using pass = recurrent_pass;
        in_orders([&] { return l.backward(grid(l, pass::backward, block_units, blocks)); }, backward);
        in_orders([&] { return l.backward(cluster(l, pass::backward, clusters)); }, backward);
        in_orders([&] { return l.forward(grid(l, pass::forward, block_units, blocks)); }, forward);
        in_orders([&] { return l.forward(cluster(l, pass::forward, clusters)); }, forward);
    };
    for_cells([&](auto cell) {
        using Cell = decltype(cell);
        if constexpr (cuda::kernels::runs_resident<Cell>) {
            check(layer<Cell, float>(1, 1, 1), 2, 8, 1);
            check(layer<Cell, float>(9, 5, 33), 2, 32, 4); // blocks with many tiles
            check(layer<Cell, float>(33, 2, 31), 8, 8, 16);
            check(layer<Cell, float>(3, 2, 130), 16, 16, 32);
            check(layer<Cell, float>(3, 2, 290), 16, 16, 32);
        }
    });
}

TEST_CASE("GRU and simple RNN: whatever is chosen has a place for every sample and unit") {
    const auto check = []<class Cell, class T>(Cell, T, int batch, int units, int major, std::size_t shared) {
        const cuda::driver::device_properties device{"", 0, major, 0, 60, shared};
        for (recurrent_pass pass : {recurrent_pass::forward, recurrent_pass::backward}) {
            const auto p = cuda::choose_recurrence<Cell, T>({batch, 40, units}, device, pass);
            if (Cell::reset_before) CHECK(p.stage == recurrent_stage::steps);
            if (batch == 5 && units == 64 && !Cell::reset_before && major == 9 && shared > 200000)
                CHECK(p.stage == recurrent_stage::cluster);
            if (p.stage == recurrent_stage::steps) continue;
            CHECK(p.warps >= 1);
            CHECK(p.warps * 32 <= cuda::kernels::resident_most_threads<T>);
            if (pass == recurrent_pass::backward) CHECK(p.warps % Cell::columns == 0);
            CHECK(p.shared <= shared);
            CHECK(p.split.unit_blocks * p.warps * 8 / Cell::columns >= units);
            CHECK(p.parts * p.split.rows >= batch);
        }
    };
    for_cells([&](auto cell) {
        for (int units : {1, 7, 64, 129, 256, 511, 1500})
            for (int batch : {1, 5, 300})
                for (int major : {7, 8, 9})
                    for (std::size_t shared : {65536u, 232448u}) {
                        check(cell, float{}, batch, units, major, shared);
                        check(cell, double{}, batch, units, major, shared);
                    }
    });
}

TEST_CASE("GRU and simple RNN: launches of a step, and none for nothing") {
    auto& device = cuda::driver::imitation::instance();
    for_cells([&](auto cell) {
        using Cell = decltype(cell);
        const int phases = Cell::reset_before ? 2 : 1;
        layer<Cell, float> l(3, 4, 5);
        int before = device.launches;
        l.forward(steps());
        CHECK(device.launches - before == 4 * phases);
        before = device.launches;
        l.backward(steps());
        CHECK(device.launches - before == 4 * phases + 1); // the first state's
        before = device.launches;
        const auto properties = cuda::driver::properties(0);
        cuda::recurrent_forward<Cell, float>(nullptr, "forward", properties, {0, 3, 5}, {}, nullptr);
        cuda::recurrent_backward<Cell, float>(nullptr, "backward", properties, {2, 3, 0}, {}, nullptr);
        CHECK(device.launches == before);
    });
}

#ifndef SIMT_TSAN
TEST_CASE("GRU and simple RNN kernels: no barrier is there for nothing, nor a load past the cache, nor a release") {
    for_cells([](auto cell) {
        const auto check_barriers = [](layer<decltype(cell), float> l, const recurrent_plan& forward,
                                       const recurrent_plan& backward, std::size_t in_forward,
                                       std::size_t in_backward) {
            std::size_t found = 0;
            const auto want = l.forward(forward);
            CHECK(simt::unnoticed_barriers([&] { return l.forward(forward) == want; }, found) ==
                  std::vector<std::string>{});
            CHECK(found == in_forward);
            l.forward(steps());
            const auto gradients = l.backward(backward);
            CHECK(simt::unnoticed_barriers([&] { return l.backward(backward) == gradients; }, found) ==
                  std::vector<std::string>{});
            CHECK(found == in_backward);
        };
        const layer<decltype(cell), float> l(9, 3, 37); // two steps' numbers share a cache line
        check_barriers(l, steps(), steps(), 2, 2);
        // One tile of k: sums are stored where the last tile was.
        check_barriers(layer<decltype(cell), float>(9, 3, 8), tensor_steps(), tensor_steps(), 3, 3);
        if constexpr (cuda::kernels::runs_resident<decltype(cell)>) {
            constexpr bool meets = decltype(cell)::columns > 1; // the warps of a unit, backward
            check_barriers(l, grid(l, recurrent_pass::forward, 16, 9), grid(l, recurrent_pass::backward, 16, 9), 6,
                           meets ? 7 : 6);
            check_barriers(l, cluster(l, recurrent_pass::forward, 4), cluster(l, recurrent_pass::backward, 4), 2,
                           meets ? 3 : 2);
        }
    });
}

TEST_CASE("GRU and simple RNN on tensor cores: every register is where it belongs, and R ends where it ends") {
    for_cells([](auto cell) {
        layer<decltype(cell), float> l(9, 2, 37);
        const auto check_pass = [](const auto& run) {
            const auto want = run();
            const auto right = [&] { return run() == want; };
            std::size_t found = 0;
            CHECK(simt::unnoticed_swaps(right, found) == std::vector<std::string>{});
            CHECK(found == 1);
            CHECK(simt::unnoticed_ends(right, found) == std::vector<std::string>{});
            CHECK(found == 1);
        };
        check_pass([&] { return l.forward(tensor_steps()); });
        l.forward(steps()); // after everything was overwritten, restores the input of backward
        check_pass([&] { return l.backward(tensor_steps()); });
    });
}
#endif

} // namespace gru_test
