#pragma once

#include <tapegraph/nn/optimizers/adamw.hpp>
#include <tapegraph/nn/optimizers/length.hpp>
#include <tapegraph/nn/optimizers/sparse.hpp>
#include <tapegraph/ops/movement/layout.hpp>
#include <tapegraph/ops/product/matmul.hpp>

#include <algorithm>

namespace tapegraph {

namespace detail {
/// An approximation of U V^T for the singular value decomposition U S V^T of a matrix, by `Steps`
/// steps of the quintic iteration X <- a X + (b X X^T + c (X X^T)^2) X from X = x / |x| (Jordan et
/// al. 2024). Internally the longer axis is the last.
template <int Steps>
constexpr auto orthogonalized(const auto& x) {
    constexpr double a = 3.4445, b = -4.7750, c = 2.0315;
    const shape dims = shape_of(x);
    const bool tall = dims[0].value > dims[1].value;
    auto y = tall ? eval(transpose(x)) : x;
    const auto length = whole_length(y);
    y = eval(y / (length + 1e-7));
    for (int i = 0; i < Steps; ++i) {
        const auto s = matmul(y, y, {.transpose_b = true});
        const auto squares = matmul(s, s);
        const auto polynomial = eval(b * s + c * squares);
        const auto product = matmul(polynomial, y);
        y = eval(a * y + product);
    }
    return tall ? eval(transpose(y)) : y;
}
} // namespace detail

/// Muon (Jordan et al. 2024) in Keras's form: for a matrix m <- momentum m + g, u = orthogonalized(g + momentum m),
/// w <- w - learning_rate weight_decay w, w <- w - learning_rate rms_rate sqrt(max(rows, columns)) u. AdamW updates everything else:
/// variables of another rank, sparse rows, and those that `Adam` names.
template <class Adam = only<"*embedding*">>
struct basic_muon {
    hyperparameter learning_rate = 0.001;
    hyperparameter weight_decay = 0.004, momentum = 0.95, rms_rate = 0.2;
    hyperparameter adam_beta1 = 0.9, adam_beta2 = 0.999, adam_weight_decay = 0.004, adam_lr_ratio = 1;
    hyperparameter epsilon = 1e-7;
    static constexpr int steps = 5;

    static constexpr int count = 9;
    std::array<double, count> numbers(std::int64_t step) const {
        const double rate = learning_rate.used(step, "muon", "learning_rate");
        const double b1 = adam_beta1.used_below_one(step, "muon", "adam_beta1");
        const double b2 = adam_beta2.used_below_one(step, "muon", "adam_beta2");
        const double adam_rate = rate * adam_lr_ratio.used(step, "muon", "adam_lr_ratio");
        return {detail::adam_step_size(adam_rate, b1, b2, step),
                1 - b1,
                1 - b2,
                epsilon.used(step, "muon", "epsilon"),
                rate * adam_weight_decay.used(step, "muon", "adam_weight_decay"),
                rate * weight_decay.used(step, "muon", "weight_decay"),
                momentum.used(step, "muon", "momentum"),
                rate,
                rms_rate.used(step, "muon", "rms_rate")};
    }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const shape dims = shape_of(w);
        if (detail::by_rows<std::remove_cvref_t<decltype(slots)>> || dims.rank() != 2 || Adam::holds(slots)) {
            basic_adamw<>::update(slots, w, g, n);
            return;
        }
        const auto m = slots.state(w, "muon_momentum");
        const auto next = eval(m + (g + m * (n[6] - 1)));
        slots.assign(m, next);
        const auto u = detail::orthogonalized<steps>(eval(g + n[6] * next));
        const double longer = static_cast<double>(std::max(dims[0].value, dims[1].value));
        // A constant, the same in both modes: constant evaluation has no std::sqrt.
        const double scale = math::sqrt(longer);
        slots.assign(w, (w - w * n[5]) - n[7] * u * scale * n[8]);
    }
};
using muon = basic_muon<>;

} // namespace tapegraph
