#pragma once

#include <tapegraph/compile/eager_model.hpp>
#include <tapegraph/train/trainable_model.hpp>

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

/// The argument of a custom step, and the optimizers that it names.

namespace tapegraph {

/// The optimizers of a step; `minimize` refers to them by number.
template <class... Each>
struct optimizers {
    std::tuple<Each...> each;
    constexpr explicit optimizers(const Each&... them) : each(them...) {}

    /// A bit for each optimizer that scales its losses.
    static constexpr std::uint64_t scaled = [] {
        std::uint64_t mask = 0, bit = 1;
        ((mask |= detail::scales_loss<Each>() ? bit : 0, bit <<= 1), ...);
        return mask;
    }();
};

namespace detail {
template <class... Given>
inline constexpr bool loss_and_pattern = false;
template <tensor_like Loss>
inline constexpr bool loss_and_pattern<Loss> = true;
template <tensor_like Loss, class Pattern>
inline constexpr bool loss_and_pattern<Loss, Pattern> = std::is_convertible_v<const Pattern&, std::string_view>;
} // namespace detail

#define TG_A_STEP_MINIMIZES                                                                                            \
    "step.minimize(loss, \"generator\") takes a scalar of the step and a pattern of variables; which optimizer: "      \
    "step.template minimize<1>(loss, \"generator\")"

/// The argument of a step in graph mode: a scope that can minimize.
class graph_step : public graph_scope {
public:
    constexpr explicit graph_step(ir::model_trace* t) : graph_scope(t, 0) {}

    /// Minimizes a scalar loss with optimizer number `Optimizer`, which changes the trainable
    /// variables whose path, or an enclosing scope's, matches the pattern. All losses and gradients
    /// of a step use the variables before it; updates apply at its end. A pattern that matches
    /// nothing and a variable that two losses would change are errors.
    template <int Optimizer = 0, tensor_like E>
    constexpr void minimize(const E& loss, std::string_view variables = "*",
                            std::source_location where = std::source_location::current()) const {
        const graph_node node = eval(loss, where);
        ir::model_trace& t = owner();
        const operand_info given = t.info(node.id());
        for (int i = 0; i < given.dims.rank(); ++i)
            if (given.dims[i].value != 1)
                return t.fail("minimize: a loss must be a scalar (reduce it, say with mean)", &given, 1);
        t.minimizations.push_back({node.id(), Optimizer, t.intern(where), variables});
    }
#ifdef TG_REFUSED
    template <int Optimizer = 0, class... Given>
        requires(!detail::loss_and_pattern<Given...>)
    TG_REFUSED(TG_A_STEP_MINIMIZES)
    constexpr void minimize(const Given&...) const {
        const ir::model_trace& t = owner(); // minimizes the last value, so that a missing loss is no second error
        owner().minimizations.push_back({t.nodes.size() - 1, Optimizer, t.line, "*"});
    }
#endif
};

namespace detail {

/// A loss that a step in eager mode minimizes.
struct eager_minimization {
    any_tensor loss;
    int optimizer;
    std::string variables;
};

} // namespace detail

/// The argument of a step in eager mode.
class eager_step : public eager_scope {
public:
    eager_step(eager_context* context, std::vector<detail::eager_minimization>* found)
        : eager_scope(context), found_(found) {}

    /// Asks for a step of optimizer `Optimizer` on the variables whose path or scope matches `variables`, to make the
    /// scalar `loss` smaller.
    template <int Optimizer = 0, tensor_like E>
    void minimize(const E& loss, std::string_view variables = "*",
                  std::source_location where = std::source_location::current()) const {
        found_->push_back({eval(loss, where), Optimizer, std::string(variables)});
    }
    template <int Optimizer = 0, class... Given>
        requires(!detail::loss_and_pattern<Given...>)
    void minimize(const Given&...) const TG_REFUSES(TG_A_STEP_MINIMIZES);

private:
    std::vector<detail::eager_minimization>* found_;
};

} // namespace tapegraph
