#define TG_SIMT
#include <simt/mutation.hpp>

#include <tapegraph/cuda/lstm.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

/// The LSTM kernels on the SIMT executor, each way of running them, against loops in double written down here.
///
/// Tolerances are relative L2 errors. A state is the sum of up to 128 products behind functions whose slopes are at most 1,
/// and the gates forget errors of earlier steps: some units of the type's rounding (6e-8 and 1.1e-16) times the root of
/// the sum's length, far below 1e-5 and 1e-12, whatever the number of steps.

namespace tg = tapegraph;
namespace cuda = tapegraph::cuda;
namespace kernels = tapegraph::cuda::kernels;

namespace {

using cuda::lstm_geometry;
using cuda::lstm_pass;
using cuda::lstm_plan;
using cuda::lstm_stage;
using hard_lstm_activations = kernels::lstm_activations<kernels::relu_activation, kernels::hard_sigmoid_activation>;

struct activation_functions {
    double (*cell)(double), (*cell_slope)(double), (*gate)(double), (*gate_slope)(double); // slopes by their results
};
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double hyperbolic_tangent(double x) { return std::tanh(x); }
const activation_functions usual{hyperbolic_tangent, [](double y) { return 1 - y * y; }, sigmoid,
                                 [](double y) { return y * (1 - y); }};
const activation_functions hard{[](double x) { return x <= 0 ? 0 : x; }, [](double y) { return y > 0 ? 1.0 : 0.0; },
                                [](double x) { return x <= -3  ? 0
                                                      : x >= 3 ? 1
                                                               : (x + 3) / 6; },
                                [](double y) { return y > 0 && y < 1 ? 1.0 / 6 : 0.0; }};

/// What a case has besides its extents.
struct options {
    bool reverse = false, first_states = true, masked = false, every_dh = true, last_gradients = true;
};

template <class T>
struct layer {
    lstm_geometry g;
    options o;
    std::size_t batch, time, units;
    std::vector<T> xz, recurrent, h0, c0, dh, dh_last, dc_last;
    std::vector<unsigned char> mask;

    layer(int batch_, int time_, int units_, options o_ = {}, unsigned seed = 1)
        : g{batch_, time_, units_, o_.reverse},
          o(o_),
          batch(std::size_t(batch_)),
          time(std::size_t(time_)),
          units(std::size_t(units_)) {
        const auto numbers = [&](std::size_t count, double most) {
            std::vector<T> v(count);
            for (T& x : v) {
                seed = seed * 1664525u + 1013904223u;
                x = static_cast<T>(most * (static_cast<double>(seed >> 8) / (1 << 23) - 1));
            }
            return v;
        };
        xz = numbers(batch * time * 4 * units, 1.5);
        recurrent = numbers(units * 4 * units, 1.5 / std::sqrt(double(units)));
        h0 = numbers(batch * units, 1), c0 = numbers(batch * units, 1);
        dh = numbers(batch * time * units, 1);
        dh_last = numbers(batch * units, 1), dc_last = numbers(batch * units, 1);
        mask.assign(batch * time, 1);
        if (!o.masked) return;
        for (std::size_t i = 0; i < mask.size(); ++i) {
            seed = seed * 1664525u + 1013904223u;
            mask[i] = static_cast<unsigned char>(seed >> 24 & 6); // 0 in one of four, otherwise any number
            if (mask[i] == 0)                                     // what is masked is never looked at
                for (std::size_t j = 0; j < 4 * units; ++j) xz[i * 4 * units + j] = static_cast<T>(NAN);
        }
    }
    std::size_t line(std::size_t b, std::size_t step) const { return b * time + (o.reverse ? time - 1 - step : step); }
    bool counts(std::size_t line) const { return mask[line] != 0; }
};

template <class T>
struct results {
    std::vector<T> h, c, gates, dz, dh0, dc0;
};

template <class T>
results<double> reference(const layer<T>& l, const activation_functions& f = usual) {
    const std::size_t n = l.units, states = l.batch * n, lines = l.batch * l.time;
    results<double> r;
    r.h.assign(lines * n, 0), r.c = r.h;
    r.gates.assign(lines * 4 * n, 0), r.dz = r.gates;
    r.dh0.assign(states, 0), r.dc0 = r.dh0;
    const auto before = [&](const std::vector<double>& all, const std::vector<T>& first, std::size_t b,
                            std::size_t step, std::size_t u) {
        if (step > 0) return all[l.line(b, step - 1) * n + u];
        return l.o.first_states ? double(first[b * n + u]) : 0.0;
    };
    for (std::size_t b = 0; b < l.batch; ++b)
        for (std::size_t step = 0; step < l.time; ++step)
            for (std::size_t u = 0; u < n; ++u) {
                const std::size_t line = l.line(b, step);
                double* const y = &r.gates[line * 4 * n + u];
                for (std::size_t gate = 0; gate < 4; ++gate) {
                    double z = l.xz[line * 4 * n + gate * n + u];
                    for (std::size_t k = 0; k < n; ++k)
                        z += before(r.h, l.h0, b, step, k) * l.recurrent[k * 4 * n + gate * n + u];
                    y[gate * n] = gate == 2 ? f.cell(z) : f.gate(z);
                }
                const double c_before = before(r.c, l.c0, b, step, u);
                const double c = y[n] * c_before + y[0] * y[2 * n];
                r.c[line * n + u] = l.counts(line) ? c : c_before;
                r.h[line * n + u] = l.counts(line) ? y[3 * n] * f.cell(c) : before(r.h, l.h0, b, step, u);
            }
    for (std::size_t b = 0; b < l.batch; ++b) {
        std::vector<double> dh(n), dc(n);
        for (std::size_t u = 0; u < n && l.o.last_gradients; ++u)
            dh[u] = l.dh_last[b * n + u], dc[u] = l.dc_last[b * n + u];
        for (std::size_t step = l.time; step-- > 0;) {
            const std::size_t line = l.line(b, step);
            for (std::size_t u = 0; u < n && l.o.every_dh; ++u) dh[u] += l.dh[line * n + u];
            if (!l.counts(line)) continue;
            std::vector<double> dh_before(n);
            for (std::size_t u = 0; u < n; ++u) {
                const double* const y = &r.gates[line * 4 * n + u];
                double* const dz = &r.dz[line * 4 * n + u];
                const double shown = f.cell(r.c[line * n + u]);
                const double d = dc[u] + dh[u] * y[3 * n] * f.cell_slope(shown);
                dz[0] = d * y[2 * n] * f.gate_slope(y[0]);
                dz[n] = d * before(r.c, l.c0, b, step, u) * f.gate_slope(y[n]);
                dz[2 * n] = d * y[0] * f.cell_slope(y[2 * n]);
                dz[3 * n] = dh[u] * shown * f.gate_slope(y[3 * n]);
                dc[u] = d * y[n];
            }
            for (std::size_t u = 0; u < n; ++u)
                for (std::size_t j = 0; j < 4 * n; ++j)
                    dh_before[u] += r.dz[line * 4 * n + j] * l.recurrent[u * 4 * n + j];
            dh = dh_before;
        }
        for (std::size_t u = 0; u < n; ++u) r.dh0[b * n + u] = dh[u], r.dc0[b * n + u] = dc[u];
    }
    return r;
}

/// Scratch memory as it comes: of exactly the promised size, and full of ones.
struct scratch {
    std::vector<unsigned char> bytes;
    unsigned char* at;
    explicit scratch(std::size_t size) : bytes(size + 128, 0xFF) {
        at = reinterpret_cast<unsigned char*>((reinterpret_cast<std::uintptr_t>(bytes.data()) + 127) / 128 * 128);
    }
    bool intact(std::size_t size) const {
        for (const unsigned char* p = at + size; p < bytes.data() + bytes.size(); ++p)
            if (*p != 0xFF) return false;
        return true;
    }
};

template <class T>
cuda::lstm_forward_operands<T> forward_operands(const layer<T>& l, results<T>& r) {
    const T nan = static_cast<T>(NAN);
    r.h.assign(l.batch * l.time * l.units, nan), r.c = r.h;
    r.gates.assign(l.batch * l.time * 4 * l.units, nan);
    return {l.xz.data(),
            l.recurrent.data(),
            l.o.first_states ? l.h0.data() : nullptr,
            l.o.first_states ? l.c0.data() : nullptr,
            l.o.masked ? l.mask.data() : nullptr,
            r.h.data(),
            r.c.data(),
            r.gates.data()};
}
template <class T>
cuda::lstm_backward_operands<T> backward_operands(const layer<T>& l, results<T>& r) {
    const T nan = static_cast<T>(NAN);
    r.dz.assign(l.batch * l.time * 4 * l.units, nan);
    r.dh0.assign(l.batch * l.units, nan), r.dc0 = r.dh0;
    return {l.o.every_dh ? l.dh.data() : nullptr,
            l.o.last_gradients ? l.dh_last.data() : nullptr,
            l.o.last_gradients ? l.dc_last.data() : nullptr,
            r.gates.data(),
            r.c.data(),
            l.o.first_states ? l.c0.data() : nullptr,
            l.recurrent.data(),
            l.o.masked ? l.mask.data() : nullptr,
            r.dz.data(),
            r.dh0.data(),
            r.dc0.data(),
            nullptr,
            nullptr};
}

/// Both passes, each by its plan.
template <class T, class Activations = kernels::usual_lstm_activations>
results<T> run(const layer<T>& l, const lstm_plan& forward, const lstm_plan& backward) {
    results<T> r;
    const std::size_t size = cuda::lstm_workspace<T>(l.g, lstm_pass::backward);
    scratch workspace(size);
    cuda::run_lstm_forward<T, Activations>(nullptr, forward, l.g, forward_operands(l, r), workspace.at);
    cuda::run_lstm_backward<T, Activations>(nullptr, backward, l.g, backward_operands(l, r), workspace.at);
    CHECK(workspace.intact(size));
    return r;
}

double distance(const auto& got, const std::vector<double>& want) {
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        if (std::isnan(want[i])) continue; // a masked step's gates
        const double d = got[i] - want[i];
        apart += d * d, size += want[i] * want[i];
    }
    return apart == 0 ? 0 : std::sqrt(apart / size);
}
template <class T>
double distance(const results<T>& got, const results<double>& want) {
    double most = 0;
    for (auto member : {0, 1, 2, 3, 4, 5}) {
        const std::vector<T>* const g[]{&got.h, &got.c, &got.gates, &got.dz, &got.dh0, &got.dc0};
        const std::vector<double>* const w[]{&want.h, &want.c, &want.gates, &want.dz, &want.dh0, &want.dc0};
        const double d = distance(*g[member], *w[member]);
        if (std::isnan(d)) return d;
        most = std::max(most, d);
    }
    return most;
}
template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;

template <class T>
bool same_bits(const results<T>& a, const results<T>& b) {
    const auto same = [](const std::vector<T>& x, const std::vector<T>& y) {
        return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
    };
    return same(a.h, b.h) && same(a.c, b.c) && same(a.gates, b.gates) && same(a.dz, b.dz) && same(a.dh0, b.dh0) &&
           same(a.dc0, b.dc0);
}

constexpr std::size_t shared_limit = 232448;

lstm_plan steps(bool large = false) {
    lstm_plan p;
    p.large_tile = large;
    return p;
}
template <class T>
lstm_plan grid(const lstm_geometry& g, lstm_pass pass, int block_units, int blocks) {
    lstm_plan p;
    REQUIRE(cuda::plan_lstm_grid<T>(p, g, shared_limit, pass, block_units, blocks));
    return p;
}
template <class T>
lstm_plan cluster(const lstm_geometry& g, lstm_pass pass, int size) {
    lstm_plan p;
    REQUIRE(cuda::plan_lstm_clusters<T>(p, g, shared_limit, pass, size));
    return p;
}

/// A case in two orders of threads: near the reference, and the same bits in both.
template <class T, class Activations = kernels::usual_lstm_activations>
void check(const layer<T>& l, const results<double>& want, const lstm_plan& forward, const lstm_plan& backward) {
    CAPTURE(l.batch);
    CAPTURE(l.time);
    CAPTURE(l.units);
    CAPTURE(static_cast<int>(forward.stage));
    results<T> first;
    for (simt::order o : {simt::order::forward, simt::order::greedy}) {
        const simt::with_settings set(o);
        const results<T> got = run<T, Activations>(l, forward, backward);
        CHECK(distance(got, want) < tolerance<T>);
        if (o == simt::order::forward)
            first = got;
        else
            CHECK(same_bits(first, got));
    }
}
template <class T>
void check_grid(const layer<T>& l, const results<double>& want, int block_units, int blocks) {
    check(l, want, grid<T>(l.g, lstm_pass::forward, block_units, blocks),
          grid<T>(l.g, lstm_pass::backward, block_units, blocks));
}
template <class T>
void check_cluster(const layer<T>& l, const results<double>& want, int size) {
    check(l, want, cluster<T>(l.g, lstm_pass::forward, size), cluster<T>(l.g, lstm_pass::backward, size));
}

} // namespace

// The reference's gradients against differences of its own values: L = sum of all that gradients are given for.
TEST_CASE("LSTM: the reference's gradients are those of its values") {
    for (const activation_functions& f : {usual, hard}) {
        layer<double> l(2, 3, 3, {.masked = true});
        for (double& x : l.xz)
            if (std::isnan(x)) x = 0.25; // so that differences are defined: their gradient is 0
        const auto loss = [&] {
            const results<double> r = reference(l, f);
            double sum = 0;
            for (std::size_t i = 0; i < r.h.size(); ++i) sum += r.h[i] * l.dh[i];
            for (std::size_t b = 0; b < l.batch; ++b)
                for (std::size_t u = 0; u < l.units; ++u) {
                    const std::size_t at = l.line(b, l.time - 1) * l.units + u, state = b * l.units + u;
                    sum += r.h[at] * l.dh_last[state] + r.c[at] * l.dc_last[state];
                }
            return sum;
        };
        const results<double> r = reference(l, f);
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
}

TEST_CASE("LSTM, clusters: awkward sizes, clusters of 1 to 16") {
    for (const auto& l : {layer<float>(1, 1, 1), layer<float>(2, 3, 7), layer<float>(9, 3, 8, {.masked = true}),
                          layer<float>(7, 2, 31), layer<float>(33, 2, 33, {.reverse = true}), layer<float>(2, 7, 65)}) {
        const auto want = reference(l);
        check_cluster(l, want, 8);
        if (l.units <= 31) check_cluster(l, want, 1);
        if (l.units >= 31 && l.batch < 33) check_cluster(l, want, 16);
    }
    const layer<float> large(7, 2, 128, {.masked = true});
    check_cluster(large, reference(large), 8);
}

// More units than registers hold weights for: 129 to 256 take twice the registers, above that shared memory has the rest.
TEST_CASE("LSTM: weights in registers and in shared memory") {
    for (int units : {130, 290}) {
        const layer<float> l(3, 2, units);
        const auto want = reference(l);
        const auto plan = cluster<float>(l.g, lstm_pass::forward, 16);
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
    for (int bits = 0; bits < 32; ++bits) {
        const layer<double> l(5, 3, 9,
                              {.reverse = (bits & 1) != 0,
                               .first_states = (bits & 2) != 0,
                               .masked = (bits & 4) != 0,
                               .every_dh = (bits & 8) != 0,
                               .last_gradients = (bits & 16) != 0},
                              static_cast<unsigned>(bits));
        const auto want = reference(l);
        // Without any gradient from above there is none.
        if ((bits & 24) == 0)
            for (double d : want.dz) REQUIRE(d == 0);
        CHECK(distance(run(l, steps(), steps()), want) < tolerance<double>);
        CHECK(
            distance(run(l, grid<double>(l.g, lstm_pass::forward, 8, 2), grid<double>(l.g, lstm_pass::backward, 8, 2)),
                     want) < tolerance<double>);
        CHECK(
            distance(run(l, cluster<double>(l.g, lstm_pass::forward, 2), cluster<double>(l.g, lstm_pass::backward, 2)),
                     want) < tolerance<double>);
    }
}

TEST_CASE("LSTM: other activations") {
    const layer<double> l(5, 3, 9, {.masked = true});
    const auto want = reference(l, hard);
    check<double, hard_lstm_activations>(l, want, steps(), steps());
    check<double, hard_lstm_activations>(l, want, grid<double>(l.g, lstm_pass::forward, 8, 4),
                                         grid<double>(l.g, lstm_pass::backward, 8, 4));
    check<double, hard_lstm_activations>(l, want, cluster<double>(l.g, lstm_pass::forward, 2),
                                         cluster<double>(l.g, lstm_pass::backward, 2));
}

TEST_CASE("LSTM: gates in the place of xz, or not kept; first gradients not wanted") {
    const layer<float> l(5, 3, 9, {.masked = true});
    const auto plans = {steps(), grid<float>(l.g, lstm_pass::forward, 8, 2),
                        cluster<float>(l.g, lstm_pass::forward, 2)};
    for (const lstm_plan& plan : plans) {
        scratch workspace(cuda::lstm_workspace<float>(l.g, lstm_pass::forward));
        results<float> apart, r;
        cuda::run_lstm_forward(nullptr, plan, l.g, forward_operands(l, apart), workspace.at);
        auto p = forward_operands(l, r);
        std::vector<float> both = l.xz;
        p.xz = p.gates = both.data();
        cuda::run_lstm_forward(nullptr, plan, l.g, p, workspace.at);
        CHECK(r.h == apart.h);
        CHECK(r.c == apart.c);
        CHECK(std::memcmp(both.data(), apart.gates.data(), both.size() * sizeof(float)) == 0);
        auto q = forward_operands(l, r);
        q.gates = nullptr;
        cuda::run_lstm_forward(nullptr, plan, l.g, q, workspace.at);
        CHECK(r.h == apart.h);
    }
    for (const lstm_plan& plan :
         {steps(), grid<float>(l.g, lstm_pass::backward, 8, 2), cluster<float>(l.g, lstm_pass::backward, 2)}) {
        results<float> r;
        scratch workspace(cuda::lstm_workspace<float>(l.g, lstm_pass::backward));
        cuda::run_lstm_forward(nullptr, steps(), l.g, forward_operands(l, r), workspace.at);
        auto p = backward_operands(l, r);
        p.dh0 = p.dc0 = nullptr;
        cuda::run_lstm_backward(nullptr, plan, l.g, p, workspace.at);
        CHECK(distance(r.dz, reference(l).dz) < tolerance<float>);
    }
}

TEST_CASE("LSTM: how a pass is run follows from shape and device") {
    const auto chosen = [](std::int64_t batch, std::int64_t units, int major, int multiprocessors, std::size_t shared,
                           lstm_pass pass = lstm_pass::forward) {
        return cuda::choose_lstm<float>({batch, 40, units}, {"", 0, major, 0, multiprocessors, shared}, pass);
    };
    for (lstm_pass pass : {lstm_pass::forward, lstm_pass::backward}) { // a device of compute capability 9.0 with 132
        const auto small = chosen(32, 128, 9, 132, 232448, pass);
        CHECK(small.stage == lstm_stage::cluster);
        CHECK(small.split.unit_blocks == 8);
        CHECK(small.warps == 8);
        CHECK(small.parts == 8);
        CHECK(!small.more_resident);
        const auto middle = chosen(32, 512, 9, 132, 232448, pass);
        CHECK(middle.stage == lstm_stage::cluster);
        CHECK(middle.split.unit_blocks == 16);
        const auto wide = chosen(8, 1024, 9, 132, 232448, pass);
        CHECK(wide.stage == lstm_stage::grid);
        CHECK(wide.blocks() <= 132);
        const auto older = chosen(32, 128, 8, 108, 166912, pass);
        CHECK(older.stage == lstm_stage::grid);
        CHECK(older.blocks() <= 108);
        CHECK(older.parts * older.split.rows >= 32);
        CHECK((older.parts - 1) * older.split.rows < 32); // no part is empty
        CHECK(chosen(32, 4096, 9, 132, 232448, pass).stage == lstm_stage::steps);
        CHECK(chosen(100000, 128, 9, 132, 232448, pass).stage == lstm_stage::steps);
        CHECK(chosen(100000, 128, 9, 132, 232448, pass).large_tile);
        CHECK(!chosen(4, 4096, 7, 40, 65536, pass).large_tile);
    }
    // Whatever is chosen fits: threads, shared memory, and every sample and unit has its place.
    for (int units : {1, 2, 17, 64, 100, 192, 256, 300, 511, 700, 1500})
        for (int batch : {1, 5, 64, 300})
            for (int major : {7, 8, 9})
                for (std::size_t shared : {65536u, 101376u, 232448u})
                    for (lstm_pass pass : {lstm_pass::forward, lstm_pass::backward}) {
                        const auto p = chosen(batch, units, major, 60, shared, pass);
                        if (p.stage == lstm_stage::steps) continue;
                        CHECK(p.warps >= 1);
                        CHECK(p.warps <= 16);
                        CHECK(p.shared <= shared);
                        CHECK(p.split.unit_blocks * p.warps * 2 >= units);
                        CHECK(p.parts * p.split.rows >= batch);
                        CHECK((p.parts - 1) * p.split.rows < batch);
                        if (p.stage == lstm_stage::cluster) CHECK(major == 9);
                    }
}

TEST_CASE("LSTM: what the device cannot hold at once is run another way") {
    auto& device = cuda::driver::imitation::instance();
    const auto properties = cuda::driver::properties(0);
    const layer<float> l(5, 3, 9);
    const auto want = reference(l);
    const auto launches = [&] {
        results<float> r;
        scratch workspace(cuda::lstm_workspace<float>(l.g, lstm_pass::backward));
        const int before = device.launches;
        cuda::lstm_forward(nullptr, properties, l.g, forward_operands(l, r), workspace.at);
        const int forward = device.launches - before;
        cuda::lstm_backward(nullptr, properties, l.g, backward_operands(l, r), workspace.at);
        CHECK(distance(r, want) < tolerance<float>);
        return std::pair{forward, device.launches - before - forward};
    };
    CHECK(launches() == std::pair{1, 1});
    device.resident_clusters = 0;
    CHECK(launches() == std::pair{1, 1}); // a grid
    device.resident_blocks = 0;
    CHECK(launches() == std::pair{3, 4}); // a launch a step
    device.resident_clusters = device.resident_blocks = 1;
}

TEST_CASE("LSTM: nothing to do, and too much") {
    auto& device = cuda::driver::imitation::instance();
    const auto properties = cuda::driver::properties(0);
    const int before = device.launches;
    results<float> r;
    for (const auto& l : {layer<float>(0, 3, 5), layer<float>(2, 3, 0)}) {
        cuda::lstm_forward(nullptr, properties, l.g, forward_operands(l, r), nullptr);
        cuda::lstm_backward(nullptr, properties, l.g, backward_operands(l, r), nullptr);
    }
    CHECK(device.launches == before);
    const layer<float> no_steps(2, 0, 5); // its last states are its first
    scratch workspace(cuda::lstm_workspace<float>(no_steps.g, lstm_pass::backward));
    cuda::lstm_forward(nullptr, properties, no_steps.g, forward_operands(no_steps, r), workspace.at);
    cuda::lstm_backward(nullptr, properties, no_steps.g, backward_operands(no_steps, r), workspace.at);
    CHECK(r.dh0 == no_steps.dh_last);
    CHECK(r.dc0 == no_steps.dc_last);

    const auto refused = [&](lstm_geometry g) {
        try {
            cuda::lstm_forward(nullptr, properties, g, cuda::lstm_forward_operands<float>{}, nullptr);
        } catch (const tg::argument_error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(refused({-1, 2, 3}) == "lstm: batch -1 is out of range");
    CHECK(refused({1, 2, 1ll << 30}) == "lstm: units 1073741824 is out of range");
}

#ifndef SIMT_TSAN
TEST_CASE("LSTM kernels: no barrier is there for nothing") {
    const layer<float> l(9, 4, 40);
    const auto want = reference(l);
    // Each pass by itself: backward gets what forward left.
    const auto check_barriers = [&](const lstm_plan& forward, const lstm_plan& backward, std::size_t in_forward,
                                    std::size_t in_backward) {
        results<float> r;
        scratch workspace(cuda::lstm_workspace<float>(l.g, lstm_pass::backward));
        std::size_t found = 0;
        CHECK(simt::unnoticed_barriers(
                  [&] {
                      cuda::run_lstm_forward(nullptr, forward, l.g, forward_operands(l, r), workspace.at);
                      return distance(r.h, want.h) < 1e-5 && distance(r.c, want.c) < 1e-5;
                  },
                  found) == std::vector<std::string>{});
        CHECK(found == in_forward);
        cuda::run_lstm_forward(nullptr, steps(), l.g, forward_operands(l, r), workspace.at);
        CHECK(simt::unnoticed_barriers(
                  [&] {
                      cuda::run_lstm_backward(nullptr, backward, l.g, backward_operands(l, r), workspace.at);
                      return distance(r.dz, want.dz) < 1e-5 && distance(r.dh0, want.dh0) < 1e-5;
                  },
                  found) == std::vector<std::string>{});
        CHECK(found == in_backward);
    };
    check_barriers(steps(), steps(), 2, 2);
    check_barriers(grid<float>(l.g, lstm_pass::forward, 16, 9), grid<float>(l.g, lstm_pass::backward, 16, 9), 4, 5);
    check_barriers(cluster<float>(l.g, lstm_pass::forward, 4), cluster<float>(l.g, lstm_pass::backward, 4), 2, 3);
}
#endif
