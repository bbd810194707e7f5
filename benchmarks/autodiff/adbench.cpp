#include "adbench_hand.hpp"
#include "adbench_problems.hpp"
#include "contestants.hpp"
#include "lstm_by_hand.hpp"

#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

/// ADBench's four problems in double on one thread: gradients of the mixture of Gaussians and the LSTM by tg::real,
/// Jacobians of bundle adjustment and hand tracking by jets, beside CoDiPack and Adept where CMake was given their
/// folders. All derivatives are first checked to be equal; tests/scalar/adbench_test.cpp compares them with ADBench's
/// own results. Prints medians of processor time in microseconds, and bytes of tape.
/// Usage: bench_autodiff_adbench [seconds per problem [ADBench's folder data/hand/simple_small]]

namespace {

namespace tg = tapegraph;
using contestants::numbers;
using timing::timed;
using vector = std::vector<double>;

template <class F>
void compare_gradients(const char* title, const F& f, const vector& x, const vector& expected, double budget) {
    volatile double sink = 0;
    std::vector<timed> all{{"value alone", [&] { sink = f(x); }}};
    contestants::enter_all(all, f, x, expected);
    timing::print(title, std::move(all), budget);
}

void mixtures(double budget) {
    constexpr std::size_t D = 10, K = 25, N = 1000;
    const adbench::mixture f{D, K, 1, 0, numbers(N * D, -2, 2)};
    const vector x = numbers(f.parameters(), -0.5, 0.5);
    // The tape's gradient is the expected one of the others; the value of a step along it is that of its slope.
    const vector g = tg::gradient(f)(x);
    double square = 0, size = 0;
    for (double each : g) square += each * each;
    const double h = 1e-6 / std::sqrt(square);
    vector above = x, below = x;
    for (std::size_t i = 0; i < x.size(); ++i) above[i] += h * g[i], below[i] -= h * g[i];
    size = (f(above) - f(below)) / (2 * h);
    contestants::check("mixture", {1e-4 * size / square}, {1e-4}); // nine digits of 1e-4: differences have no more
    compare_gradients("mixture, d 10, K 25, n 1,000", f, x, g, budget);
}

void lstms(double budget) {
    constexpr std::size_t layers = 2, steps = 1024, width = 14;
    const adbench::lstm f{layers, steps, width, numbers(layers * 2 * width, -1, 1), numbers((steps + 1) * width, 0, 1)};
    const vector x = numbers(f.parameters(), -0.5, 0.5);
    const std::size_t of_gates = layers * 4 * width;
    const vector w(x.begin(), x.begin() + of_gates), v(x.begin() + of_gates, x.begin() + 2 * of_gates),
        e(x.begin() + 2 * of_gates, x.end());
    vector dw(of_gates), dv(of_gates), de(3 * width);
    by_hand::lstm hand(layers, steps, width);
    hand(w, v, e, f.state, f.sequence, dw, dv, de);
    vector g = dw;
    g.insert(g.end(), dv.begin(), dv.end());
    g.insert(g.end(), de.begin(), de.end());
    volatile double sink = 0;
    std::vector<timed> all{{"value alone", [&] { sink = f(x); }},
                           {"by hand", [&] { hand(w, v, e, f.state, f.sequence, dw, dv, de); }}};
    contestants::enter_all(all, f, x, g);
    timing::print("LSTM, 2 layers, 1,024 steps of 14", std::move(all), budget);
}

/// Rows of a Jacobian by forward mode: what `directions(R)` numbers of type R give, R being jets or another library's.
template <class R, std::size_t N, class Derivative>
void store(const R& result, double* row, const Derivative& derivative) {
    for (std::size_t k = 0; k < N; ++k) row[k] = derivative(result, k);
}
inline constexpr auto of_jet = [](const auto& y, std::size_t k) { return y.derivative[k]; };
inline constexpr auto seed_jet = [](auto& x, std::size_t k) { x.derivative[k] = 1; };
#ifdef BENCH_CODIPACK
inline constexpr auto of_codipack = [](const auto& y, std::size_t k) { return y.getGradient()[k]; };
inline constexpr auto seed_codipack = [](auto& x, std::size_t k) { x.gradient()[k] = 1; };
#endif

/// The blocks [observations, 2, 15] of bundle adjustment's Jacobian; those of weights' errors 1 - w^2 are -2 w.
template <class R, class Seed, class Derivative>
void bundle_jacobian(const adbench::bundle& b, vector& blocks, const Seed& seed, const Derivative& derivative) {
    for (std::size_t o = 0; o < b.observations.size(); ++o) {
        std::array<R, adbench::of_observation> x;
        b.gather(o, x.data());
        for (std::size_t k = 0; k < x.size(); ++k) seed(x[k], k);
        const auto errors = adbench::reprojection_error(x.data(), &b.features[2 * o]);
        for (std::size_t i = 0; i < 2; ++i)
            store<R, adbench::of_observation>(errors[i], &blocks[(o * 2 + i) * adbench::of_observation], derivative);
    }
}

void bundles(double budget) {
    constexpr std::size_t cameras = 49, points = 777, count = 3184; // a tenth of ADBench's smallest
    adbench::bundle b{{}, numbers(points * 3, -1, 1), numbers(count, 0, 1), numbers(count * 2, -100, 100), {}};
    for (std::size_t c = 0; c < cameras; ++c) {
        const vector turn = numbers(3, -0.3, 0.3, static_cast<std::uint32_t>(c));
        b.cameras.insert(b.cameras.end(), {turn[0], turn[1], turn[2], 0.1, -0.2, -5, 400, 3, -4, 0.06, -0.01});
    }
    for (std::size_t o = 0; o < count; ++o) b.observations.push_back({o % cameras, o * 7 % points});
    const std::size_t size = count * 2 * adbench::of_observation;
    vector ours(size), sums(count * 2);
    using jets = tg::jet<double, 16>; // one more than needed: two are a vector
    bundle_jacobian<jets>(b, ours, seed_jet, of_jet);
    vector by_tape(adbench::of_observation), block(adbench::of_observation);
    for (std::size_t o = 0; o < count; o += 97) {
        b.gather(o, block.data());
        const auto one = [&](const auto& x) { return adbench::reprojection_error(x.data(), &b.features[2 * o])[1]; };
        by_tape = tg::gradient(one)(block);
        const double* const row = &ours[(o * 2 + 1) * adbench::of_observation];
        contestants::check("bundle adjustment", {row, row + adbench::of_observation}, by_tape);
    }
    std::vector<timed> all{{"values alone",
                            [&] {
                                std::array<double, adbench::of_observation> x;
                                for (std::size_t o = 0; o < count; ++o) {
                                    b.gather(o, x.data());
                                    const auto e = adbench::reprojection_error(x.data(), &b.features[2 * o]);
                                    sums[2 * o] = e[0], sums[2 * o + 1] = e[1];
                                }
                            }},
                           {"tg::jet", [&] { bundle_jacobian<jets>(b, ours, seed_jet, of_jet); }}};
#ifdef BENCH_CODIPACK
    using theirs = codi::RealForwardGen<double, codi::Direction<double, adbench::of_observation>>;
    vector second(size);
    bundle_jacobian<theirs>(b, second, seed_codipack, of_codipack);
    contestants::check("CoDiPack", second, ours);
    all.push_back({"CoDiPack", [&] { bundle_jacobian<theirs>(b, second, seed_codipack, of_codipack); }});
#endif
    timing::print("bundle adjustment, 3,184 observations", std::move(all), budget);
}

/// [results, 26], or with u [results, 28], whose last two are by the u of the result's own point.
template <class R, std::size_t N, class Seed, class Derivative>
void hand_jacobian(const adbench::hand& h, const vector& theta, const vector& u, vector& rows, const Seed& seed,
                   const Derivative& derivative) {
    std::vector<R> x(theta.begin(), theta.end()), within(u.begin(), u.end()), errors;
    for (std::size_t k = 0; k < x.size(); ++k) seed(x[k], k);
    if constexpr (N > adbench::hand::angles) {
        for (std::size_t i = 0; i < within.size(); ++i) seed(within[i], adbench::hand::angles + i % 2);
        errors = h(x, within);
    } else {
        errors = h(x);
    }
    for (std::size_t i = 0; i < errors.size(); ++i) store<R, N>(errors[i], &rows[i * N], derivative);
}

template <std::size_t N>
void hands(const char* title, const adbench::hand& h, const vector& theta, const vector& u, double budget) {
    vector ours(h.points.size() * N);
    using jets = tg::jet<double, static_cast<int>(N)>;
    hand_jacobian<jets, N>(h, theta, u, ours, seed_jet, of_jet);
    for (std::size_t i = 0; i < h.points.size(); i += 17) { // rows of the tape
        const auto one = [&](const auto& x) {
            if constexpr (N > adbench::hand::angles) {
                std::remove_cvref_t<decltype(x)> given(u.begin(), u.end());
                given[i / 3 * 2] = x[adbench::hand::angles];
                given[i / 3 * 2 + 1] = x[adbench::hand::angles + 1];
                return h(x, given)[i];
            } else {
                return h(x)[i];
            }
        };
        vector at = theta;
        if (N > adbench::hand::angles) at.insert(at.end(), {u[i / 3 * 2], u[i / 3 * 2 + 1]});
        contestants::check(title, {&ours[i * N], &ours[i * N] + N}, tg::gradient(one)(at));
    }
    volatile double sink = 0;
    std::vector<timed> all{{"values alone", [&] { sink = u.empty() ? h(theta)[0] : h(theta, u)[0]; }},
                           {"tg::jet", [&] { hand_jacobian<jets, N>(h, theta, u, ours, seed_jet, of_jet); }}};
#ifdef BENCH_CODIPACK
    using theirs = codi::RealForwardGen<double, codi::Direction<double, N>>;
    vector second(ours.size());
    hand_jacobian<theirs, N>(h, theta, u, second, seed_codipack, of_codipack);
    contestants::check("CoDiPack", second, ours);
    all.push_back({"CoDiPack", [&] { hand_jacobian<theirs, N>(h, theta, u, second, seed_codipack, of_codipack); }});
#endif
    timing::print(title, std::move(all), budget);
}

} // namespace

int main(int argc, char** argv) {
    const double budget = argc > 1 ? std::atof(argv[1]) : 1;
#ifdef BENCH_ADEPT
    adept::Stack stack; // one serves all functions
#endif
    mixtures(budget);
    bundles(budget);
    constexpr std::size_t count = 100;
    adbench::hand h{
        argc > 2 ? adbench::read_hand_model(argv[2]) : adbench::made_hand_model(), {}, numbers(count * 3, -3, 3)};
    for (std::size_t i = 0; i < count; ++i) h.correspondences.push_back(i * 37 % h.model.vertices.size());
    const vector theta = numbers(adbench::hand::angles, -0.5, 0.5);
    hands<adbench::hand::angles>("hand, 26 angles, 100 points", h, theta, {}, budget);
    hands<adbench::hand::angles + 2>("hand, points within triangles", h, theta, numbers(count * 2, 0, 0.5), budget);
    lstms(budget);
}
