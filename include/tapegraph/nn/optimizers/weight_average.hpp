#pragma once

#include <tapegraph/model/variables.hpp>
#include <tapegraph/nn/optimizers/chain.hpp>

namespace tapegraph {

/// An exponential moving average of the weights, a <- decay a + (1 - decay) w, which starts as the
/// weights of the first step (Keras's use_ema). It is the variable "PATH/average", `unset` until
/// the first step; `averaged_weights` replaces weights by averages.
struct weight_average {
    hyperparameter decay = 0.99;

    static constexpr auto role = chain_role::weights;
    static constexpr std::string_view state_name = "average";
    /// Marks a missing average. It is a number rather than NaN, which check_finite would report in
    /// steps that a gate suspends.
    static constexpr double unset = -0x1p127;
    /// Whether an element of the state is an average, not `unset`.
    static constexpr bool is_set(double average) { return average > unset; }
    static constexpr int count = 1;
    std::array<double, count> numbers(std::int64_t step) const {
        const double d = decay.used(step, "weight_average", "decay");
        if (d > 1) hyperparameter::refuse(d, step, "weight_average", "decay", "must be at most 1");
        return {1 - d};
    }
    double first_value(std::string_view state) const { return state == state_name ? unset : 0; }
    static constexpr auto after(const auto& slots, const auto& w, const auto& next, const auto& n) {
        const auto average = slots.state(w, state_name);
        slots.assign(average, where(average > unset, average + n[0] * (next - average), next));
        return next;
    }
};

/// Exchanges weights and averages while it lives, or until `restore()`: evaluate, predict and save
/// then use the averages. Weights that no step has updated yet stay. Do not train meanwhile. Throws
/// argument_error where there is no average.
class averaged_weights {
public:
    explicit averaged_weights(variable_list& variables) : variables_(&variables) {
        if (exchange(variables) == 0)
            throw argument_error("averaged_weights: no variable has an average, is there a weight_average?");
    }
    averaged_weights(const averaged_weights&) = delete;
    averaged_weights& operator=(const averaged_weights&) = delete;
    ~averaged_weights() { restore(); }

    /// Gives the variables the weights they had; once, or when this object ends.
    void restore() {
        if (variables_ != nullptr) exchange(*variables_);
        variables_ = nullptr;
    }
    /// Leaves the averages in place of the weights (Keras's finalize_variable_values).
    void keep() { variables_ = nullptr; }

private:
    template <class T>
    static void exchange(variable& w, variable& average) {
        T *const a = static_cast<T*>(w.overwrite()), *const b = static_cast<T*>(average.overwrite());
        for (std::int64_t i = 0; i < w.size(); ++i)
            if (weight_average::is_set(static_cast<double>(b[i]))) std::swap(a[i], b[i]);
    }
    static int exchange(variable_list& variables) {
        int count = 0;
        for (variable& w : variables) {
            if (w.optimizer_state()) continue;
            variable* const average = variables.find(w.path() + "/average");
            if (average == nullptr || !average->optimizer_state()) continue;
            if (average->size() != w.size())
                throw argument_error("averaged_weights: '" + average->path() + "' has the " +
                                     std::to_string(average->size()) + " elements of one rank's slices; " +
                                     "gather_optimizer_state() on every rank first");
            if (w.type() == dtype::f64)
                exchange<double>(w, *average);
            else
                exchange<float>(w, *average);
            ++count;
        }
        return count;
    }

    variable_list* variables_;
};

} // namespace tapegraph
