#pragma once

#include <tapegraph/core/fixed_string.hpp>
#include <tapegraph/core/half.hpp>
#include <tapegraph/expr/apply.hpp>
#include <tapegraph/model/spec.hpp>

#include <cstddef>
#include <source_location>
#include <string_view>
#include <tuple>
#include <type_traits>

/// Named inputs and outputs of models with several:
///     constexpr auto operator()(auto scope, auto image, auto words) const {
///         ...
///         return tg::outputs{tg::output<"class">(score), tg::output<"box">(corners)};
///     }
///
///     tg::inputs{tg::input<"image">(tg::spec<float, tg::dyn, 28, 28, 1>{}), tg::input<"words">(tg::spec<std::int32_t, tg::dyn, 20>{})}

namespace tapegraph {

/// Stands for no loss, optimizer or weights.
struct none {};

/// One of several inputs: its name is that of its column in data sets.
template <fixed_string Name, class Spec>
struct named_input {
    using spec_type = Spec;
    static constexpr std::string_view name = Name.view();
};
/// `input<"image">(spec<float, dyn, 28, 28, 1>{})`
template <fixed_string Name, class T, auto... Extents>
constexpr named_input<Name, spec<T, Extents...>> input(spec<T, Extents...>) {
    return {};
}

/// The specs of a model with several inputs, in the order of its parameters. Symbols of the same
/// name, and the batch, are the same in all.
template <class... Inputs>
struct inputs {
    constexpr inputs() = default;
    constexpr explicit inputs(Inputs...) requires(sizeof...(Inputs) > 0) {}
};

/// A value with a mask of the steps that count: nn/layers/masking.hpp.
template <class X, class M>
struct masked;

/// One of several outputs.
template <fixed_string Name, class Handle>
struct named_output {
    static constexpr std::string_view name = Name.view();
    Handle value;
};
/// `output<"class">(score)`. A formula is evaluated.
template <fixed_string Name, tensor_like X>
constexpr auto output(const X& x, std::source_location where = std::source_location::current()) {
    return named_output<Name, std::remove_cvref_t<decltype(eval(x, where))>>{eval(x, where)};
}

/// The result of a model with several outputs, and of its `predict`: `y.get<"class">()`, or `auto
/// [classes, boxes] = ...` in the model's order.
template <class... Outputs>
struct outputs {
    std::tuple<Outputs...> items;

    constexpr explicit outputs(const Outputs&... each) : items(each...) {}

    /// An output by name; an unknown name is a compile error.
    template <fixed_string Name>
    constexpr const auto& get() const {
        constexpr std::size_t index = index_of(Name.view());
        static_assert(index < sizeof...(Outputs), "outputs.get: the model has no output of this name");
        return std::get<index>(items).value;
    }
    template <std::size_t I>
    constexpr const auto& get() const {
        return std::get<I>(items).value;
    }
    /// The index of a name, or the number of names for an unknown one.
    static constexpr std::size_t index_of(std::string_view name) {
        std::size_t index = 0;
        static_cast<void>(((Outputs::name == name ? false : (++index, true)) && ...));
        return index;
    }
};

namespace detail {

/// A common view of one spec or several.
template <class Spec>
struct input_pack;

template <class T, auto... Extents>
struct input_pack<spec<T, Extents...>> {
    static constexpr int count = 1;
    using element_types = std::tuple<T>;
    static constexpr std::string_view names[1]{""}; // a single input has no name: its column is the first
    /// `f(spec, name)` for each.
    template <class F>
    static constexpr auto map(const F& f) {
        return std::tuple{f(spec<T, Extents...>{}, std::string_view("input"))};
    }
};
template <fixed_string... Names, class... Specs>
struct input_pack<inputs<named_input<Names, Specs>...>> {
    static constexpr int count = sizeof...(Specs);
    using element_types = std::tuple<typename Specs::element_type...>;
    static constexpr std::string_view names[count]{named_input<Names, Specs>::name...};
    template <class F>
    static constexpr auto map(const F& f) {
        return std::tuple{f(Specs{}, named_input<Names, Specs>::name)...}; // braces: in order
    }
};

/// The element type in which a model with these inputs computes: double if an input is, otherwise
/// float. If no input is floating, the model may choose it: model_value_type.
template <class Spec>
struct value_type_of {
    using type = typename Spec::value_type;
    static constexpr bool has_floating = is_floating_type<typename Spec::element_type>;
};
template <class... Inputs>
struct value_type_of<inputs<Inputs...>> {
    static constexpr bool wide = (std::is_same_v<typename Inputs::spec_type::element_type, double> || ...);
    static constexpr bool has_floating = (is_floating_type<typename Inputs::spec_type::element_type> || ...);
    using type = std::conditional_t<wide, double, float>;
};

template <class T>
inline constexpr bool is_inputs = false;
template <class T, auto... Extents>
inline constexpr bool is_inputs<spec<T, Extents...>> = true;
template <class... Inputs>
inline constexpr bool is_inputs<inputs<Inputs...>> = true;

template <class T>
concept input_spec_like = is_inputs<T>;

template <class T>
inline constexpr bool is_masked = false;
template <class X, class M>
inline constexpr bool is_masked<masked<X, M>> = true;
/// The value under a mask; a value without one, unchanged.
template <class T>
constexpr const auto& without_mask(const T& x) {
    if constexpr (is_masked<T>)
        return x.value;
    else
        return x;
}
template <class T>
using type_without_mask = std::remove_cvref_t<decltype(without_mask(std::declval<const T&>()))>;

/// A common view of one output or several, for training: `get` gives tensors, `whole` what losses
/// receive, which may have a mask.
template <class Result>
struct output_pack {
    static constexpr int count = 1;
    static constexpr std::string_view names[1]{""};
    template <int I>
    using type = type_without_mask<Result>;
    template <int I>
    static constexpr const auto& get(const Result& r) {
        return without_mask(r);
    }
};
template <fixed_string... Names, class... Handles>
struct output_pack<outputs<named_output<Names, Handles>...>> {
    using result = outputs<named_output<Names, Handles>...>;
    static constexpr int count = sizeof...(Handles);
    static constexpr std::string_view names[count]{named_output<Names, Handles>::name...};
    template <int I>
    using type = type_without_mask<std::tuple_element_t<static_cast<std::size_t>(I), std::tuple<Handles...>>>;
    template <int I>
    static constexpr const auto& get(const result& r) {
        return without_mask(whole<I>(r));
    }
    template <int I>
    static constexpr const auto& whole(const result& r) {
        return r.template get<static_cast<std::size_t>(I)>();
    }
};

template <class T>
inline constexpr bool is_outputs = false;
template <class... Outputs>
inline constexpr bool is_outputs<outputs<Outputs...>> = true;

template <class T>
inline constexpr bool has_masks = is_masked<T>;
template <fixed_string... Names, class... Handles>
inline constexpr bool has_masks<outputs<named_output<Names, Handles>...>> = (is_masked<Handles> || ...);

/// A model's result with its formulas evaluated, for training.
template <class Result>
constexpr auto sealed_output(const Result& r) {
    if constexpr (is_outputs<Result>)
        return r;
    else if constexpr (is_masked<Result>)
        return r.sealed();
    else
        return eval(r);
}
/// The same without masks, for callers that need only values.
template <class Result>
constexpr auto sealed_result(const Result& r) {
    if constexpr (has_masks<Result>)
        return outputs_without_masks(r);
    else
        return sealed_output(r);
}

} // namespace detail
} // namespace tapegraph

template <class... Outputs>
struct std::tuple_size<tapegraph::outputs<Outputs...>> : std::integral_constant<std::size_t, sizeof...(Outputs)> {};
template <std::size_t I, class... Outputs>
struct std::tuple_element<I, tapegraph::outputs<Outputs...>> {
    using type = std::remove_cvref_t<decltype(std::declval<tapegraph::outputs<Outputs...>>().template get<I>())>;
};
