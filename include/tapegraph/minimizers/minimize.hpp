#pragma once

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/minimizers/functions.hpp>
#include <tapegraph/minimizers/lbfgs.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tapegraph {

namespace minimizers {

/// A method for functions that give one number, and one for functions that give residuals: a structure with a function
/// `run` in its namespace or this one.
template <class M>
concept value_method = requires(const M& m, objective<double>& f, std::vector<double>& x,
                                const minimization_options& o) {
    { run(m, f, x, o) } -> std::same_as<outcome<double>>;
};
template <class M>
concept residual_method = requires(const M& m, residual_function<double>& f, std::vector<double>& x,
                                   const minimization_options& o) {
    { run(m, f, x, o) } -> std::same_as<outcome<double>>;
};

/// The result at `point`, with the counts of f.
template <class Point, class T, class F>
minimization_result<Point, T> result_of(Point point, const outcome<T>& end, const F& f) {
    return {std::move(point), end.value,   end.gradient_norm, end.iterations,
            f.evaluations,    f.gradients, f.products,        end.reason};
}

template <class T>
void require_start(std::span<const T> x) {
    if (x.empty()) throw argument_error("minimize: the start has no numbers");
    for (std::size_t i = 0; i < x.size(); ++i)
        if (!std::isfinite(x[i]))
            throw argument_error("minimize: number " + std::to_string(i) + " of the start is " + std::to_string(x[i]));
}

} // namespace minimizers

/// Minimizes a function of a number, or of a vector, array, span or column vector of Eigen's, of float or double, from
/// `start`. f is one of these:
///
///     f(x) -> y                    a template of the numbers' type: differentiated by tg::real and jets
///     f(x, gradient) -> y          which writes its gradient to the std::span<T>
///     f(x) -> value and gradient   such as tg::value_and_gradient(f): a structure with these members
///     f(x) -> residuals            a sequence, for levenberg_marquardt and gauss_newton: half the sum of squares is minimized
///     f(x, jacobian) -> residuals  which writes df[i] / dx[k] to jacobian[i * x.size() + k], unless the span is empty
///
/// The methods are lbfgs, newton_cg, levenberg_marquardt and gauss_newton. Throws argument_error if the start is empty
/// or not finite or bounds or options make no sense, and numeric_error if the function is not finite at the start.
/// Elsewhere it may be infinite or NaN: steps that lead there are shortened.
template <class F, minimizers::starting_point X, class M = lbfgs>
    requires minimizers::value_method<M> || minimizers::residual_method<M>
[[nodiscard]] auto minimize(const F& f, const X& start, const M& method = {},
                            const minimization_options& options = {}) {
    using T = typename minimizers::point_of<X>::number;
    std::vector<T> x;
    scalars::for_each_number([&](const T& each) { x.push_back(each); }, start);
    minimizers::require_start<T>(x);
    const auto run_with = [&](auto&& function) {
        const auto end = run(method, function, x, options);
        auto point = minimizers::point_like<T>(start);
        for (std::size_t i = 0; i < x.size(); ++i) minimizers::element(point, i) = x[i];
        return minimizers::result_of(std::move(point), end, function);
    };
    if constexpr (minimizers::value_method<M>)
        return run_with(minimizers::function_objective<F, X>(f, start));
    else
        return run_with(minimizers::function_residuals<F, X>(f, start));
}
// clang-format off
no_such_option_in<minimization_options> minimize(any_argument, any_argument, any_argument, ...) TG_MISTAKE;
// clang-format on

} // namespace tapegraph
