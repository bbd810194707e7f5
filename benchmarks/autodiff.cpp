#include "autodiff/by_hand.hpp"
#include "autodiff/lstm.hpp"
#include "autodiff/lstm_by_hand.hpp"
#include "fma_peak.hpp"

#include <tapegraph/tapegraph.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <tuple>
#include <vector>

/// Times values and gradients of Rosenbrock's function, ADBench's mixture of Gaussians and LSTM,
/// and a perceptron, in double on one thread: compiled, by a tape, and written by hand
/// (autodiff/*by_hand.hpp), alternating; prints medians of processor time. Results are first
/// checked to be equal to 1e-10.
/// Usage: autodiff [seconds per function]

namespace {

namespace tg = tapegraph;
using by_hand::vector;

constexpr auto rosenbrock = [](auto x) {
    const auto a = slice(x, {{0, -1}}), b = slice(x, {{1, tg::all.end}});
    return tg::eval(sum(100 * square(b - square(a)) + square(1 - a)));
};

constexpr by_hand::mixture gaussians{1000, 16, 10};

constexpr auto mixture = [](auto alphas, auto means, auto logs, auto lower, auto below, auto points) {
    const auto centred = tg::eval(tg::expand_dims(points, 0) - tg::expand_dims(means, 1)); // [K, N, D]
    const auto matrix = tg::eval(lower * below);
    const auto scale = tg::eval(exp(logs));
    const auto turned = matmul(centred, matrix, {.transpose_b = true}) + tg::expand_dims(scale, 1) * centred;
    const auto offset = tg::eval(alphas + sum(logs, 1));
    const auto terms = tg::expand_dims(offset, 1) - 0.5 * sum(square(turned), 2);
    const double n = static_cast<double>(gaussians.points), half = 0.5 * gaussians.gamma * gaussians.gamma;
    return tg::eval(sum(tg::logsumexp(terms, 0)) - n * tg::logsumexp(alphas) +
                    half * (sum(square(scale)) + sum(square(matrix))) - gaussians.wishart * sum(logs));
};
constexpr auto mixture_gradient = [](auto alphas, auto means, auto logs, auto lower, auto below, auto points) {
    return tg::value_and_gradient([&](auto a, auto m, auto q, auto l) { return mixture(a, m, q, l, below, points); })(
        alphas, means, logs, lower);
};

constexpr auto perceptron = [](auto w, auto b, auto v, auto c, auto x, auto y) {
    const auto h = tg::eval(tanh(matmul(x, w) + b));
    return tg::eval(mean(square(matmul(h, v) + c - y)));
};
constexpr auto perceptron_gradient = [](auto w, auto b, auto v, auto c, auto x, auto y) {
    return tg::value_and_gradient([&](auto p, auto q, auto r, auto s) { return perceptron(p, q, r, s, x, y); })(w, b, v,
                                                                                                                c);
};

tg::tensor<double> random(std::initializer_list<std::int64_t> dims, std::uint64_t seed, double size = 1) {
    return tg::tensor<double>(size * tg::random::normal<double>(tg::shape(dims), {.seed = seed}));
}
vector values(const tg::tensor<double>& t) { return {t.data(), t.data() + t.size()}; }

void same(const char* name, const tg::tensor<double>& ours, const vector& theirs) {
    double error = 0, size = 0;
    for (std::int64_t i = 0; i < ours.size(); ++i) {
        const double b = theirs[static_cast<std::size_t>(i)];
        error = std::max(error, std::fabs(ours.data()[i] - b));
        size = std::max(size, std::fabs(b));
    }
    if (error <= 1e-10 * std::max(size, 1.0)) return;
    std::fprintf(stderr, "autodiff: %s differs by %g of %g\n", name, error, size);
    std::exit(1);
}

template <class Hand, class Compiled, class Taped>
void measure(const char* name, double seconds, const Hand& hand, const Compiled& compiled, const Taped& taped) {
    std::vector<double> times[3];
    int counts[3]{1, 1, 1};
    const double start = benchmarks::seconds_now();
    while (benchmarks::seconds_now() - start < seconds || times[0].size() < 5) {
        // At least some 100 us between two readings of the clock: one reading takes as long as
        // Rosenbrock's function.
        const auto repeated = [&](const auto& f, int k) {
            for (;; counts[k] *= 2) {
                const double begun = benchmarks::seconds_now();
                for (int i = 0; i < counts[k]; ++i) f();
                const double passed = benchmarks::seconds_now() - begun;
                if (passed >= 1e-4) return times[k].push_back(passed / counts[k]);
            }
        };
        repeated(hand, 0);
        repeated(compiled, 1);
        repeated(taped, 2);
    }
    const double base = benchmarks::median(times[0]) * 1e6, graph = benchmarks::median(times[1]) * 1e6,
                 eager = benchmarks::median(times[2]) * 1e6;
    std::printf("| %s | %.2f | %.2f | %.2f | %.2f | %.2f |\n", name, base, graph, graph / base, eager, eager / base);
    std::fflush(stdout);
}

void measure_perceptron(const char* name, std::int64_t batch, double seconds) {
    constexpr std::int64_t inputs = 64, hidden = 128, outputs = 10;
    const auto w = random({inputs, hidden}, 1, 0.1), b = random({hidden}, 2), v = random({hidden, outputs}, 3, 0.1),
               c = random({outputs}, 4), x = random({batch, inputs}, 5), y = random({batch, outputs}, 6);
    const by_hand::perceptron by{static_cast<std::size_t>(batch), inputs, hidden, outputs};
    const vector hw = values(w), hb = values(b), hv = values(v), hc = values(c), hx = values(x), hy = values(y);
    vector dw(hw.size()), db(hb.size()), dv(hv.size()), dc(hc.size());
    double value = 0;
    auto f =
        tg::function<tg::graph>(perceptron_gradient, tg::spec<double, inputs, hidden>{}, tg::spec<double, hidden>{},
                                tg::spec<double, hidden, outputs>{}, tg::spec<double, outputs>{},
                                tg::spec<double, tg::dyn, inputs>{}, tg::spec<double, tg::dyn, outputs>{});
    const auto hand = [&] { value = by(hw, hb, hv, hc, hx, hy, dw, db, dv, dc); };
    hand();
    const auto check = [&](const auto& r) {
        same(name, r.value, {value});
        same(name, std::get<0>(r.gradient), dw);
        same(name, std::get<1>(r.gradient), db);
        same(name, std::get<2>(r.gradient), dv);
        same(name, std::get<3>(r.gradient), dc);
    };
    check(f(w, b, v, c, x, y));
    check(perceptron_gradient(w, b, v, c, x, y));
    measure(
        name, seconds, hand, [&] { f(w, b, v, c, x, y); }, [&] { perceptron_gradient(w, b, v, c, x, y); });
}

void measure_mixture(double seconds) {
    constexpr std::int64_t N = gaussians.points, D = gaussians.dims, K = gaussians.parts;
    const auto a = random({K}, 1), m = random({K, D}, 2), q = random({K, D}, 3, 0.1), l = random({K, D, D}, 4, 0.1),
               x = random({N, D}, 5);
    auto below = tg::zeros<double>({D, D});
    for (std::int64_t i = 0; i < D; ++i)
        for (std::int64_t j = 0; j < i; ++j) below.set(1, i, j);
    const vector ha = values(a), hm = values(m), hq = values(q), hl = values(l), hx = values(x);
    vector da(ha.size()), dm(hm.size()), dq(hq.size()), dl(hl.size());
    double value = 0;
    auto f = tg::function<tg::graph>(mixture_gradient, tg::spec<double, K>{}, tg::spec<double, K, D>{},
                                     tg::spec<double, K, D>{}, tg::spec<double, K, D, D>{}, tg::spec<double, D, D>{},
                                     tg::spec<double, tg::dyn, D>{});
    const auto hand = [&] { value = gaussians(ha, hm, hq, hl, hx, da, dm, dq, dl); };
    hand();
    const auto check = [&](const auto& r) {
        same("mixture", r.value, {value});
        same("mixture, weights", std::get<0>(r.gradient), da);
        same("mixture, means", std::get<1>(r.gradient), dm);
        same("mixture, diagonals", std::get<2>(r.gradient), dq);
        same("mixture, triangles", std::get<3>(r.gradient), dl);
    };
    check(f(a, m, q, l, below, x));
    check(mixture_gradient(a, m, q, l, below, x));
    measure(
        "mixture, 1000 points, 16 dimensions, 10 Gaussians", seconds, hand, [&] { f(a, m, q, l, below, x); },
        [&] { mixture_gradient(a, m, q, l, below, x); });
}

void measure_lstm(double seconds) {
    constexpr std::int64_t layers = 2, steps = 1023;
    const auto w = random({layers * 4, lstm::width}, 1), v = random({layers * 4, lstm::width}, 2),
               e = random({3, lstm::width}, 3), state = random({layers * 2, lstm::width}, 4),
               all = random({steps + 1, lstm::width}, 5);
    const tg::tensor<double> inputs = slice(all, {{0, steps}}), next = slice(all, {{1, steps + 1}});
    const vector hw = values(w), hv = values(v), he = values(e), hs = values(state), ha = values(all);
    vector dw(hw.size()), dv(hv.size()), de(he.size());
    double value = 0;
    by_hand::lstm by(layers, steps, lstm::width);
    auto f = tg::function<tg::graph>(
        lstm::gradient, tg::spec<double, layers * 4, lstm::width>{}, tg::spec<double, layers * 4, lstm::width>{},
        tg::spec<double, 3, lstm::width>{}, tg::spec<double, layers * 2, lstm::width>{},
        tg::spec<double, tg::dyn, lstm::width>{}, tg::spec<double, tg::dyn, lstm::width>{});
    const auto hand = [&] { value = by(hw, hv, he, hs, ha, dw, dv, de); };
    hand();
    const auto check = [&](const auto& r) {
        same("LSTM", r.value, {value});
        same("LSTM, weights", std::get<0>(r.gradient), dw);
        same("LSTM, biases", std::get<1>(r.gradient), dv);
        same("LSTM, scales", std::get<2>(r.gradient), de);
    };
    check(f(w, v, e, state, inputs, next));
    check(lstm::gradient(w, v, e, state, inputs, next));
    measure(
        "LSTM, 2 layers, 1024 steps of 14", seconds, hand, [&] { f(w, v, e, state, inputs, next); },
        [&] { lstm::gradient(w, v, e, state, inputs, next); });
}

void measure_rosenbrock(const char* name, std::int64_t n, double seconds) {
    const auto x = random({n}, 1);
    const vector hx = values(x);
    vector g(hx.size());
    double value = 0;
    auto f = tg::function<tg::graph>(tg::value_and_gradient(rosenbrock), tg::spec<double, tg::dyn>{});
    const auto hand = [&] { value = by_hand::rosenbrock(hx, g); };
    hand();
    const auto check = [&](const auto& r) {
        same(name, r.value, {value});
        same(name, r.gradient, g);
    };
    check(f(x));
    check(tg::value_and_gradient(rosenbrock)(x));
    measure(
        name, seconds, hand, [&] { f(x); }, [&] { tg::value_and_gradient(rosenbrock)(x); });
}

} // namespace

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
    tg::set_thread_count(1);
    benchmarks::processor_time() = true;
    std::printf("| double, one thread | by hand, us | compiled, us | ratio | tape, us | ratio |\n"
                "| --- | ---: | ---: | ---: | ---: | ---: |\n");
    measure_rosenbrock("Rosenbrock, 100 variables", 100, seconds);
    measure_rosenbrock("Rosenbrock, 10000 variables", 10000, seconds);
    measure_mixture(seconds);
    measure_lstm(seconds);
    measure_perceptron("perceptron 64, 128, 10, batch 1", 1, seconds);
    measure_perceptron("the same, batch 128", 128, seconds);
}
