#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/nn/columns.hpp>

#include <cstddef>
#include <tuple>
#include <utility>

namespace tapegraph {

/// A chain of layers as a model. Each layer is called with a scope named by its position ("0", "1",
/// ...) and the previous result:
///
///     constexpr tg::sequential network{[](auto scope, auto x) { return relu(tg::dense(scope, x, {.units = 64})); },
///                                      [](auto scope, auto x) { return tg::dense(scope, x, {.units = 10}); }};
///     auto model = tg::compile<tg::graph>(network, spec, loss, optimizer);
///
/// A layer without variables may take only its operand: `[](auto x) { return flatten(x); }`. Layers
/// do not capture. A sequential is itself a layer.
template <class... Layers>
struct sequential {
    constexpr sequential() = default;
    constexpr explicit sequential(const Layers&...)
        requires(sizeof...(Layers) > 0)
    {}

    template <class Scope, tensor_like X>
    constexpr auto operator()(const Scope& scope, const X& x) const {
        return from<0>(scope, x);
    }

private:
    template <std::size_t I, class Scope, class X>
    static constexpr auto from(const Scope& scope, const X& x) {
        if constexpr (I == sizeof...(Layers)) {
            return x;
        } else {
            using layer = std::tuple_element_t<I, std::tuple<Layers...>>;
            if constexpr (requires { layer{}(scope, x); })
                return from<I + 1>(scope, detail::sealed_output(layer{}(scope / static_cast<int>(I), x)));
            else
                return from<I + 1>(scope, detail::sealed_output(layer{}(x)));
        }
    }
};

} // namespace tapegraph
