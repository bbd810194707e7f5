#pragma once

#include <tapegraph/minimizers/objective.hpp>
#include <tapegraph/scalar/jet.hpp>
#include <tapegraph/scalar/number.hpp>
#include <tapegraph/scalar/tape.hpp>
#include <tapegraph/scalar/transforms.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

/// User's functions as objectives and residuals of flat vectors: of numbers that record, or with derivatives of their
/// own.

namespace tapegraph {

/// A function and the products of its Hessian, for newton_cg: product(x, v, std::span<T> result) writes the Hessian at
/// x times v, a std::span<const T>.
template <class F, class Product>
struct with_hessian_product {
    F f;
    Product product;
};
template <class F, class Product>
with_hessian_product(F, Product) -> with_hessian_product<F, Product>;

namespace minimizers {

/// What a start may be: a number, or a sequence of numbers. `with<V>` is the same of V.
template <class X>
struct point_of {};
template <std::floating_point T>
struct point_of<T> {
    using number = T;
    template <class V>
    using with = V;
};
template <scalars::sequence X>
    requires std::floating_point<typename scalars::sequence_of<X>::element>
struct point_of<X> {
    using number = typename scalars::sequence_of<X>::element;
    template <class V>
    using with = typename scalars::sequence_of<X>::template with<V>;
};
template <class X>
concept starting_point = requires {
    typename point_of<X>::number;
};
template <class X, class V>
using point_with = typename point_of<X>::template with<V>;

template <class C>
auto& element(C& c, std::size_t i) {
    if constexpr (scalars::sequence<std::remove_const_t<C>>)
        return c[i];
    else
        return c;
}
template <class X>
std::size_t size_of_point(const X& x) {
    if constexpr (scalars::sequence<X>)
        return scalars::length(x);
    else
        return 1;
}
template <class V, class X>
point_with<X, V> point_like(const X& x) {
    return scalars::mapped_structure([](const auto&) { return V(0); }, x);
}

/// A function of points like X that is called with plain numbers, numbers that record, or jets, in containers that are
/// kept.
template <class F, class X>
class called_function {
public:
    using T = typename point_of<X>::number;
    using point = point_with<X, T>;
    using recorded = point_with<X, real<T>>;
    static constexpr bool takes_plain = std::is_invocable_v<const F&, const point&>;
    static constexpr bool takes_derivatives = [] {
        if constexpr (scalars::is_gradient<F>) // takes any number of arguments
            return false;
        else
            return std::is_invocable_v<const F&, const point&, std::span<T>>;
    }();

    called_function(const F& f, const X& like)
        : f_(f), point_(point_like<T>(like)), recorded_(point_like<real<T>>(like)) {}

    const point& at(std::span<const T> x) {
        for (std::size_t i = 0; i < x.size(); ++i) element(point_, i) = x[i];
        return point_;
    }
    decltype(auto) plain(std::span<const T> x) {
        if constexpr (takes_plain) {
            return f_(at(x));
        } else {
            for (std::size_t i = 0; i < x.size(); ++i) element(recorded_, i) = real<T>(x[i]);
            return f_(std::as_const(recorded_));
        }
    }
    T value(std::span<const T> x) { return plain_value(plain(x)); }
    template <class Y>
    static T plain_value(const Y& y) {
        if constexpr (requires {
                          y.value;
                          y.gradient;
                      })
            return static_cast<T>(y.value);
        else if constexpr (recording<Y>)
            return static_cast<T>(y.number);
        else
            return static_cast<T>(y);
    }
    T with_derivatives(std::span<const T> x, std::span<T> derivatives) {
        return static_cast<T>(f_(at(x), derivatives));
    }
    /// Value and gradient by the tape.
    T recorded_gradient(std::span<const T> x, std::span<T> gradient) {
        real_tape<T> tape;
        for (std::size_t i = 0; i < x.size(); ++i) {
            element(recorded_, i) = real<T>(x[i]);
            tape.watch(element(recorded_, i));
        }
        const real<T> y(f_(std::as_const(recorded_)));
        tape.backward(y);
        for (std::size_t i = 0; i < x.size(); ++i) gradient[i] = tape.adjoint(element(recorded_, i));
        return y.value();
    }
    const F& function() const { return f_; }

private:
    const F& f_;
    point point_;
    recorded recorded_;
};

template <class F, class X>
class function_objective : public objective<typename point_of<X>::number> {
public:
    using call = called_function<F, X>;
    using T = typename call::T;
    function_objective(const F& f, const X& like) : call_(f, like), like_(point_like<T>(like)) {}

protected:
    T compute_value(std::span<const T> x) override {
        if constexpr (call::takes_derivatives) {
            unused_.resize(x.size());
            return call_.with_derivatives(x, unused_);
        } else {
            return call_.value(x);
        }
    }
    T compute_gradient(std::span<const T> x, std::span<T> gradient) override {
        if constexpr (call::takes_derivatives) {
            return call_.with_derivatives(x, gradient);
        } else if constexpr (gives_gradient()) {
            const auto& y = call_.plain(x);
            scalars::require_as_many(size_of_point(y.gradient), x.size(), "minimize: a gradient");
            for (std::size_t i = 0; i < x.size(); ++i) gradient[i] = static_cast<T>(element(y.gradient, i));
            return static_cast<T>(y.value);
        } else {
            return call_.recorded_gradient(x, gradient);
        }
    }
    void compute_product(std::span<const T> x, std::span<const T> gradient, std::span<const T> v,
                         std::span<T> product) override {
        using moving = jet<T, 1>;
        if constexpr (scalars::is_gradient<F>) {
            auto at = point_like<moving>(like_);
            for (std::size_t i = 0; i < x.size(); ++i) set_moving(element(at, i), x[i], v[i]);
            const auto y = call_.function()(std::as_const(at));
            for (std::size_t i = 0; i < x.size(); ++i) product[i] = element(y.gradient, i).derivative[0];
        } else if constexpr (!call::takes_derivatives && !gives_gradient() &&
                             std::is_invocable_v<const F&, const point_with<X, real<moving>>&>) {
            real_tape<moving> tape;
            moving_.resize(1, point_like<real<moving>>(like_));
            auto& at = moving_[0];
            for (std::size_t i = 0; i < x.size(); ++i) {
                moving number;
                set_moving(number, x[i], v[i]);
                element(at, i) = real<moving>(number);
                tape.watch(element(at, i));
            }
            const real<moving> y(call_.function()(std::as_const(at)));
            tape.backward(y);
            for (std::size_t i = 0; i < x.size(); ++i) product[i] = tape.adjoint(element(at, i)).derivative[0];
        } else {
            objective<T>::compute_product(x, gradient, v, product);
        }
    }
    call call_;

private:
    static void set_moving(jet<T, 1>& number, const T& value, const T& speed) {
        number.value = value;
        number.derivative[0] = speed;
    }
    static constexpr bool gives_gradient() {
        if constexpr (call::takes_plain && !call::takes_derivatives)
            return requires(const std::invoke_result_t<const F&, const typename call::point&>& y) {
                y.value;
                y.gradient;
            };
        else
            return false;
    }

    typename call::point like_;
    std::vector<T> unused_;
    std::vector<point_with<X, real<jet<T, 1>>>> moving_; // none, or one
};

template <class F, class Product, class X>
class function_objective<with_hessian_product<F, Product>, X> final : public function_objective<F, X> {
public:
    using T = typename point_of<X>::number;
    function_objective(const with_hessian_product<F, Product>& f, const X& like)
        : function_objective<F, X>(f.f, like), product_(f.product) {}

private:
    void compute_product(std::span<const T> x, std::span<const T>, std::span<const T> v,
                         std::span<T> product) override {
        product_(this->call_.at(x), v, product);
    }
    const Product& product_;
};

template <class F, class X>
class function_residuals final : public residual_function<typename point_of<X>::number> {
public:
    using call = called_function<F, X>;
    using T = typename call::T;
    function_residuals(const F& f, const X& like) : call_(f, like) {}

private:
    void compute_residuals(std::span<const T> x, std::vector<T>& r) override {
        r.clear();
        const auto add = [&](const auto& each) { r.push_back(call::plain_value(each)); };
        if constexpr (call::takes_derivatives)
            scalars::for_each_number(add, call_.function()(call_.at(x), std::span<T>()));
        else
            scalars::for_each_number(add, call_.plain(x));
    }
    void compute_jacobian(std::span<const T> x, std::vector<T>& jacobian) override {
        if constexpr (call::takes_derivatives) {
            jacobian.assign(this->count() * x.size(), T(0));
            call_.function()(call_.at(x), std::span<T>(jacobian));
        } else {
            const typename call::point& at = call_.at(x);
            if constexpr (scalars::sequence<typename call::point>)
                rows(call_.function(), at, jacobian);
            else
                rows([this](const auto& v) { return call_.function()(v[0]); }, std::array<T, 1>{at}, jacobian);
            scalars::require_as_many(jacobian.size(), this->count() * x.size(), "minimize: a Jacobian");
        }
    }
    template <class G, class P>
    static void rows(const G& g, const P& at, std::vector<T>& jacobian) {
        const detail::linearization<number_mode, G, P> linear(g, at);
        linear.template rows<sweep_direction::automatic>(jacobian);
    }
    call call_;
};

} // namespace minimizers
} // namespace tapegraph
