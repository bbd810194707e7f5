#include "contestants.hpp"
#include "scalar_by_hand.hpp"
#include "scalar_problems.hpp"
#include "timing.hpp"

#ifdef BENCH_CERES
#include <ceres/jet.h>
#endif
#ifdef BENCH_EIGEN
#include <unsupported/Eigen/AutoDiff>
#endif

#include <algorithm>
#include <cstdlib>
#include <vector>

/// Times values and gradients of functions in plain loops (scalar_problems.hpp), in double on one thread: by tg::real, by
/// a gradient written by hand, and by CoDiPack, Adept, ADOL-C, and Ceres' and Eigen's dual numbers where CMake has found
/// them. The contestants alternate;
/// prints medians of processor time in microseconds, and bytes of tape. All gradients are first checked to be equal.
/// Usage: bench_autodiff_scalar [seconds per function]

namespace {

namespace tg = tapegraph;
using contestants::numbers;
using timing::timed;
using vector = std::vector<double>;

struct by_a_hand {
    static constexpr const char* name = "by hand";
    std::size_t bytes = 0;
    template <class F>
    double operator()(const F& f, const vector& x, vector& g) {
        return by_hand::gradient(f, x, g);
    }
};

by_a_hand hand;

template <class F>
void compare(const char* title, const F& f, const vector& x, double budget) {
    vector expected(x.size());
    by_hand::gradient(f, x, expected);
    std::vector<timed> all;
    volatile double sink = 0;
    all.push_back({"value alone", [&] { sink = f(x); }});
    contestants::enter(all, hand, f, x, expected);
    contestants::enter_all(all, f, x, expected);
    timing::print(title, std::move(all), budget);
}

// The Jacobian of 100 results by 100 numbers.
void jacobians(double budget) {
    const std::size_t n = 100;
    const vector x = numbers(n, -1, 1);
    const problems::dense f;
    volatile double sink = 0;
    std::vector<timed> all{{"tg::jacobian", [&] { sink = tg::jacobian(f)(x)[3][4]; }}};
#ifdef BENCH_CODIPACK
    vector forward(n * n);
    all.push_back({"CoDiPack, 8 directions", [&] {
                       using number = codi::RealForwardGen<double, codi::Direction<double, 8>>;
                       for (std::size_t first = 0; first < n; first += 8) {
                           const std::size_t used = std::min<std::size_t>(8, n - first);
                           std::vector<number> v(x.begin(), x.end());
                           for (std::size_t k = 0; k < used; ++k) v[first + k].gradient()[k] = 1;
                           const auto y = f(v);
                           for (std::size_t i = 0; i < n; ++i)
                               for (std::size_t k = 0; k < used; ++k)
                                   forward[i * n + first + k] = y[i].getGradient()[k];
                       }
                   }});
#endif
#ifdef BENCH_ADEPT
    vector whole(n * n);
    all.push_back({"Adept", [&] {
                       adept::Stack& stack = *adept::active_stack();
                       std::vector<adept::adouble> v(x.begin(), x.end());
                       stack.new_recording();
                       const auto y = f(v);
                       stack.independent(v.data(), v.size());
                       stack.dependent(y.data(), y.size());
                       stack.jacobian(whole.data());
                   }});
#endif
    timing::print("Jacobian 100 x 100", std::move(all), budget);
}

// All six derivatives of Lotka-Volterra forward, by numbers that carry them.
void dual_numbers(double budget) {
    const problems::lotka_volterra f{1000};
    const vector x{1.5, 1.0, 0.5, 3.0, 1.0, 1.0};
    vector expected(6);
    by_hand::gradient(f, x, expected);
    std::vector<timed> all;
    const auto enter = [&](const char* name, const auto& seeded, const auto& derivative) {
        const auto run = [&f, &x, seeded, derivative](vector& g) {
            std::vector<decltype(seeded(0.0, std::size_t{0}))> v;
            for (std::size_t i = 0; i < 6; ++i) v.push_back(seeded(x[i], i));
            const auto y = f(v);
            for (std::size_t i = 0; i < 6; ++i) g[i] = derivative(y, i);
        };
        vector g(6);
        run(g);
        contestants::check(name, g, expected);
        all.push_back({name, [run, g]() mutable { run(g); }});
    };
    enter(
        "tg::jet", [](double v, std::size_t i) { return tg::jet<double, 6>(v, static_cast<int>(i)); },
        [](const auto& y, std::size_t i) { return y.derivative[i]; });
#ifdef BENCH_CERES
    enter(
        "Ceres' Jet", [](double v, std::size_t i) { return ceres::Jet<double, 6>(v, static_cast<int>(i)); },
        [](const auto& y, std::size_t i) { return y.v[static_cast<Eigen::Index>(i)]; });
#endif
#ifdef BENCH_EIGEN
    using eigen_number = Eigen::AutoDiffScalar<Eigen::Matrix<double, 6, 1>>;
    enter(
        "Eigen's AutoDiffScalar",
        [](double v, std::size_t i) { return eigen_number(v, 6, static_cast<Eigen::Index>(i)); },
        [](const auto& y, std::size_t i) { return y.derivatives()[static_cast<Eigen::Index>(i)]; });
#endif
#ifdef BENCH_CODIPACK
    using codi_number = codi::RealForwardGen<double, codi::Direction<double, 6>>;
    enter(
        "CoDiPack",
        [](double v, std::size_t i) {
            codi_number number = v;
            number.gradient()[i] = 1;
            return number;
        },
        [](const auto& y, std::size_t i) { return y.getGradient()[i]; });
#endif
    timing::print("Lotka-Volterra forward, 6 directions", std::move(all), budget);
}

#ifdef BENCH_CODIPACK
// The products of a Hessian with N directions: reverse over forward.
template <std::size_t N, class F>
void codipack_products(const F& f, const vector& x, const std::vector<const double*>& along, vector& products) {
    using inner = codi::RealForwardGen<double, codi::Direction<double, N>>;
    using number = codi::RealReverseGen<inner>;
    auto& tape = number::getTape();
    tape.reset();
    tape.setActive();
    std::vector<number> v(x.begin(), x.end());
    for (std::size_t i = 0; i < x.size(); ++i) {
        for (std::size_t k = 0; k < along.size(); ++k) v[i].value().gradient()[k] = along[k][i];
        tape.registerInput(v[i]);
    }
    number y = f(v);
    tape.registerOutput(y);
    tape.setPassive();
    y.setGradient(inner(1.0));
    tape.evaluate();
    for (std::size_t i = 0; i < x.size(); ++i)
        for (std::size_t k = 0; k < along.size(); ++k) products[k * x.size() + i] = v[i].getGradient().getGradient()[k];
}
#endif

// The Hessian and a product with it.
void second_derivatives(double budget) {
    const auto twenty = numbers(20, -1, 1), thousand = numbers(1000, -1, 1);
    const problems::rosenbrock short_one{20}, long_one{1000};
    volatile double sink = 0;
    std::vector<timed> hessians{{"tg::hessian", [&] { sink = tg::hessian(short_one)(twenty)[1][1]; }}};
    std::vector<timed> products{{"tg::hvp", [&] { sink = tg::hvp(long_one)(thousand, thousand).product[0]; }}};
#ifdef BENCH_CODIPACK
    vector units(400), hessian(400), product(1000);
    for (std::size_t i = 0; i < 20; ++i) units[21 * i] = 1;
    const auto by_codipack = [&] {
        for (std::size_t first = 0; first < 20; first += 10) {
            std::vector<const double*> along;
            for (std::size_t k = first; k < first + 10; ++k) along.push_back(&units[20 * k]);
            vector ten(200);
            codipack_products<10>(short_one, twenty, along, ten);
            std::copy(ten.begin(), ten.end(), hessian.begin() + static_cast<std::ptrdiff_t>(20 * first));
        }
    };
    by_codipack();
    vector ours;
    for (const vector& row : tg::hessian(short_one)(twenty)) ours.insert(ours.end(), row.begin(), row.end());
    contestants::check("CoDiPack's Hessian", hessian, ours);
    hessians.push_back({"CoDiPack", by_codipack});
    const auto product_by_codipack = [&] { codipack_products<1>(long_one, thousand, {thousand.data()}, product); };
    product_by_codipack();
    contestants::check("CoDiPack's product", product, tg::hvp(long_one)(thousand, thousand).product);
    products.push_back({"CoDiPack", product_by_codipack});
#endif
    timing::print("Hessian of Rosenbrock, 20", std::move(hessians), budget);
    timing::print("its product, 1,000", std::move(products), budget);
}

} // namespace

int main(int argc, char** argv) {
    const double budget = argc > 1 ? std::atof(argv[1]) : 1;
#ifdef BENCH_ADEPT
    adept::Stack stack; // one serves all functions
#endif
    const vector points = numbers(2000, -2, 2);
    compare("Rosenbrock, 1,000 numbers", problems::rosenbrock{1000}, numbers(1000, -1, 1), budget);
    compare("Lotka-Volterra, 1,000 steps", problems::lotka_volterra{1000}, {1.5, 1.0, 0.5, 3.0, 1.0, 1.0}, budget);
    compare("Newton's roots of 100 numbers", problems::newton{100}, numbers(100, 0.5, 4), budget);
    compare("functions of 1,000 numbers", problems::chain{1000}, numbers(1000, -1, 1), budget);
    compare("two layers of 64, one input", problems::layers{64}, numbers(2 * 64 * 64 + 64, -0.2, 0.2), budget);
    compare("Gaussian mixture, d 2, K 5, n 1,000", problems::mixture{2, 5, &points}, numbers(45, -0.5, 0.5), budget);
    dual_numbers(budget);
    jacobians(budget);
    second_derivatives(budget);
}
