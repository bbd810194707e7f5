#include <tapegraph/minimize.hpp>

#ifdef BENCH_EIGEN
#include <tapegraph/scalar/eigen.hpp>

#include <unsupported/Eigen/LevenbergMarquardt>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>
#include <type_traits>
#include <vector>

/// Evaluations and time of minimizations: Rosenbrock's chained function by lbfgs and newton_cg, and two of NIST's regressions
/// by levenberg_marquardt, beside that of Eigen (unsupported) with the same Jacobians. benchmarks/autodiff/minimize.py does
/// the same by SciPy. Prints medians of processor time in microseconds. Usage: bench_autodiff_minimize [seconds per row]

namespace {

namespace tg = tapegraph;
using vector = std::vector<double>;

double seconds() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class F>
double median_microseconds(const F& f, double budget) {
    std::vector<double> times;
    const double until = seconds() + budget;
    while (seconds() < until || times.size() < 5) {
        int calls = 0;
        const double start = seconds();
        double now = start;
        do f(), ++calls;
        while ((now = seconds()) < start + 1e-3);
        times.push_back((now - start) / calls);
    }
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return 1e6 * *middle;
}
void print(const char* problem, const char* method, double value, long evaluations, long derivatives, double time) {
    std::printf("%-18s %-28s value %-12.6g evaluations %-5ld derivatives %-5ld %10.1f us\n", problem, method, value,
                evaluations, derivatives, time);
}

constexpr auto rosenbrock = [](const auto& x) {
    std::remove_cvref_t<decltype(x[0])> sum = 0;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        const auto b = x[i + 1] - x[i] * x[i];
        sum += 100 * b * b + (1 - x[i]) * (1 - x[i]);
    }
    return sum;
};
double rosenbrock_by_hand(const vector& x, std::span<double> g) {
    double sum = 0;
    std::fill(g.begin(), g.end(), 0.0);
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        const double b = x[i + 1] - x[i] * x[i];
        sum += 100 * b * b + (1 - x[i]) * (1 - x[i]);
        g[i] += -400 * b * x[i] - 2 * (1 - x[i]);
        g[i + 1] += 200 * b;
    }
    return sum;
}

template <class F, class M>
void row(const char* problem, const char* name, const F& f, const vector& start, const M& method, double budget) {
    const tg::minimization_options options{.gradient_tolerance = 1e-6};
    const auto r = tg::minimize(f, start, method, options);
    const double time = median_microseconds([&] { (void)tg::minimize(f, start, method, options); }, budget);
    print(problem, name, r.value, static_cast<long>(r.evaluations), static_cast<long>(r.gradients + r.products), time);
}

/// Residuals of a regression.
template <class Model>
struct regression {
    const double* x;
    const double* y;
    std::size_t count;
    Model model;
    template <class B>
    auto operator()(const B& b) const {
        std::vector<std::remove_cvref_t<decltype(b[0])>> r;
        r.reserve(count);
        for (std::size_t i = 0; i < count; ++i) r.push_back(model(x[i], b) - y[i]);
        return r;
    }
};

#ifdef BENCH_EIGEN
template <class F>
struct eigen_functor : Eigen::DenseFunctor<double> {
    const F& f;
    eigen_functor(const F& function, int inputs, int values)
        : Eigen::DenseFunctor<double>(inputs, values), f(function) {}
    int operator()(const Eigen::VectorXd& x, Eigen::VectorXd& r) const {
        const auto values = f(x);
        for (std::size_t i = 0; i < values.size(); ++i) r[static_cast<Eigen::Index>(i)] = values[i];
        return 0;
    }
    int df(const Eigen::VectorXd& x, Eigen::MatrixXd& jacobian) const {
        const auto rows = tg::jacobian(f)(x);
        for (std::size_t i = 0; i < rows.size(); ++i) jacobian.row(static_cast<Eigen::Index>(i)) = rows[i];
        return 0;
    }
};
#endif

template <class F>
void regression_rows(const char* name, const F& f, const vector& start, double budget) {
    row(name, "levenberg_marquardt", f, start, tg::levenberg_marquardt{}, budget);
#ifdef BENCH_EIGEN
    const eigen_functor<F> functor(f, static_cast<int>(start.size()), static_cast<int>(f.count));
    const Eigen::VectorXd first =
        Eigen::Map<const Eigen::VectorXd>(start.data(), static_cast<Eigen::Index>(start.size()));
    long evaluations = 0, jacobians = 0;
    double norm = 0;
    const auto run = [&] {
        auto own = functor;
        Eigen::LevenbergMarquardt<eigen_functor<F>> method(own);
        Eigen::VectorXd x = first;
        method.minimize(x);
        evaluations = static_cast<long>(method.nfev()), jacobians = static_cast<long>(method.njev());
        norm = method.fvec().norm();
    };
    const double time = median_microseconds(run, budget);
    print(name, "Eigen's LevenbergMarquardt", norm * norm / 2, evaluations, jacobians, time);
#endif
}

constexpr std::array thurber_x{-3.067, -2.981, -2.921, -2.912, -2.840, -2.797, -2.702, -2.699, -2.633, -2.481,
                               -2.363, -2.322, -1.501, -1.460, -1.274, -1.212, -1.100, -1.046, -0.915, -0.714,
                               -0.566, -0.545, -0.400, -0.309, -0.109, -0.103, 0.010,  0.119,  0.377,  0.790,
                               0.963,  1.006,  1.115,  1.572,  1.841,  2.047,  2.200};
constexpr std::array thurber_y{80.574,   84.248,   87.264,   87.195,   89.076,   89.608,   89.868,   90.101,
                               92.405,   95.854,   100.696,  101.060,  401.672,  390.724,  567.534,  635.316,
                               733.054,  759.087,  894.206,  990.785,  1090.109, 1080.914, 1122.643, 1178.351,
                               1260.531, 1273.514, 1288.339, 1327.543, 1353.863, 1414.509, 1425.208, 1421.384,
                               1442.962, 1464.350, 1468.705, 1447.894, 1457.628};
constexpr std::array misra_x{77.6,  114.9, 141.1, 190.8, 239.9, 289.0, 332.8,
                             378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0};
constexpr std::array misra_y{10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02,
                             44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78};

} // namespace

int main(int argc, char** argv) {
    const double budget = argc > 1 ? std::atof(argv[1]) : 1;
    for (const std::size_t n : {10, 1000}) {
        const vector start(n, 1.5);
        const char* const name = n == 10 ? "Rosenbrock 10" : "Rosenbrock 1,000";
        row(name, "lbfgs, tg::real", rosenbrock, start, tg::lbfgs{}, budget);
        row(name, "lbfgs, gradient by hand", rosenbrock_by_hand, start, tg::lbfgs{}, budget);
        row(name, "newton_cg, tg::real and jets", rosenbrock, start, tg::newton_cg{}, budget);
    }
    const auto misra = [](double x, const auto& b) { return b[0] * (1 - exp(-b[1] * x)); };
    regression_rows("Misra1a", regression<decltype(misra)>{misra_x.data(), misra_y.data(), misra_x.size(), misra},
                    {500, 0.0001}, budget);
    const auto thurber = [](double x, const auto& b) {
        return (b[0] + x * (b[1] + x * (b[2] + x * b[3]))) / (1 + x * (b[4] + x * (b[5] + x * b[6])));
    };
    regression_rows("Thurber",
                    regression<decltype(thurber)>{thurber_x.data(), thurber_y.data(), thurber_x.size(), thurber},
                    {1000, 1000, 400, 40, 0.7, 0.3, 0.03}, budget);
}
