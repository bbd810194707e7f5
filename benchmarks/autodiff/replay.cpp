#include "contestants.hpp"
#include "scalar_problems.hpp"
#include "timing.hpp"

#include <tapegraph/number_program.hpp>

#ifdef BENCH_CPPAD
#include <cppad/cppad.hpp>
#endif

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Times functions that are recorded once and run at many inputs (docs/number_programs.md): value and gradient, sparse
/// Hessians, the fifth derivative; in double on one thread, beside a new recording by tg::real each time, and CppAD's
/// ADFun where CMake was given its folder. Results are first checked to be equal. Prints medians of processor time in
/// microseconds. Usage: bench_autodiff_replay [seconds per row]

namespace {

namespace tg = tapegraph;
using vector = std::vector<double>;
using contestants::numbers, timing::print, timing::timed;

void require_equal(const char* what, const vector& x, const vector& y) {
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (std::fabs(x[i] - y[i]) <= 1e-9 * (1 + std::fabs(y[i]))) continue;
        std::printf("%s: number %zu is %.17g, expected %.17g\n", what, i, x[i], y[i]);
        std::exit(1);
    }
}

#ifdef BENCH_CPPAD
template <class F>
std::shared_ptr<CppAD::ADFun<double>> recorded_by_cppad(const F& f, const vector& x) {
    using number = CppAD::AD<double>;
    std::vector<number> ax(x.begin(), x.end());
    CppAD::Independent(ax);
    std::vector<number> ay{f(ax)};
    auto function = std::make_shared<CppAD::ADFun<double>>(ax, ay);
    function->optimize();
    return function;
}
#endif

template <class F>
void gradients(const char* title, const F& f, const vector& x, double budget) {
    const std::size_t n = x.size();
    const auto plain = tg::record(f, x);
    const auto program = plain.with_gradient();
    vector g(n), result(n + 1), batch_result;
    const auto by_reals = [&f, &x, &g, n] {
        tg::real_tape<> tape;
        std::vector<tg::real<>> v(x.begin(), x.end());
        tape.watch(v);
        const tg::real<> y = f(v);
        tape.backward(y);
        for (std::size_t i = 0; i < n; ++i) g[i] = tape.adjoint(v[i]);
    };
    by_reals();
    program.run(x, result);
    require_equal("program", vector(result.begin() + 1, result.end()), g);
    constexpr std::size_t inputs = 64;
    vector batch;
    for (std::size_t i = 0; i < inputs; ++i) batch.insert(batch.end(), x.begin(), x.end());
    batch_result.resize(inputs * (n + 1));
    program.run_batch(inputs, batch, batch_result);
    require_equal("batch", vector(batch_result.end() - static_cast<std::ptrdiff_t>(n), batch_result.end()), g);
    std::vector<timed> all{{"tg::real", by_reals},
                           {"program", [&] { program.run(x, result); }},
                           {"64 in lanes", [&] { program.run_batch(inputs, batch, batch_result); }}};
#ifdef BENCH_CPPAD
    const auto cppad = recorded_by_cppad(f, x);
    vector peer, w{1};
    const auto run = [&] {
        cppad->Forward(0, x);
        peer = cppad->Reverse(1, w);
    };
    run();
    require_equal("CppAD", peer, g);
    all.push_back({"CppAD", run});
#endif
    print(title, std::move(all), budget);
    std::printf("%-36s  %zu instructions (%zu of the value), %zu slots\n", "", program.instructions(),
                plain.instructions(), program.slots());
}

void hessians(const char* title, std::size_t n, double budget) {
    const problems::rosenbrock f{n};
    const vector x = numbers(n, -1, 1);
    const auto program = tg::record(f, x);
    const auto star = tg::sparse_hessian(program),
               acyclic = tg::sparse_hessian(program, tg::hessian_colouring::acyclic);
    const vector expected = star(x).values;
    if (n <= 20) {
        const auto dense = tg::hessian(f)(x);
        const auto all = star(x).dense();
        for (std::size_t i = 0; i < n; ++i)
            require_equal("Hessian",
                          vector(all.begin() + static_cast<std::ptrdiff_t>(i * n),
                                 all.begin() + static_cast<std::ptrdiff_t>((i + 1) * n)),
                          dense[i]);
    }
    require_equal("Hessian by trees", acyclic(x).values, expected);
    constexpr std::size_t inputs = 64;
    vector values(expected.size()), batch, many(inputs * expected.size());
    for (std::size_t i = 0; i < inputs; ++i) batch.insert(batch.end(), x.begin(), x.end());
    std::vector<timed> all{{"star", [&] { star.run(x, values); }},
                           {"acyclic", [&] { acyclic.run(x, values); }},
                           {"64 in lanes", [&] { star.program().run_batch(inputs, batch, many); }}};
#ifdef BENCH_CPPAD
    const auto cppad = recorded_by_cppad(f, x);
    using sizes = CppAD::vector<std::size_t>;
    CppAD::vector<bool> of_inputs(n), of_results(1);
    for (std::size_t i = 0; i < n; ++i) of_inputs[i] = true;
    of_results[0] = true;
    CppAD::sparse_rc<sizes> pattern;
    cppad->for_hes_sparsity(of_inputs, of_results, false, pattern);
    CppAD::sparse_rc<sizes> lower;
    std::size_t count = 0;
    for (std::size_t k = 0; k < pattern.nnz(); ++k) count += pattern.col()[k] <= pattern.row()[k];
    lower.resize(n, n, count);
    count = 0;
    for (std::size_t k = 0; k < pattern.nnz(); ++k)
        if (pattern.col()[k] <= pattern.row()[k]) lower.set(count++, pattern.row()[k], pattern.col()[k]);
    CppAD::sparse_rcv<sizes, vector> subset(lower);
    CppAD::sparse_hes_work work;
    const vector w{1};
    const auto run = [&] { cppad->sparse_hes(x, w, subset, pattern, "cppad.symmetric", work); };
    run();
    const auto own = star(x);
    for (std::size_t k = 0; k < subset.nnz(); ++k) {
        const auto& p = own.pattern;
        double element = 0;
        for (auto at = static_cast<std::size_t>(p.starts[subset.row()[k]]);
             at < static_cast<std::size_t>(p.starts[subset.row()[k] + 1]); ++at)
            if (static_cast<std::size_t>(p.columns[at]) == subset.col()[k]) element = own.values[at];
        require_equal("CppAD's Hessian", {subset.val()[k]}, {element});
    }
    all.push_back({"CppAD", run});
#endif
    print(title, std::move(all), budget);
    std::printf("%-36s  %d and %d colours, %zu and %zu instructions\n", "", star.directions(), acyclic.directions(),
                star.program().instructions(), acyclic.program().instructions());
}

struct function_of_one {
    template <class X>
    X operator()(const std::vector<X>& x) const {
        return (*this)(x[0]);
    }
    template <class X>
    X operator()(const X& x) const {
        using std::exp, std::log, std::sin, std::sqrt, std::tanh;
        const X t = tanh(x);
        return X(log(1 + exp(sin(x) * x)) + sqrt(1 + t * t));
    }
};

void fifth_derivative(double budget) {
    const function_of_one f;
    const vector x{0.7};
    volatile double sink = 0;
    auto program = tg::record(f, x);
    for (int order = 0; order < 5; ++order) program = program.gradient();
    const double expected = tg::derivatives_up_to<5>(f, x[0])[5];
    require_equal("fifth derivative", program(x), {expected});
    std::vector<timed> all{{"Taylor polynomial", [&] { sink = tg::derivatives_up_to<5>(f, x[0])[5]; }},
                           {"program", [&] { sink = program.value(x); }}};
#ifdef BENCH_CPPAD
    const auto cppad = recorded_by_cppad(f, x);
    const vector one{1}, zero{0};
    const auto run = [&] {
        cppad->Forward(0, x);
        cppad->Forward(1, one);
        for (std::size_t order = 2; order < 5; ++order) cppad->Forward(order, zero);
        return 120 * cppad->Forward(5, zero)[0];
    };
    require_equal("CppAD's fifth derivative", {run()}, {expected});
    all.push_back({"CppAD", [&, run] { sink = run(); }});
#endif
    print("fifth derivative of one variable", std::move(all), budget);
}

} // namespace

int main(int argc, char** argv) {
    const double budget = argc > 1 ? std::atof(argv[1]) : 1;
    gradients("Rosenbrock, 1,000 numbers", problems::rosenbrock{1000}, numbers(1000, -1, 1), budget);
    gradients("Lotka-Volterra, 1,000 steps", problems::lotka_volterra{1000}, {1.5, 1.0, 0.5, 3.0, 1.0, 1.0}, budget);
    gradients("functions of 1,000 numbers", problems::chain{1000}, numbers(1000, -1, 1), budget);
    gradients("Newton's roots of 100 numbers", problems::newton{100}, numbers(100, 0.5, 4), budget);
    gradients("two layers of 64, one input", problems::layers{64}, numbers(2 * 64 * 64 + 64, -0.2, 0.2), budget);
    hessians("Hessian of Rosenbrock, 20", 20, budget);
    hessians("Hessian of Rosenbrock, 1,000", 1000, budget);
    fifth_derivative(budget);
}
