#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/model/columns.hpp>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tapegraph {

namespace detail {
/// The layers of a sequential: nothing if they are types without members.
template <bool Empty, class... Layers>
struct layers_in_sequence {
    constexpr layers_in_sequence() = default;
    constexpr explicit layers_in_sequence(const Layers&...) {}
    template <std::size_t I>
    static constexpr auto layer() {
        return std::tuple_element_t<I, std::tuple<Layers...>>{};
    }
};
template <class... Layers>
struct layers_in_sequence<false, Layers...> {
    constexpr explicit layers_in_sequence(const Layers&... each) : layers(each...) {}
    template <std::size_t I>
    constexpr const auto& layer() const {
        return std::get<I>(layers);
    }
    std::tuple<Layers...> layers;
};
} // namespace detail

/// A chain of layers as a model. Each layer is called with a scope named by its position ("0", "1",
/// ...) and the previous result:
///
///     constexpr tg::sequential network{[](auto scope, auto x) { return relu(tg::dense(scope, x, {.units = 64})); },
///                                      [](auto scope, auto x) { return tg::dense(scope, x, {.units = 10}); }};
///     auto model = tg::compile<tg::graph>(network, spec, loss, optimizer);
///
/// A layer without variables may take only its operand: `[](auto x) { return flatten(x); }`. Layers
/// capture nothing where the compiler makes the graph; those of `tg::traced` may. A sequential is
/// itself a layer.
template <class... Layers>
struct sequential : detail::layers_in_sequence<(std::is_empty_v<Layers> && ...), Layers...> {
    constexpr sequential() = default;
    constexpr explicit sequential(const Layers&... layers) requires(sizeof...(Layers) > 0)
        : detail::layers_in_sequence<(std::is_empty_v<Layers> && ...), Layers...>(layers...) {}

    /// Passes x through the layers in their order.
    template <class Scope, tensor_like X>
    constexpr auto operator()(const Scope& scope, const X& x) const {
        return from<0>(scope, x);
    }

private:
    template <std::size_t I, class Scope, class X>
    constexpr auto from(const Scope& scope, const X& x) const {
        if constexpr (I == sizeof...(Layers)) {
            return x;
        } else {
            const auto& layer = this->template layer<I>();
            if constexpr (requires { layer(scope, x); })
                return from<I + 1>(scope, detail::sealed_output(layer(scope / static_cast<int>(I), x)));
            else
                return from<I + 1>(scope, detail::sealed_output(layer(x)));
        }
    }
};

} // namespace tapegraph
