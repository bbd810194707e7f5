#pragma once

#include <tapegraph/compile/eager_model.hpp>
#include <tapegraph/compile/step/trainable.hpp>
#include <tapegraph/graph/input_rules.hpp>

#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tapegraph {

template <class Step, class Spec, class Optimizers>
class compiled_step<eager, Step, Spec, Optimizers>
    : public detail::trainable_step<compiled_step<eager, Step, Spec, Optimizers>, Spec, Optimizers,
                                    detail::trainer_base> {
    using base = detail::trainable_step<compiled_step, Spec, Optimizers, detail::trainer_base>;
    using value = typename decltype(detail::model_value_type<Spec, ir::step_trace<Step, Spec>>())::type;
    using training = ir::step_updates<Step, Spec, Optimizers>;
    struct forward { // the results of the step's forward pass
        static constexpr auto used = ir::traced_stage<ir::step_trace<Step, Spec>>::value.used;
    };

public:
    compiled_step(const compile_options& options, const Optimizers& them) : base(options, them) {
        this->template set_up_traces<ir::step_trace<Step, Spec>, training>(true);
        this->set_first_values_of_all(ir::stage_view<ir::traced_stage<training>>());
    }

private:
    friend base;
    template <class... T>
    auto step_once(const tensor<T>&... x) {
        static const ir::input_rules rules(ir::stage_view<ir::traced_stage<training>>());
        const buffer_view columns[]{x.outline_view()...};
        rules.check(columns);
        const detail::numeric_check check(this->options_.check_finite);
        context_.variables = &this->variables_;
        context_.begin(true, random_state{this->options_.seed, static_cast<std::uint64_t>(this->step_)});
        const detail::random_scope draws(context_.random);
        std::vector<detail::eager_minimization> found;
        gradient_tape tape({.persistent = true});
        auto result = detail::sealed_result(Step::get()(eager_step(&context_, &found), x...));
        if constexpr (forward::used.regularizers > 0)
            for (std::size_t k = 0; k < found.size(); ++k)
                found[k].loss = detail::penalties<Step>::template added_to<value>(
                    context_, tensor<value>(found[k].loss), [&](const variable& v) { return changes(k, v); });
        if constexpr (Optimizers::scaled != 0)
            for (detail::eager_minimization& m : found)
                if ((Optimizers::scaled >> m.optimizer & 1) != 0) m.loss = scaled(m);
        tape.stop_recording();
        std::vector<updates> them(found.size());
        for (std::size_t k = 0; k < found.size(); ++k) them[k] = differentiate(tape, found[k], k);
        int number = 0;
        std::apply(
            [&](const auto&... each) { (update<std::remove_cvref_t<decltype(each)>>(them, each, number++), ...); },
            this->optimizers_.each);
        them.clear();
        if constexpr (forward::used.constraints > 0) detail::projections<Step>::template apply<value>(context_);
        context_.apply();
        return off_tape(std::move(result));
    }

    struct updates {
        std::vector<variable*> targets;
        std::vector<any_tensor> sources, gradients;
        int optimizer = 0;
    };
    // Whether loss number k updates a variable, as found by the trace.
    bool changes(std::size_t k, const variable& v) const {
        using stage = ir::traced_stage<ir::step_gradients<Step, Spec, Optimizers::scaled>>;
        for (int i = 0; i < stage::value.used.gradients; ++i)
            if (const ir::gradient_entry& g = stage::value.gradients[i]; &this->variables_.at(g.variable) == &v)
                return g.loss == static_cast<int>(k);
        return false;
    }
    // The path of an optimizer's scale of the loss; see ir::step_scale_scope.
    static std::string scale_path(int optimizer) {
        return optimizer == 0 ? std::string() : "optimizer/" + std::to_string(optimizer) + "/";
    }
    any_tensor scaled(const detail::eager_minimization& m) {
        const variable& scale = this->variables_[scale_path(m.optimizer) + std::string(detail::loss_scale_name)];
        const auto times = [&](const auto& loss) {
            return any_tensor(eval(loss * detail::as_type_of(loss, tensor<value>(scale.data()))));
        };
        return m.loss.type() == dtype::f64 ? times(tensor<double>(m.loss)) : times(tensor<float>(m.loss));
    }
    updates differentiate(gradient_tape& tape, const detail::eager_minimization& m, std::size_t k) {
        updates u;
        u.optimizer = m.optimizer;
        for (const auto& used : context_.used) {
            if (!detail::tape_storage::instance().knows(used.handle.tape_index()) || !changes(k, *used.target))
                continue;
            u.sources.push_back(used.handle);
            u.targets.push_back(used.target);
        }
        u.gradients = tape.gradient(m.loss, u.sources);
        return u;
    }
    // Computes gradients in the order of the losses, for each with the variables in their order, as
    // graph mode does.
    template <class Optimizer>
    void update(std::vector<updates>& them, const Optimizer& optimizer, int number) {
        const auto numbers = optimizer.numbers(this->step_);
        std::array<typed_number<value>, static_cast<std::size_t>(Optimizer::count)> n;
        for (std::size_t i = 0; i < n.size(); ++i) n[i] = {static_cast<value>(numbers[i])};
        updates own;
        for (updates& u : them) {
            if (u.optimizer != number) continue;
            for (std::size_t k = 0; k < u.targets.size(); ++k) {
                own.targets.push_back(u.targets[k]);
                own.sources.push_back(std::move(u.sources[k]));
                own.gradients.push_back(std::move(u.gradients[k]));
            }
        }
        if (own.targets.empty()) return;
        const std::string common = scale_path(number);
        const detail::eager_gradients<value, false> step{
            detail::eager_slots(&this->variables_, &context_.updates, common), &own.targets, &own.sources,
            &own.gradients, &context_.row_uses};
        detail::update_all<Optimizer>(step, n);
    }
    template <class R>
    static R off_tape(R result) {
        if constexpr (detail::is_outputs<R>)
            std::apply([](auto&... each) { (each.value.set_tape_index({}), ...); }, result.items);
        else
            result.set_tape_index({});
        return result;
    }

    eager_context context_;
};

} // namespace tapegraph
