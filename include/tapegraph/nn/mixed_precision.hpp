#pragma once

#include <tapegraph/core/half.hpp>
#include <tapegraph/model/columns.hpp>
#include <tapegraph/model/scope.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

/// Mixed precision: weights are float, layers compute in bfloat16 or half. Not part of
/// tapegraph.hpp: programs without it do not compile it. nn/optimizers/loss_scaling.hpp scales the
/// loss, which half needs.
///
///     auto model = tg::compile<Mode>(tg::mixed<tg::bfloat16>(network{}), spec, loss, optimizer);

namespace tapegraph {

namespace detail {

/// Casts a handle to an element type if it is floating and of another.
template <class To, handle H>
constexpr auto computed_as(const H& x, std::source_location where) {
    if constexpr (requires { typename H::element_type; }) {
        using from = typename H::element_type;
        if constexpr (is_floating_type<from> && !std::is_same_v<from, To>)
            return eval(cast<To>(x), where);
        else
            return x;
    } else {
        return is_floating(x.type()) && x.type() != dtype_of<To> ? H(eval(cast<To>(x), where)) : x;
    }
}

} // namespace detail

/// A scope whose layers compute in `Compute`: bfloat16, half or float. They convert floating
/// operands to it and return such results. `variable_like` creates a float variable and returns it
/// rounded, and derivatives reach the variable as floats. So initializers, regularizers,
/// constraints, optimizers and files see floats. A variable requested by its type,
/// scope.variable<float>, is returned unchanged. Integer operands stay integers.
template <class Compute, class Scope>
class mixed_scope : public Scope {
    static_assert(is_storage_type(dtype_of<Compute>) || std::is_same_v<Compute, float>,
                  "computed_in: layers compute in tg::bfloat16, tg::half or float");

public:
    constexpr explicit mixed_scope(const Scope& scope) : Scope(scope) {}

    /// The scope of a name below this one, with the same policy.
    template <class Name>
    constexpr mixed_scope operator/(const Name& name) const {
        return mixed_scope(static_cast<const Scope&>(*this) / name);
    }
    /// The scope in which a variable that exists is returned, as `scope.reuse()` of other scopes.
    constexpr mixed_scope reuse() const { return mixed_scope(Scope::reuse()); }
    /// A scope below this one whose name no other has: `name`, else `name_1` and so on.
    constexpr mixed_scope unique(std::string_view name) const { return mixed_scope(Scope::unique(name)); }

    /// The same path with another policy.
    template <class Other>
    constexpr auto in() const {
        return mixed_scope<Other, Scope>(static_cast<const Scope&>(*this));
    }

    /// A variable of floats, returned in the type of computation. `like` gives the mode; `dims` is its shape.
    template <handle H>
    constexpr H variable_like(const H& like, std::string_view name, const shape& dims,
                              const variable_options& options = {}) const {
        if constexpr (!storage_type<Compute>) {
            return Scope::variable_like(like, name, dims, options);
        } else if constexpr (requires { typename H::element_type; }) {
            if constexpr (std::is_same_v<typename H::element_type, Compute>)
                return eval(cast<Compute>(Scope::template variable<float>(name, dims, options)));
            else
                return Scope::variable_like(like, name, dims, options);
        } else {
            const H v = Scope::variable_like(like, name, dims, options);
            return like.type() == dtype_of<Compute> ? H(eval(cast<Compute>(v))) : v;
        }
    }

    /// A layer's operand, sealed and converted to the type of computation.
    template <tensor_like X>
    constexpr auto operand(const X& x, std::source_location where) const {
        return detail::computed_as<Compute>(Scope::operand(x, where), where);
    }
    /// Ends a layer: its result, converted to the type of computation.
    template <class Mark, handle H>
    constexpr auto leave(std::string_view type, const Mark& mark, const H& result) const {
        return detail::computed_as<Compute>(H(Scope::leave(type, mark, result)), std::source_location::current());
    }
    /// Adds a scalar to the loss, in float.
    template <tensor_like E>
    constexpr void add_loss(const E& value, std::source_location where = std::source_location::current()) const {
        Scope::add_loss(detail::computed_as<float>(eval(value, where), where), where);
    }

    /// Used by layers that always compute in float, such as normalizations: a float scope for them,
    /// and the conversion of their result.
    constexpr auto float_scope() const requires storage_type<Compute> { return in<float>(); }
    /// The result of a layer, converted to the type of computation.
    template <handle H>
    constexpr auto rounded(const H& result, std::source_location where) const {
        return detail::computed_as<Compute>(result, where);
    }
};

/// A scope whose layers compute in T: bfloat16, half or float, even if the model has another
/// policy.
template <class T, class Scope>
constexpr auto computed_in(const Scope& scope) {
    if constexpr (requires { scope.template in<T>(); })
        return scope.template in<T>();
    else
        return mixed_scope<T, Scope>(scope);
}
/// A scope whose layers compute in float: `tg::dense(tg::in_float(scope / "score"), h, {.units = 10})`.
template <class Scope>
constexpr auto in_float(const Scope& scope) {
    return computed_in<float>(scope);
}

namespace detail {

template <class Y>
constexpr auto as_floats(const Y& y) {
    if constexpr (is_outputs<Y>)
        return []<fixed_string... Names, class... Handles>(const outputs<named_output<Names, Handles>...>& all) {
            return [&]<std::size_t... I>(std::index_sequence<I...>) {
                return outputs{output<Names>(as_floats(std::get<I>(all.items).value))...};
            }
            (std::index_sequence_for<Handles...>{});
        }
    (y);
    else if constexpr (is_masked<Y>) return y.with(as_floats(y.value));
    else return computed_as<float>(eval(y), std::source_location::current());
}

template <class Compute, class Scope, tensor_like X>
constexpr auto mixed_input(const Scope& scope, const X& x) {
    const auto input = eval(x);
    const auto refused = [&](bool is_double) {
        scope.require(!is_double, "mixed: a model of doubles has no 16-bit policy, inputs are float or integers");
    };
    if constexpr (requires { typename std::remove_cvref_t<decltype(input)>::element_type; })
        refused(std::is_same_v<typename std::remove_cvref_t<decltype(input)>::element_type, double>);
    else
        refused(input.type() == dtype::f64);
    return computed_as<Compute>(input, std::source_location::current());
}

} // namespace detail

/// The result of mixed, which is itself a model.
template <class Compute, class Model>
struct mixed_model : Model {
    /// Calls the model with a scope of the policy; outputs are returned in float.
    template <class Scope, tensor_like... X>
    constexpr auto operator()(const Scope& scope, const X&... x) const requires
        requires(const Model& m, const mixed_scope<Compute, Scope>& s) {
        m(s, x...);
    }
    {
        return detail::as_floats(
            static_cast<const Model&>(*this)(computed_in<Compute>(scope), detail::mixed_input<Compute>(scope, x)...));
    }
};

/// A model whose layers compute in Compute, bfloat16 or half, with float weights: floating inputs
/// are cast to it, outputs back to float, so losses and metrics are float. Normalizations and
/// in_float scopes compute in float. A model with members is given as a constant:
/// `tg::compile<Mode, tg::mixed<tg::half>(network{.layers = 5})>(spec, loss, optimizer)`.
template <class Compute, class Model>
constexpr auto mixed(const Model& model) {
    static_assert(is_storage_type(dtype_of<Compute>), "mixed: the policy is a 16-bit type, tg::bfloat16 or tg::half");
    return mixed_model<Compute, Model>{model};
}

} // namespace tapegraph
