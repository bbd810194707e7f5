#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/nn/optimizers/chain.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

#include <cmath>
#include <string>

/// Dynamic loss scaling, for models that compute in half (nn/mixed_precision.hpp). Not part of tapegraph.hpp.

namespace tapegraph {

/// The first element of a chain: gradients are taken of the loss times a scale, so that small ones
/// do not vanish in half, and divided by it before other elements receive them (Micikevicius and
/// others 2018; Keras's LossScaleOptimizer). In a step in which some gradient is not finite, later
/// elements change neither weights nor optimizer state, and the scale is halved; after
/// `growth_steps` steps without one it doubles. The scale is at least 1, as in TensorFlow, and at
/// most 2^64, whose inverse is a normal float.
///
///     tg::chain{tg::loss_scaling{}, tg::adam{.learning_rate = 1e-3}}
///
/// The scale belongs to the optimizer: `model.variables()["loss_scale"]`, a scalar, as does
/// "loss_scale_good_steps", the finite steps since it changed. Skipped steps count as with
/// skip_nonfinite. In a step of several optimizers each has a scale of its own
/// (docs/mixed_precision.md).
struct loss_scaling {
    double initial_scale = 32768;     ///< 2^15; powers of two scale without rounding
    std::int64_t growth_steps = 2000; ///< Keras's dynamic_growth_steps

    static constexpr auto role = chain_role::gradient;
    static constexpr bool shares = true, scales_loss = true;
    static constexpr int count = 1;
    std::array<double, count> numbers(std::int64_t) const {
        if (!(initial_scale >= 1 && initial_scale <= most))
            throw argument_error("loss_scaling: initial_scale must lie in [1, 2^64], given " +
                                 number_text(initial_scale));
        if (growth_steps < 1)
            throw argument_error("loss_scaling: growth_steps must be positive, given " + std::to_string(growth_steps));
        return {static_cast<double>(growth_steps)};
    }
    double first_value(std::string_view state) const { return state == detail::loss_scale_name ? initial_scale : 0; }

    /// The scale, and whether all gradients are finite.
    template <class Scale, class Finite>
    struct common {
        Scale scale;
        Finite finite;
    };
    static constexpr auto shared(const auto& gradients, const auto& n) {
        using step = std::remove_cvref_t<decltype(gradients)>;
        if constexpr (!requires { gradients.common(detail::loss_scale_name); }) {
            static_assert(always_false<step>,
                          "loss_scaling: nothing scales the loss here");
        } else {
            const auto scale = gradients.common(detail::loss_scale_name);
            const auto steps = gradients.common(detail::good_steps_name);
            const auto finite =
                eval(gradients.sum([](const auto&, const auto&, const auto& g) { return sum(g * 0); }) == 0);
            const auto grows = eval(steps + 1 >= n[0]);
            const auto next = where(grows, minimum(scale * 2, most), scale);
            gradients.assign_common(detail::loss_scale_name, scale, where(finite, next, maximum(scale * 0.5, 1)));
            gradients.assign_common(detail::good_steps_name, steps, where(finite, where(grows, 0, steps + 1), 0));
            return common<std::remove_const_t<decltype(scale)>, std::remove_const_t<decltype(finite)>>{scale, finite};
        }
    }
    static constexpr auto transform(const auto&, const auto&, const auto& g, const auto&, const auto& s) {
        return g / detail::as_type_of(g, s.scale);
    }
    static constexpr auto gate(const auto&, const auto& s) { return s.finite; }

private:
    static constexpr double most = 18446744073709551616.0;
};

} // namespace tapegraph
