#pragma once

#include <tapegraph/graph/input_rules.hpp>
#include <tapegraph/nn/optimizers/eager_slots.hpp>
#include <tapegraph/train/trainable_model.hpp>

#include <algorithm>

namespace tapegraph {

namespace ir {

/// Whether any variable has a regularizer, or a constraint.
template <class Model, class Spec, class Loss>
inline constexpr bool regularizes = traced_stage<forward_trace<Model, Spec, Loss>>::value.used.regularizers > 0;
template <class Model, class Spec, class Loss>
inline constexpr bool constrains = traced_stage<forward_trace<Model, Spec, Loss>>::value.used.constraints > 0;

} // namespace ir

namespace detail {

/// A tensor over a copy of a batch's memory, with elements of type T.
template <class T>
tensor<T> batch_tensor(const buffer_view& v) {
    auto t = tensor<T>::uninitialized(shape(v.rank, v.extents));
    if (v.memory == 0)
        std::memcpy(t.mutable_data(), v.data, v.bytes());
    else
        runtime::current_runtime()->copy(t.view().data, v.data, v.bytes());
    return t;
}

TG_COMPILED(nn, tensor<float> batch_tensor<float>(const buffer_view&))

/// Eager mode without the training step: the model runs statement by statement and a tape records
/// it.
template <class Derived, class Trainer, class Model, class Spec, class Loss, class Optimizer>
class basic_eager_model : public trainable_model<Derived, Spec, Loss, Trainer> {
public:
    Optimizer& optimizer() { return optimizer_; }

protected:
    using base = trainable_model<Derived, Spec, Loss, Trainer>;
    using value = typename decltype(model_value_type<Spec, ir::prediction_trace<Model, Spec, true>>())::type;
    using pack = input_pack<Spec>;
    using objective = detail::objective<Loss>;
    friend base;

    template <class Options>
    basic_eager_model(const Options& options, const Loss& loss, const Optimizer& optimizer)
        : base(options, loss), optimizer_(optimizer) {
        this->template set_up<Model, Spec,
                              std::conditional_t<std::is_same_v<Optimizer, none>, ir::prediction_trace<Model, Spec>,
                                                 ir::training_trace<Model, Spec, Loss, Optimizer>>>();
        this->set_first_values(optimizer_);
        if constexpr (!std::is_same_v<Optimizer, none>) this->template look_at_outputs<Model>();
    }

    eager_context& begin(bool training) {
        context_.variables = &this->variables_;
        context_.begin(training, random_state{this->options_.seed, static_cast<std::uint64_t>(this->step_)});
        return context_;
    }

    // Loss and gradients of a batch; the pending updates are in the context.
    struct differentiated {
        step_result result;
        std::vector<any_tensor> sources, gradients;
        std::vector<variable*> targets;
    };
    // With `Scaled`, differentiates the loss times the optimizer's scale; with a share, that part
    // of it.
    template <bool Scaled>
    differentiated differentiate(eager_context& context, detail::batch_columns columns,
                                 [[maybe_unused]] const auto&... share) {
        differentiated found;
        gradient_tape tape;
        const auto output = call_model(context, columns);
        detail::numeric_check::enter({});
        const auto labels = labels_of(output, columns + pack::count);
        const auto numbers = typed_numbers(this->numbers_of_loss());
        const auto goal = value_of(output, labels, numbers);
        const auto total = total_of(context, goal.total);
        const any_tensor loss = total;
        any_tensor scaled = loss;
        const auto& part = part_of(total, share...);
        if constexpr (Scaled)
            scaled =
                eval(part * detail::as_type_of(part, tensor<value>(this->variables_[detail::loss_scale_name].data())));
        else if constexpr (sizeof...(share) > 0)
            scaled = part;
        tape.stop_recording();
        const any_tensor accuracy = accuracy_of(output, labels);
        objective::measure(detail::eager_metrics(&context), output, labels, goal, numbers);
        // Updates only variables on which the loss depends, as found by the trace.
        using stage = ir::traced_stage<ir::gradient_trace<Model, Spec, Loss, Scaled>>;
        std::size_t next = 0;
        for (int i = 0; i < stage::value.used.gradients; ++i) {
            const variable* const wanted = &this->variables_.at(stage::value.gradients[i].variable);
            for (std::size_t tried = 0; tried < context.used.size(); ++tried) {
                const auto& u = context.used[next++ % context.used.size()]; // usually in the same order
                if (u.target != wanted) continue;
                if (!detail::tape_storage::instance().knows(u.handle.tape_index())) break;
                found.sources.push_back(u.handle);
                found.targets.push_back(u.target);
                break;
            }
        }
        for (const auto& u : context.row_uses) found.sources.push_back(u.rows);
        found.gradients = tape.gradient(scaled, found.sources);
        found.result =
            numbers_of(loss, accuracy); // before any variable is updated, because this throws a device's errors
        return found;
    }
    template <class T>
    static const tensor<T>& part_of(const tensor<T>& total) {
        return total;
    }
    template <class T>
    static tensor<T> part_of(const tensor<T>& total, double share) {
        return eval(total * typed_number<T>{static_cast<T>(share)});
    }
    // A template, because its result type exists only where there is a loss.
    auto gradients_in(differentiated& found, eager_context& context, bool in_place = false) {
        return detail::eager_gradients<value, ir::gathers_rows<Model, Spec, Loss>>{
            detail::eager_slots(&this->variables_, &context.updates),
            &found.targets,
            &found.sources,
            &found.gradients,
            &context.row_uses,
            in_place};
    }

    // The differentiated values in the form that gradients() returns.
    gradient_list listed(differentiated& found, eager_context& context) {
        struct flow_of {
            variable* target;
            any_tensor value, rows, indices;
        };
        std::vector<flow_of> flows;
        gradients_in(found, context).each([&](const auto& slots, const auto&, const auto& g) {
            if constexpr (requires { slots.sparse; })
                flows.push_back({slots.target(), slots.whole(g), g, slots.indices()});
            else
                flows.push_back({slots.target(), g, {}, {}});
        });
        gradient_list list;
        for (const auto& u : context.updates)
            if (!u.target->metric_state() && !u.target->frozen()) list.add_assigned(u.target->path(), u.value);
        context.begin(false, {}); // discards the pending updates
        list.loss = found.result.loss;
        list.accuracy = found.result.accuracy;
        for (variable& v : this->variables_) {
            if (!v.trainable()) continue;
            const auto flow = std::find_if(flows.begin(), flows.end(), [&](const auto& f) { return f.target == &v; });
            list.add(v.path(), flow == flows.end() ? any_tensor() : flow->value, v.type(), v.shape());
            if (flow != flows.end() && flow->indices.has_storage())
                list.add_rows(flow->rows.view_on(nullptr), flow->indices.view_on(nullptr), true);
        }
        return list;
    }

    step_result measure_once(detail::batch_columns columns) {
        check_inputs<ir::forward_trace<Model, Spec, Loss>>(columns, pack::count + objective::columns);
        eager_context& context = begin(false);
        const detail::random_scope draws(context.random);
        const auto output = call_model(context, columns);
        const auto labels = labels_of(output, columns + pack::count);
        const auto numbers = typed_numbers(this->numbers_of_loss());
        const auto goal = value_of(output, labels, numbers);
        const step_result result = numbers_of(total_of(context, goal.total), accuracy_of(output, labels));
        objective::measure(detail::eager_metrics(&context), output, labels, goal, numbers);
        context.apply();
        return result;
    }

    template <class... T>
    auto predict_once(const tensor<T>&... x) const {
        const buffer_view columns[]{x.outline_view()...};
        check_inputs<ir::prediction_trace<Model, Spec, true>>(columns, pack::count);
        eager_context context;
        context.variables = const_cast<variable_list*>(&this->variables_); // every variable exists: nothing is added
        context.begin(false, random_state{this->options_.seed, static_cast<std::uint64_t>(this->step_)});
        const detail::random_scope draws(context.random);
        return detail::sealed_result(Model::get()(eager_scope(&context), x...));
    }

    // Runs the model on a copy of a batch's inputs, and adds the penalties of its regularizers to
    // its loss.
    static auto call_model(eager_context& context, detail::batch_columns columns) {
        const auto output = [&]<std::size_t... I>(std::index_sequence<I...>) {
            return detail::sealed_output(Model::get()(
                eager_scope(&context),
                detail::batch_tensor<std::tuple_element_t<I, typename pack::element_types>>(columns[I])...));
        }
        (std::make_index_sequence<static_cast<std::size_t>(pack::count)>{});
        if constexpr (ir::regularizes<Model, Spec, Loss>) detail::penalties<Model>::template add<value>(context);
        return output;
    }
    // Converts labels to the element types that the losses require.
    template <class Y>
    static auto labels_of(const Y&, detail::batch_columns columns) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return std::tuple{detail::batch_tensor<element_t<label_type<Y, I>>>(columns[I])...};
        }
        (std::make_index_sequence<static_cast<std::size_t>(objective::columns)>{});
    }
    template <class Y, std::size_t Column>
    static constexpr dtype label_type = [] {
        using outputs = detail::output_pack<Y>;
        return []<std::size_t... K>(std::index_sequence<K...>) {
            const tensor_spec specs[]{{dtype_of<typename outputs::template type<K>::element_type>, shape{}}...};
            return objective::template column<Y>(static_cast<int>(Column), specs).type;
        }
        (std::make_index_sequence<outputs::count>{});
    }();
    template <std::size_t Count>
    static auto typed_numbers(const std::array<double, Count>& numbers) {
        std::array<typed_number<value>, Count> n;
        for (std::size_t i = 0; i < Count; ++i) n[i] = {static_cast<value>(numbers[i])};
        return n;
    }
    template <class Y, class Z, class N>
    static auto value_of(const Y& y, const Z& z, const N& n) {
        if constexpr (objective::added_only)
            return detail::objective_value<tensor<value>, std::tuple<>>{tensor<value>(value(0)), {}};
        else
            return objective::value(y, z, n);
    }
    // The losses that the model adds.
    template <class T>
    static tensor<T> total_of(const eager_context& context, tensor<T> loss) {
        for (const any_tensor& each : context.losses) loss = eval(loss + tensor<T>(each));
        return loss;
    }

    // Checks inputs like graph mode's programs, with the same messages.
    template <class Trace>
    static void check_inputs(detail::batch_columns columns, int count) {
        static const ir::input_rules rules(ir::stage_view<ir::traced_stage<Trace>>());
        rules.check({columns, static_cast<std::size_t>(count)});
    }
    /// The result has no buffer where the loss does not define an accuracy.
    template <class Y, class Z>
    static any_tensor accuracy_of(const Y& output, const Z& labels) {
        const auto accuracy = objective::accuracy(output, labels);
        if constexpr (std::is_same_v<std::remove_cv_t<decltype(accuracy)>, none>)
            return {};
        else
            return accuracy;
    }
    static step_result numbers_of(const any_tensor& loss, const any_tensor& accuracy) {
        const buffer_view views[]{loss.view(), accuracy.view()};
        double numbers[2]{};
        runtime::load_scalars(runtime::current_runtime(), views, accuracy.has_storage() ? 2 : 1, numbers);
        return {numbers[0], numbers[1]};
    }
    Optimizer optimizer_;
    eager_context context_;
};

} // namespace detail

/// A model in eager mode: the optimizer updates the variables after each step's tape.
template <class Model, class Spec, class Loss, class Optimizer>
class compiled_model<eager, Model, Spec, Loss, Optimizer>
    : public detail::basic_eager_model<compiled_model<eager, Model, Spec, Loss, Optimizer>, detail::trainer_base, Model,
                                       Spec, Loss, Optimizer> {
    using base = detail::basic_eager_model<compiled_model, detail::trainer_base, Model, Spec, Loss, Optimizer>;
    using typename base::differentiated, typename base::objective, typename base::pack, typename base::value;
    template <class, class, class, class, class>
    friend class trainable_model;

public:
    compiled_model(const compile_options& options, const Loss& loss, const Optimizer& optimizer)
        : base(options, loss, optimizer) {}

private:
    step_result step_once(detail::batch_columns columns) {
        this->template check_inputs<ir::training_trace<Model, Spec, Loss, Optimizer>>(columns,
                                                                                      pack::count + objective::columns);
        const detail::numeric_check check(this->options_.check_finite);
        eager_context& context = this->begin(true);
        const detail::random_scope draws(context.random);
        differentiated found = this->template differentiate<detail::scales_loss<Optimizer>()>(context, columns);
        const auto n = base::typed_numbers(this->optimizer_.numbers(this->step_));
        constexpr bool in_place = !ir::constrains<Model, Spec, Loss>;
        if (in_place)
            for (auto& u : context.used) u.handle.drop_storage();
        detail::update_all<Optimizer>(this->gradients_in(found, context, in_place), n);
        found.sources.clear();
        if constexpr (!in_place) detail::projections<Model>::template apply<value>(context);
        context.apply();
        return found.result;
    }

    gradient_list gradients_once(detail::batch_columns columns) {
        static_assert(!std::is_same_v<Optimizer, none>, "gradients: this model has no loss");
        this->template check_inputs<ir::training_trace<Model, Spec, Loss, Optimizer>>(columns,
                                                                                      pack::count + objective::columns);
        const detail::numeric_check check(this->options_.check_finite);
        eager_context& context = this->begin(true);
        const detail::random_scope draws(context.random);
        differentiated found = this->template differentiate<false>(context, columns);
        return this->listed(found, context);
    }
};

} // namespace tapegraph
