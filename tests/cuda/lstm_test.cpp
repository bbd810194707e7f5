#define TG_SIMT
#include <simt/mutation.hpp>

#include <tapegraph/cuda/ops/recurrent/recurrence.cuh>

#include <cuda/lstm_reference.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace lstm_test {

/// The LSTM kernels on the SIMT executor, each way of running them, against loops in double
/// (lstm_reference.hpp).

namespace cuda = tapegraph::cuda;
namespace kernels = tapegraph::cuda::kernels;

namespace {

using namespace lstm_reference; // NOLINT

using cuda::recurrent_pass;
using cuda::recurrent_plan;
using cuda::recurrent_stage;

template <class T>
bool same_bits(const results<T>& a, const results<T>& b) {
    const auto same = [](const std::vector<T>& x, const std::vector<T>& y) {
        return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
    };
    return same(a.h, b.h) && same(a.c, b.c) && same(a.gates, b.gates) && same(a.dz, b.dz) && same(a.dh0, b.dh0) &&
           same(a.dc0, b.dc0);
}

constexpr std::size_t shared_limit = 232448;

recurrent_plan steps(bool large = false) {
    recurrent_plan p;
    p.large_tile = large;
    return p;
}
template <class T>
recurrent_plan grid(const recurrent_geometry& g, recurrent_pass pass, int block_units, int blocks) {
    recurrent_plan p;
    REQUIRE(cuda::plan_recurrent_grid<lstm_cell, T>(p, g, shared_limit, pass, block_units, blocks));
    return p;
}
template <class T>
recurrent_plan cluster(const recurrent_geometry& g, recurrent_pass pass, int size) {
    recurrent_plan p;
    REQUIRE(cuda::plan_recurrent_clusters<lstm_cell, T>(p, g, shared_limit, pass, size));
    return p;
}

/// Runs a case in two orders of threads: close to the reference, and the same bits in both.
template <class T>
void check(const layer<T>& l, const results<double>& want, const recurrent_plan& forward,
           const recurrent_plan& backward) {
    CAPTURE(l.batch);
    CAPTURE(l.time);
    CAPTURE(l.units);
    CAPTURE(static_cast<int>(forward.stage));
    results<T> first;
    for (simt::order o : {simt::order::forward, simt::order::greedy}) {
        const simt::with_settings set(o);
        const results<T> got = run(l, forward, backward);
        CHECK(distance(got, want) < tolerance<T>);
        if (o == simt::order::forward)
            first = got;
        else
            CHECK(same_bits(first, got));
    }
}
template <class T>
void check_grid(const layer<T>& l, const results<double>& want, int block_units, int blocks) {
    check(l, want, grid<T>(l.g, recurrent_pass::forward, block_units, blocks),
          grid<T>(l.g, recurrent_pass::backward, block_units, blocks));
}
template <class T>
void check_cluster(const layer<T>& l, const results<double>& want, int size) {
    check(l, want, cluster<T>(l.g, recurrent_pass::forward, size), cluster<T>(l.g, recurrent_pass::backward, size));
}

} // namespace

// The reference's gradients against differences of L, the sum of what gradients are given for.
TEST_CASE("LSTM: the reference's gradients are those of its values") {
    for (const bool hard : {false, true}) {
        layer<double> l(2, 3, 3, {.masked = true, .dropped = hard, .of_first = true, .relu_and_hard = hard});
        for (double& x : l.xz)
            if (std::isnan(x)) x = 0.25; // so that differences are defined: their gradient is 0
        const auto loss = [&] {
            const results<double> r = reference(l);
            double sum = 0;
            for (std::size_t i = 0; i < r.h.size(); ++i) sum += r.h[i] * l.dh[i];
            for (std::size_t b = 0; b < l.batch; ++b)
                for (std::size_t u = 0; u < l.units; ++u) {
                    const std::size_t at = l.line(b, l.time - 1) * l.units + u, state = b * l.units + u;
                    sum += r.h[at] * l.dh_last[state] + r.c[at] * l.dc_last[state] + l.h0[state] * l.dh_first[state];
                }
            return sum;
        };
        const results<double> r = reference(l);
        const auto compare = [&](std::vector<double>& x, const std::vector<double>& gradient) {
            for (std::size_t i = 0; i < x.size(); ++i) {
                const double kept = x[i], by = 1e-5;
                x[i] = kept + by;
                const double above = loss();
                x[i] = kept - by;
                const double below = loss();
                x[i] = kept;
                CHECK(std::abs((above - below) / (2 * by) - gradient[i]) < 1e-8); // rounding 1e-11, curvature 1e-10
            }
        };
        compare(l.xz, r.dz);
        compare(l.h0, r.dh0);
        compare(l.c0, r.dc0);
    }
}

#ifndef SIMT_TSAN // it takes a hundred times as long; the cases below have every kind of exchange, too
TEST_CASE("LSTM, a launch a step: awkward sizes, both tiles") {
    for (const auto& l : {layer<float>(1, 1, 1), layer<float>(2, 3, 7), layer<float>(7, 2, 33, {.masked = true}),
                          layer<float>(33, 2, 31), layer<float>(9, 3, 64, {.reverse = true, .masked = true}),
                          layer<float>(2, 7, 65), layer<float>(7, 2, 128)}) {
        const auto want = reference(l);
        check(l, want, steps(), steps());
        check(l, want, steps(true), steps(true));
    }
}

TEST_CASE("LSTM, one grid: awkward sizes, splits of units and batch") {
    for (const auto& l : {layer<float>(1, 1, 1), layer<float>(2, 3, 7), layer<float>(9, 3, 8, {.masked = true}),
                          layer<float>(7, 2, 31), layer<float>(33, 2, 33, {.reverse = true}), layer<float>(2, 7, 65)}) {
        const auto want = reference(l);
        check_grid(l, want, 32, 4);                    // blocks with many tiles
        if (l.units <= 33) check_grid(l, want, 8, 16); // many blocks
    }
    const layer<float> large(9, 2, 128, {.masked = true});
    check_grid(large, reference(large), 32, 8);
    const layer<float> thinned(9, 3, 33, {.masked = true, .dropped = true, .of_first = true});
    check_grid(thinned, reference(thinned), 8, 16);
}

TEST_CASE("LSTM, clusters: awkward sizes, clusters of 2 to 16") {
    for (const auto& l : {layer<float>(1, 1, 1), layer<float>(2, 3, 7), layer<float>(9, 3, 8, {.masked = true}),
                          layer<float>(7, 2, 31), layer<float>(33, 2, 33, {.reverse = true}), layer<float>(2, 7, 65)}) {
        const auto want = reference(l);
        check_cluster(l, want, 8);
        if (l.units <= 31) check_cluster(l, want, 2);
        if (l.units >= 31 && l.batch < 33) check_cluster(l, want, 16);
    }
    const layer<float> large(7, 2, 128, {.masked = true});
    check_cluster(large, reference(large), 8);
    const layer<float> thinned(9, 3, 33, {.masked = true, .dropped = true, .of_first = true});
    check_cluster(thinned, reference(thinned), 4);
}

// More units than registers hold weights for: 129 to 256 take twice the registers; above that,
// shared memory holds the rest.
TEST_CASE("LSTM: weights in registers and in shared memory") {
    for (int units : {130, 290}) {
        const layer<float> l(3, 2, units);
        const auto want = reference(l);
        const auto plan = cluster<float>(l.g, recurrent_pass::forward, 16);
        CHECK(plan.more_resident);
        CHECK((plan.split.padded > 8 * 32) == (units > 256));
        check_cluster(l, want, 16);
        check_grid(l, want, 16, 32);
    }
}

TEST_CASE("LSTM in double") {
    for (const auto& l : {layer<double>(2, 3, 7, {.masked = true}), layer<double>(7, 2, 33, {.reverse = true}),
                          layer<double>(2, 2, 65), layer<double>(1, 2, 130)}) {
        const auto want = reference(l);
        check(l, want, steps(), steps(true));
        check_grid(l, want, 16, 12);
        check_cluster(l, want, l.units > 64 ? 16 : 4);
    }
}

TEST_CASE("LSTM: what may be absent, and each direction, is the same in every way of running") {
    for (int bits = 0; bits < 128; ++bits) {
        const layer<double> l(5, 3, 9,
                              {.reverse = (bits & 1) != 0,
                               .first_states = (bits & 2) != 0,
                               .masked = (bits & 4) != 0,
                               .every_dh = (bits & 8) != 0,
                               .last_gradients = (bits & 16) != 0,
                               .dropped = (bits & 32) != 0,
                               .of_first = (bits & 64) != 0},
                              static_cast<unsigned>(bits));
        const auto want = reference(l);
        // Without any gradient from above the gradients are zero.
        if ((bits & 24) == 0)
            for (double d : want.dz) REQUIRE(d == 0);
        CHECK(distance(run(l, steps(), steps()), want) < tolerance<double>);
        CHECK(distance(run(l, grid<double>(l.g, recurrent_pass::forward, 8, 2),
                           grid<double>(l.g, recurrent_pass::backward, 8, 2)),
                       want) < tolerance<double>);
        CHECK(distance(run(l, cluster<double>(l.g, recurrent_pass::forward, 2),
                           cluster<double>(l.g, recurrent_pass::backward, 2)),
                       want) < tolerance<double>);
    }
}
#endif

TEST_CASE("LSTM: other activations") {
    const layer<double> l(5, 3, 9, {.masked = true, .relu_and_hard = true});
    const auto want = reference(l);
    check(l, want, steps(), steps());
    check_grid(l, want, 8, 4);
    check_cluster(l, want, 2);
}

TEST_CASE("LSTM: two rows of h and one of c are enough") {
    for (const bool masked : {false, true}) {
        const layer<double> l(9, 5, 9, {.masked = masked, .dropped = masked});
        const auto want = reference(l);
        for (const recurrent_plan& plan : {steps(), grid<double>(l.g, recurrent_pass::forward, 8, 2),
                                           cluster<double>(l.g, recurrent_pass::forward, 2)}) {
            results<double> r;
            auto p = forward_operands(l, r);
            const std::int64_t units = l.g.units;
            std::vector<double> h(l.batch * 2 * l.units, NAN), c(l.batch * l.units, NAN);
            p.h = {h.data(), 2 * units, 1}, p.c = {c.data(), units, 0}, p.gates = {};
            scratch workspace(cuda::recurrent_workspace<lstm_cell, double>(l.g, recurrent_pass::forward));
            cuda::run_recurrent_forward<lstm_cell>(nullptr, "lstm", plan, l.g, p, workspace.at);
            for (std::size_t b = 0; b < l.batch; ++b)
                for (std::size_t u = 0; u < l.units; ++u) {
                    const std::size_t last = l.line(b, l.time - 1) * l.units + u;
                    // Of five steps the last is even. Values are below 1: `distance`, for one value.
                    CHECK(std::abs(h[b * 2 * l.units + u] - want.h[last]) < tolerance<double>);
                    CHECK(std::abs(c[b * l.units + u] - want.c[last]) < tolerance<double> * 5);
                }
        }
    }
}

TEST_CASE("LSTM: gates in the place of xz, or not kept; first gradients not wanted") {
    const layer<float> l(5, 3, 9, {.masked = true});
    const auto plans = {steps(), grid<float>(l.g, recurrent_pass::forward, 8, 2),
                        cluster<float>(l.g, recurrent_pass::forward, 2)};
    for (const recurrent_plan& plan : plans) {
        scratch workspace(cuda::recurrent_workspace<lstm_cell, float>(l.g, recurrent_pass::forward));
        results<float> apart, r;
        cuda::run_recurrent_forward<lstm_cell>(nullptr, "lstm", plan, l.g, forward_operands(l, apart), workspace.at);
        auto p = forward_operands(l, r);
        std::vector<float> both = l.xz;
        p.xz = p.gates.data = both.data();
        cuda::run_recurrent_forward<lstm_cell>(nullptr, "lstm", plan, l.g, p, workspace.at);
        CHECK(r.h == apart.h);
        CHECK(r.c == apart.c);
        CHECK(std::memcmp(both.data(), apart.gates.data(), both.size() * sizeof(float)) == 0);
        auto q = forward_operands(l, r);
        q.gates = {};
        cuda::run_recurrent_forward<lstm_cell>(nullptr, "lstm", plan, l.g, q, workspace.at);
        CHECK(r.h == apart.h);
    }
    for (const recurrent_plan& plan : {steps(), grid<float>(l.g, recurrent_pass::backward, 8, 2),
                                       cluster<float>(l.g, recurrent_pass::backward, 2)}) {
        results<float> r;
        scratch workspace(cuda::recurrent_workspace<lstm_cell, float>(l.g, recurrent_pass::backward));
        cuda::run_recurrent_forward<lstm_cell>(nullptr, "lstm", steps(), l.g, forward_operands(l, r), workspace.at);
        auto p = backward_operands(l, r);
        p.dh0 = p.dc0 = {};
        cuda::run_recurrent_backward<lstm_cell>(nullptr, "lstm", plan, l.g, p, workspace.at);
        CHECK(distance(r.dz, reference(l).dz) < tolerance<float>);
    }
}

namespace {

recurrent_plan tensor_steps(bool large = false, bool exact = false) {
    recurrent_plan p;
    p.tensor = true, p.large_tile = large, p.exact = exact;
    return p;
}
/// As `check`, on tensor cores that truncate: the distance of a plan's results from the reference.
template <class T>
double distance_on_tensor_cores(const layer<T>& l, const results<double>& want, const recurrent_plan& plan) {
    results<T> first;
    for (simt::order o : {simt::order::forward, simt::order::greedy}) {
        const simt::with_settings set(o);
        simt::current_settings().truncating = true;
        const results<T> got = run(l, plan, plan);
        if (o == simt::order::forward)
            first = got;
        else
            CHECK(same_bits(first, got));
    }
    return distance(first, want);
}

} // namespace

// TF32 rounds each factor by up to 2^-12 of it (2^-11 = 4.9e-4 where ties go away from zero), so a
// product by up to twice that, with both signs. Gates, whose slopes are at most 1, are then off by
// at most the same fraction of a sum's terms, and gradients, products of them, by a few times as
// much. tf32x3 omits products of two small parts, 2^-22 of a term, and what is truncated.
TEST_CASE("LSTM on tensor cores, a launch a step: awkward sizes, both tiles") {
    const options states{.last_gradients = true, .of_first = true};
    for (const auto& l : {layer<float>(1, 1, 1), layer<float>(2, 3, 7), layer<float>(17, 2, 33, {.masked = true}),
                          layer<float>(5, 3, 16, {.reverse = true, .masked = true, .dropped = true, .of_first = true}),
                          layer<float>(40, 2, 20, {.first_states = false}), layer<float>(70, 1, 12, states),
                          layer<float>(3, 2, 128), layer<float>(2, 2, 37, {.dropped = true, .relu_and_hard = true})}) {
        CAPTURE(l.batch);
        CAPTURE(l.units);
        const auto want = reference(l);
        CHECK(distance_on_tensor_cores(l, want, tensor_steps()) < 1e-3);
        CHECK(distance_on_tensor_cores(l, want, tensor_steps(true)) < 1e-3);
        CHECK(distance_on_tensor_cores(l, want, tensor_steps(false, true)) < tolerance<float>);
    }
    const layer<float> l(7, 4, 65);
    CHECK(distance_on_tensor_cores(l, reference(l), tensor_steps()) > tolerance<float>); // the test did measure TF32
}

// Sums of more terms than a chain has: those of a gradient of 1,030 units.
TEST_CASE("LSTM on tensor cores: R that begins between copies, and long chains") {
    layer<float> l(3, 2, 8);
    const results<float> exact = run(l, steps(), steps());
    CHECK(!same_bits(run(l, tensor_steps(), tensor_steps()), exact));
    std::vector<float> moved(l.recurrent.size() + 1);
    std::copy(l.recurrent.begin(), l.recurrent.end(), moved.begin() + 1);
    const auto place = reinterpret_cast<std::uintptr_t>(moved.data()) % 16;
    REQUIRE(place == 0);
    results<float> r;
    const std::size_t size = cuda::recurrent_workspace<lstm_cell, float>(l.g, recurrent_pass::backward);
    scratch workspace(size);
    auto p = forward_operands(l, r);
    p.recurrent = moved.data() + 1;
    cuda::run_recurrent_forward<lstm_cell>(nullptr, "lstm", tensor_steps(), l.g, p, workspace.at);
    auto q = backward_operands(l, r);
    q.recurrent = moved.data() + 1;
    cuda::run_recurrent_backward<lstm_cell>(nullptr, "lstm", tensor_steps(), l.g, q, workspace.at);
    CHECK(same_bits(r, exact));
    const layer<float> wide(1, 1, 518);
    CHECK(distance_on_tensor_cores(wide, reference(wide), tensor_steps()) < 1e-3);
}

#ifndef SIMT_TSAN
TEST_CASE("LSTM kernels: no barrier is there for nothing, nor a load past the cache, nor a release") {
    // Each pass by itself: backward receives what forward left.
    const auto check_barriers = [](const layer<float>& l, const recurrent_plan& forward, const recurrent_plan& backward,
                                   std::size_t in_forward, std::size_t in_backward, double bound = 1e-5) {
        const auto want = reference(l);
        results<float> r;
        scratch workspace(cuda::recurrent_workspace<lstm_cell, float>(l.g, recurrent_pass::backward));
        std::size_t found = 0;
        CHECK(simt::unnoticed_barriers(
                  [&] {
                      cuda::run_recurrent_forward<lstm_cell>(nullptr, "lstm", forward, l.g, forward_operands(l, r),
                                                             workspace.at);
                      return distance(r.h, want.h) < bound && distance(r.c, want.c) < bound;
                  },
                  found) == std::vector<std::string>{});
        CHECK(found == in_forward);
        cuda::run_recurrent_forward<lstm_cell>(nullptr, "lstm", steps(), l.g, forward_operands(l, r), workspace.at);
        CHECK(simt::unnoticed_barriers(
                  [&] {
                      cuda::run_recurrent_backward<lstm_cell>(nullptr, "lstm", backward, l.g, backward_operands(l, r),
                                                              workspace.at);
                      return distance(r.dz, want.dz) < bound && distance(r.dh0, want.dh0) < bound;
                  },
                  found) == std::vector<std::string>{});
        CHECK(found == in_backward);
    };
    const layer<float> l(9, 4, 37); // two steps' numbers share a cache line
    check_barriers(l, steps(), steps(), 2, 2);
    // One tile of k: sums are stored where the last tile was.
    check_barriers(layer<float>(9, 4, 8), tensor_steps(), tensor_steps(), 3, 3, 1e-3);
    check_barriers(l, grid<float>(l.g, recurrent_pass::forward, 16, 9),
                   grid<float>(l.g, recurrent_pass::backward, 16, 9), 6, 7);
    check_barriers(l, cluster<float>(l.g, recurrent_pass::forward, 4), cluster<float>(l.g, recurrent_pass::backward, 4),
                   2, 3);
}

TEST_CASE("LSTM on tensor cores: every register of a fragment is where it belongs, and R ends where it ends") {
    const layer<float> l(9, 2, 9); // forward 9 of 32 terms, backward 48 of 64
    const auto check_pass = [&](const recurrent_plan& forward, const recurrent_plan& backward) {
        const results<float> want = run(l, forward, backward);
        const auto right = [&] { return same_bits(run(l, forward, backward), want); };
        std::size_t found = 0;
        CHECK(simt::unnoticed_swaps(right, found) == std::vector<std::string>{});
        CHECK(found == 1);
        CHECK(simt::unnoticed_ends(right, found) == std::vector<std::string>{});
        CHECK(found == 1);
    };
    check_pass(tensor_steps(), steps());
    check_pass(steps(), tensor_steps());
}
#endif

} // namespace lstm_test
