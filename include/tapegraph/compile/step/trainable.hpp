#pragma once

#include <tapegraph/compile/step/traces.hpp>

#include <array>
#include <string_view>
#include <tuple>

/// Shared by custom steps of both modes.

namespace tapegraph {

/// A custom step, in one of the two modes.
template <class Mode, class Step, class Spec, class Optimizers>
class compiled_step;

namespace detail {

template <class Step>
struct step_type {
    static constexpr Step get() { return Step{}; }
};

/// The common part of both modes. `Elements`: a tuple of the inputs' element types.
template <class Derived, class Spec, class Optimizers, class Trainer,
          class Elements = typename input_pack<Spec>::element_types>
class trainable_step;

template <class Derived, class Spec, class... Each, class Trainer, class... Elements>
class trainable_step<Derived, Spec, optimizers<Each...>, Trainer, std::tuple<Elements...>> : public Trainer {
public:
    trainable_step(const compile_options& options, const optimizers<Each...>& them)
        : Trainer(options), optimizers_(them) {}

    /// Takes one step. Returns the step's result, computed with the variables before it. Throws
    /// shape_error or dtype_error for inputs that do not fit; then nothing has changed.
    auto operator()(const tensor<Elements>&... x) {
        const detail::model_base::computing here(*this);
        const buffer_view columns[]{x.outline_view()...};
        Trainer::check_batch({input_table<Spec>::rows, sizeof...(Elements)}, columns);
        ++this->step_;
        try {
            return static_cast<Derived&>(*this).step_once(x...);
        } catch (...) {
            --this->step_;
            throw;
        }
    }
    /// Optimizer number I, whose numbers may be changed.
    template <int I = 0>
    auto& optimizer() {
        return std::get<I>(optimizers_.each);
    }

protected:
    // The numbers of all optimizers for the next step.
    auto next_numbers() const {
        std::array<double, (0 + ... + Each::count)> them{};
        std::size_t at = 0;
        std::apply(
            [&](const auto&... each) {
                const auto write = [&](const auto& numbers) {
                    for (const double n : numbers) them[at++] = n;
                };
                (write(each.numbers(this->step_)), ...);
            },
            optimizers_.each);
        return them;
    }
    // Sets the initial values of each optimizer's state.
    void set_first_values_of_all(const ir::model_view& view) {
        int number = 0;
        const auto set = [&](const auto& optimizer) {
            ++number;
            if constexpr (requires { optimizer.first_value(std::string_view()); })
                for (int i = 0; i < view.variables.size(); ++i)
                    if (view.definitions[i].state_of == number)
                        detail::fill_state(this->variables_.at(i), optimizer.first_value(view.variables[i].name));
        };
        std::apply([&](const auto&... each) { (set(each), ...); }, optimizers_.each);
    }

    optimizers<Each...> optimizers_;
};

} // namespace detail
} // namespace tapegraph
