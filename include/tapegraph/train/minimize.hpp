#pragma once

#include <tapegraph/eager/derivatives.hpp>
#include <tapegraph/minimizers/least_squares.hpp>
#include <tapegraph/minimizers/minimize.hpp>
#include <tapegraph/minimizers/newton_cg.hpp>
#include <tapegraph/model/gradient_list.hpp>
#include <tapegraph/model/variables.hpp>
#include <tapegraph/nn/optimizers/applied.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// minimize over tensors, and over the trainable variables of a model.

namespace tapegraph {

namespace minimizers {

template <class Y>
concept gives_gradient = requires(const Y& y) {
    y.value;
    y.gradient;
};

/// A function of a tensor as an objective: f(x) -> scalar, differentiated by the eager tape, or f(x) -> value and
/// gradient, such as a compiled tg::value_and_gradient(f).
template <class F, class T>
class tensor_objective final : public objective<T> {
public:
    tensor_objective(F& f, const shape& dims) : f_(f), dims_(dims) {}

private:
    using function = std::remove_const_t<F>;
    using result = std::remove_cvref_t<std::invoke_result_t<F&, const tensor<T>&>>;

    T compute_value(std::span<const T> x) override {
        if constexpr (gives_gradient<result>)
            return number(f_(at(x)).value);
        else
            return number(f_(at(x)));
    }
    T compute_gradient(std::span<const T> x, std::span<T> gradient) override {
        const auto take = [&](const auto& y) {
            const tensor<T> slope(y.gradient);
            if (!(slope.shape() == dims_))
                throw shape_error("minimize: x has shape " + to_string(dims_) + ", and its gradient " +
                                  to_string(slope.shape()));
            std::copy_n(slope.data(), gradient.size(), gradient.begin());
            return number(y.value);
        };
        if constexpr (gives_gradient<result>)
            return take(f_(at(x)));
        else
            return take(value_and_gradient_of<function>{f_}(at(x)));
    }
    void compute_product(std::span<const T> x, std::span<const T> gradient, std::span<const T> v,
                         std::span<T> product) override {
        if constexpr (gives_gradient<result>) {
            objective<T>::compute_product(x, gradient, v, product);
        } else {
            const auto y = hvp_of<function>{f_}(at(x), at(v));
            const tensor<T> along(y.product);
            std::copy_n(along.data(), product.size(), product.begin());
        }
    }
    tensor<T> at(std::span<const T> x) const { return tensor<T>(x.data(), dims_); }
    static T number(const auto& y) {
        const tensor<T> value(y);
        if (value.size() != 1)
            throw shape_error("minimize: the function must give a scalar, it gave shape " + to_string(value.shape()));
        return *value.data();
    }
    F& f_; // compiled functions change when they are called
    shape dims_;
};

/// A function of a tensor whose value's elements are residuals.
template <class F, class T>
class tensor_residuals final : public residual_function<T> {
public:
    tensor_residuals(F& f, const shape& dims) : f_(f), dims_(dims) {}

private:
    void compute_residuals(std::span<const T> x, std::vector<T>& r) override {
        const tensor<T> y(f_(at(x)));
        r.assign(y.data(), y.data() + y.size());
    }
    void compute_jacobian(std::span<const T> x, std::vector<T>& jacobian) override {
        const tensor<T> rows(jacobian_of<std::remove_const_t<F>>{f_}(at(x))); // [result..., x...]
        jacobian.assign(rows.data(), rows.data() + rows.size());
    }
    tensor<T> at(std::span<const T> x) const { return tensor<T>(x.data(), dims_); }
    F& f_;
    shape dims_;
};

/// A model's loss, as a function of its trainable variables one after the other. T is float if a variable is.
template <class F, class T>
class variables_objective final : public objective<T> {
public:
    variables_objective(const F& f, variable_list& variables) : f_(f), at_(sgd{}, variables) {
        for (variable& v : variables)
            if (v.trainable() && !v.optimizer_state()) variables_.push_back(&v);
    }
    void read(std::vector<T>& x) const {
        for (const variable* v : variables_)
            with_elements(*v, [&](const auto* from) {
                for (std::int64_t i = 0; i < v->size(); ++i) x.push_back(static_cast<T>(from[i]));
            });
    }
    void write(std::span<const T> x) {
        std::size_t first = 0;
        for (variable* v : variables_) {
            if (v->type() == dtype::f64)
                copy_to(static_cast<double*>(v->overwrite()), x.subspan(first), v->size());
            else
                copy_to(static_cast<float*>(v->overwrite()), x.subspan(first), v->size());
            first += static_cast<std::size_t>(v->size());
        }
    }

private:
    using result = std::remove_cvref_t<std::invoke_result_t<const F&>>;

    T compute_value(std::span<const T> x) override {
        write(x);
        if constexpr (std::same_as<result, gradient_list>)
            return static_cast<T>(f_().loss);
        else
            return number(eval(f_()));
    }
    T compute_gradient(std::span<const T> x, std::span<T> gradient) override {
        write(x);
        std::size_t first = 0;
        const auto take = [&](const any_tensor& g, const variable& v) {
            if (g.type() == dtype::f64)
                copy_from(static_cast<const double*>(g.read()), gradient.subspan(first), v.size());
            else
                copy_from(static_cast<const float*>(g.read()), gradient.subspan(first), v.size());
            first += static_cast<std::size_t>(v.size());
        };
        if constexpr (std::same_as<result, gradient_list>) {
            const gradient_list slopes = f_();
            for (const variable* v : variables_) take(slopes[v->path()], *v);
            return static_cast<T>(slopes.loss);
        } else {
            const auto [value, slopes] = at_.value_and_gradients(f_);
            for (std::size_t i = 0; i < slopes.size(); ++i) take(slopes[i], *variables_[i]);
            return number(value);
        }
    }
    template <class E>
    static T number(const tensor<E>& value) {
        if (value.size() != 1)
            throw shape_error("minimize: the function must give a scalar, it gave shape " + to_string(value.shape()));
        return static_cast<T>(*value.data());
    }
    static void with_elements(const variable& v, const auto& f) {
        if (v.type() == dtype::f64)
            f(static_cast<const double*>(v.data().read()));
        else
            f(static_cast<const float*>(v.data().read()));
    }
    template <class E>
    static void copy_to(E* to, std::span<const T> x, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<E>(x[static_cast<std::size_t>(i)]);
    }
    template <class E>
    static void copy_from(const E* from, std::span<T> x, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) x[static_cast<std::size_t>(i)] = static_cast<T>(from[i]);
    }

    const F& f_;
    applied<sgd> at_;
    std::vector<variable*> variables_;
};

template <class T, class F, class M>
minimization_result<std::vector<T>, T> minimize_variables(const F& f, variable_list& variables, const M& method,
                                                          const minimization_options& options) {
    variables_objective<F, T> objective(f, variables);
    std::vector<T> x;
    objective.read(x);
    require_start<T>(x);
    // Also when f throws, the variables are those of the last point that was accepted.
    struct writes_back {
        variables_objective<F, T>& to;
        const std::vector<T>& x;
        ~writes_back() { to.write(x); }
    } const back{objective, x};
    const outcome<T> end = run(method, objective, x, options);
    return result_of(x, end, objective);
}

} // namespace minimizers

/// Minimizes a function of a tensor: f(x) -> scalar; f(x) -> value and gradient, such as a compiled
/// tg::value_and_gradient(f); or, for levenberg_marquardt and gauss_newton, f(x) -> a tensor of residuals. Bounds count
/// x's elements in row-major order. Errors are those of minimize over vectors, and shape_error where a result has
/// another shape.
template <class F, std::floating_point T, class M = lbfgs>
    requires minimizers::value_method<M> || minimizers::residual_method<M>
[[nodiscard]] minimization_result<tensor<T>, T> minimize(F&& f, const tensor<T>& start, const M& method = {},
                                                         const minimization_options& options = {}) {
    std::vector<T> x = start.to_vector();
    minimizers::require_start<T>(x);
    const auto run_with = [&](auto&& function) {
        const auto end = run(method, function, x, options);
        return minimizers::result_of(tensor<T>(x.data(), start.shape()), end, function);
    };
    if constexpr (minimizers::value_method<M>)
        return run_with(minimizers::tensor_objective<std::remove_reference_t<F>, T>(f, start.shape()));
    else
        return run_with(minimizers::tensor_residuals<std::remove_reference_t<F>, T>(f, start.shape()));
}

/// Minimizes a loss by a model's variables that are trainable and not frozen, in place; `x` of the result has them one
/// after the other, in the list's order. The loss is a function without arguments: it gives a model's gradients on the
/// whole of the data, `[&] { return model.gradients(x, y); }`, in any mode, or a scalar that is computed from the
/// variables in eager mode, `[&] { return mean(square(net(x) - y)); }`. The method is lbfgs, or newton_cg, whose
/// products are differences of gradients. The loss must be the same function each time: dropout and statistics of
/// batches have no place in it.
template <class F, class M = lbfgs>
    requires minimizers::value_method<M> && std::invocable<const F&>
auto minimize(const F& f, variable_list& variables, const M& method = {}, const minimization_options& options = {}) {
    bool narrow = false;
    for (const variable& v : variables) narrow |= v.trainable() && !v.optimizer_state() && v.type() == dtype::f32;
    // The result has one type: values and norms of float are exact in double.
    const auto widened = [](const auto& r) {
        return minimization_result<std::vector<double>, double>{{r.x.begin(), r.x.end()},
                                                                r.value,
                                                                r.gradient_norm,
                                                                r.iterations,
                                                                r.evaluations,
                                                                r.gradients,
                                                                r.products,
                                                                r.reason};
    };
    return narrow ? widened(minimizers::minimize_variables<float>(f, variables, method, options))
                  : widened(minimizers::minimize_variables<double>(f, variables, method, options));
}

} // namespace tapegraph
