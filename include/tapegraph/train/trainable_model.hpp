#pragma once

#include <tapegraph/model/eager_scope.hpp>
#include <tapegraph/model/gradient_list.hpp>
#include <tapegraph/train/fit.hpp>
#include <tapegraph/train/input_table.hpp>
#include <tapegraph/train/measured.hpp>
#include <tapegraph/train/output_hints.hpp>
#include <tapegraph/train/predict_set.hpp>
#include <tapegraph/train/refused_batch.hpp>
#include <tapegraph/train/scope_hints.hpp>

#include <initializer_list>
#include <string>
#include <vector>

namespace tapegraph {

/// A model with its loss and optimizer, in one of the two modes.
template <class Mode, class Model, class Spec, class Loss, class Optimizer>
class compiled_model;

namespace detail {

template <class Derived>
void add_shard_calls(mode_calls& calls) {
    calls.use_shards = [](model_base& m, std::int64_t batch_size, int shards) {
        return static_cast<Derived&>(m).use_shards(batch_size, shards);
    };
    calls.count_records = [](model_base& m, const data::loader& from) { static_cast<Derived&>(m).count_records(from); };
}

/// Makes the step count one ahead while it lives, for a step that is computed and not taken.
class step_ahead {
public:
    explicit step_ahead(std::int64_t& step) : step_(step) { ++step_; }
    step_ahead(const step_ahead&) = delete;
    step_ahead& operator=(const step_ahead&) = delete;
    ~step_ahead() { --step_; }

private:
    std::int64_t& step_;
};

} // namespace detail

/// The part that both modes share, on top of the mode's `step_once`, `measure_once` and
/// `predict_once`. The loops are in train/trainer.hpp, which does not depend on the model's type.
/// `Elements`: a tuple of the inputs' element types.
template <class Derived, class Spec, class Loss, class Trainer,
          class Elements = typename detail::input_pack<Spec>::element_types>
class trainable_model;

template <class Derived, class Spec, class Loss, class Trainer, class... Elements>
class trainable_model<Derived, Spec, Loss, Trainer, std::tuple<Elements...>> : public Trainer {
    using objective = detail::objective<Loss>;
    using first_element = typename detail::first_element<Elements...>::type;
    static constexpr std::size_t label_columns = static_cast<std::size_t>(objective::columns);
    static constexpr std::size_t columns_of_batch = sizeof...(Elements) + label_columns;

public:
    template <class Options>
    explicit trainable_model(const Options& options, const Loss& loss = {}) : Trainer(options), loss_(loss) {}

    /// Takes one step on tensors: the model's inputs, followed by the labels of its losses. Returns
    /// loss and accuracy before the update. Throws shape_error or dtype_error for tensors that do
    /// not fit; then nothing has changed.
    template <class... Labels>
        requires(sizeof...(Labels) == label_columns)
    step_result train_on_batch(const tensor<Elements>&... x, const tensor<Labels>&... y) {
        const buffer_view columns[]{x.view_on(this->device_)..., y.view_on(this->device_)...};
        return train_step(columns);
    }
    /// Takes one step on a batch of a loader; columns are matched as in `fit`.
    step_result train_on_batch(const data::batch& b) {
        const detail::mode_calls calls = step_calls();
        detail::column_match match(calls, b.columns());
        return this->step_with(calls, match.of(b));
    }

    /// Takes one step on a batch in memory of another owner: views of the input and of the labels.
    step_result train_step(const buffer_view& x, const buffer_view& y) {
        const buffer_view columns[]{x, y};
        return train_step(columns);
    }
    /// The same for any number of inputs, followed by labels.
    step_result train_step(const buffer_view* columns) { return this->step_with(step_calls(), columns); }

    /// The derivative of a batch's loss by each trainable variable, by path, as the next step would
    /// compute it (dropout's masks, the batch's statistics):
    /// `model.gradients(x, y)["conv/kernel"]`. Nothing changes. In graph mode it is a program of
    /// its own, compiled where this is called. Throws as train_on_batch does.
    template <class... Labels>
        requires(sizeof...(Labels) == label_columns)
    gradient_list gradients(const tensor<Elements>&... x, const tensor<Labels>&... y) {
        const buffer_view columns[]{x.view_on(this->device_)..., y.view_on(this->device_)...};
        return gradients_of(columns);
    }
    /// The same for views of the inputs, followed by labels.
    gradient_list gradients_of(const buffer_view* columns) {
        const detail::model_base::computing here(*this);
        Trainer::check_batch(batch_calls().inputs, columns);
        const detail::step_ahead next(this->step_);
        return static_cast<Derived&>(*this).gradients_once(columns);
    }
    /// The same for a batch of a loader; columns are matched as in `fit`.
    gradient_list gradients(const data::batch& b) {
        detail::column_match match(batch_calls(), b.columns());
        return gradients_of(match.of(b));
    }

    /// Trains for some epochs over a data set. Named inputs and outputs find their columns by name;
    /// otherwise the first column is the input and the second holds the labels. Callbacks follow
    /// the options, and their hooks are called in that order: train/training_state.hpp,
    /// train/callbacks/. Throws argument_error for a missing column, invalid options, and a data
    /// set without records.
    template <class... Callbacks>
    history fit(const data::dataset& train, const fit_options& options = {}, Callbacks&&... callbacks) {
        static_assert(
            (detail::training_callback<std::remove_reference_t<Callbacks>> && ...),
            "fit: a callback has none of the hooks on_train_begin, on_train_end, on_epoch_begin, on_epoch_end, "
            "on_batch_begin, on_batch_end, on_test_begin, on_test_end, on_checkpoint, each with a training_state&");
        const detail::callback_hooks hooks[]{detail::hooks_of(callbacks)..., {}};
        return fit_hooked(train, options, hooks, sizeof...(Callbacks));
    }
    /// The same for callbacks whose types are erased.
    history fit_hooked(const data::dataset& train, const fit_options& options, const detail::callback_hooks* hooks,
                       int count) {
        detail::mode_calls calls = step_calls();
        calls.measure = &measure_of;
        if constexpr (has_metrics) calls.metrics = &metrics_of;
        if constexpr (takes_weights) calls.weigh_by_class = &detail::weigh_by_class;
        if constexpr (requires(Derived & d) { d.launch_once(detail::batch_columns{}); }) {
            calls.launch = [](detail::model_base& m, detail::batch_columns columns) {
                return static_cast<Derived&>(m).launch_once(columns);
            };
            calls.result_of = [](detail::model_base& m, const detail::launched_step& s) {
                return static_cast<Derived&>(m).result_of(s);
            };
            if constexpr (requires(Derived & d) { d.launches(); }) // known only when the program runs
                if (!static_cast<Derived&>(*this).launches()) calls.launch = nullptr;
        }
        if constexpr (requires(Derived & d) { d.use_shards(std::int64_t{}, int{}); })
            detail::add_shard_calls<Derived>(calls);
        return this->fit_with(calls, train, options,
                              {hooks, count, detail::changeable_rate(static_cast<Derived&>(*this).optimizer())});
    }

    /// The same with tensors whose first axis counts the records, all inputs and then the labels:
    /// `model.fit(x, y, {.epochs = 5})`. For several columns of labels, or weights, use a data set,
    /// whose columns have names.
    template <class Label, class... Callbacks>
        requires(label_columns == 1)
    history fit(const tensor<Elements>&... x, const tensor<Label>& y, const fit_options& options = {},
                Callbacks&&... callbacks) {
        const std::string_view label = objective::column_names[0];
        return fit(records_of(x...).add(std::string(label.empty() ? "labels" : label), y), options,
                   std::forward<Callbacks>(callbacks)...);
    }
    /// The same for a model whose losses are its own and take no labels.
    template <class... Callbacks>
        requires(label_columns == 0)
    history fit(const tensor<Elements>&... x, const fit_options& options = {}, Callbacks&&... callbacks) {
        return fit(records_of(x...), options, std::forward<Callbacks>(callbacks)...);
    }

    /// Mean loss and accuracy over a data set, weighted by batch size, and metrics, if the model
    /// has some; nothing is trained. Throws as `fit` does.
    auto evaluate(const data::dataset& set, std::int64_t batch_size = 32) {
        detail::mode_calls calls = batch_calls();
        calls.measure = &measure_of;
        if constexpr (has_metrics) {
            calls.metrics = &metrics_of;
            return this->evaluate_with(calls, set, batch_size);
        } else {
            return static_cast<step_result>(this->evaluate_with(calls, set, batch_size));
        }
    }

    /// The same for several data sets, in their order: `model.evaluate({clean, noisy})`.
    auto evaluate(std::initializer_list<data::dataset> sets, std::int64_t batch_size = 32) {
        std::vector<decltype(evaluate(*sets.begin()))> results;
        for (const data::dataset& set : sets) results.push_back(evaluate(set, batch_size));
        return results;
    }

    /// Loss and accuracy of one batch, which metrics accumulate.
    template <class... Labels>
        requires(sizeof...(Labels) == label_columns)
    step_result evaluate(const tensor<Elements>&... x, const tensor<Labels>&... y) {
        const buffer_view columns[]{x.view_on(this->device_)..., y.view_on(this->device_)...};
        return evaluate_step(columns);
    }
    /// The same for views of the inputs, followed by labels.
    step_result evaluate_step(const buffer_view* columns) {
        const detail::model_base::computing here(*this);
        Trainer::check_batch(batch_calls().inputs, columns);
        return measure_of(*this, columns);
    }

    /// The model's output for a batch, outside of training: a tensor, or `outputs`. Throws
    /// shape_error for an input that does not fit. Safe from several threads at once.
    auto predict(const tensor<Elements>&... x) const {
        const detail::model_base::computing here(*this);
        const buffer_view columns[]{x.outline_view()...};
        Trainer::check_batch(batch_calls().inputs, columns);
        return static_cast<const Derived&>(*this).predict_once(x...);
    }

    /// The outputs for all records of a data set, in its order. Columns are matched as in `fit`;
    /// others are ignored.
    auto predict(const data::dataset& set, std::int64_t batch_size = 32) const {
        using result = std::remove_cvref_t<decltype(predict(std::declval<const tensor<Elements>&>()...))>;
        return detail::collected<result>::of(predict_any(set, batch_size));
    }

    /// The outputs for a batch, with element types that are values. Throws as predict does.
    std::vector<any_tensor> predict_any(std::span<const any_tensor> x) const {
        const detail::model_base::computing here(*this);
        buffer_view columns[sizeof...(Elements)];
        for (std::size_t i = 0; i < sizeof...(Elements); ++i) columns[i] = x[i].outline_view();
        Trainer::check_batch(batch_calls().inputs, columns);
        if constexpr (requires(const Derived& d) { d.predict_any_once(x); })
            return static_cast<const Derived&>(*this).predict_any_once(x);
        else
            return [&]<std::size_t... I>(std::index_sequence<I...>) {
                return detail::listed(static_cast<const Derived&>(*this).predict_once(tensor<Elements>(x[I])...));
            }
        (std::index_sequence_for<Elements...>{});
    }
    /// The same for all records of a data set.
    std::vector<any_tensor> predict_any(const data::dataset& set, std::int64_t batch_size = 32) const {
        detail::mode_calls calls = batch_calls();
        calls.labels = {};
        return detail::predict_set(
            calls, set, batch_size,
            [](const void* self, std::span<const any_tensor> x) {
                return static_cast<const trainable_model*>(self)->predict_any(x);
            },
            this);
    }

    // What is passed instead of a batch by mistake (train/refused_batch.hpp), and unknown options.
    // clang-format off
    template <class... Given>
        requires detail::given_a_range<Given...>
    refused_value predict(const Given&...) const TG_REFUSES(TG_A_RANGE_HAS_NO_SHAPE);
    template <class X, class... Labels>
        requires detail::tensor_of_another_type<X, first_element>
    refused_value predict(const X&, const Labels&...) const TG_REFUSES(TG_ANOTHER_ELEMENT_TYPE);
    template <class... Given>
        requires detail::given_a_range<Given...>
    refused_value train_on_batch(const Given&...) TG_REFUSES(TG_A_RANGE_HAS_NO_SHAPE);
    template <class X, class... Labels>
        requires detail::tensor_of_another_type<X, first_element>
    refused_value train_on_batch(const X&, const Labels&...) TG_REFUSES(TG_ANOTHER_ELEMENT_TYPE);
    template <class... Given>
        requires detail::given_a_range<Given...>
    refused_value gradients(const Given&...) TG_REFUSES(TG_A_RANGE_HAS_NO_SHAPE);
    template <class X, class... Labels>
        requires detail::tensor_of_another_type<X, first_element>
    refused_value gradients(const X&, const Labels&...) TG_REFUSES(TG_ANOTHER_ELEMENT_TYPE);
    template <class... Given>
        requires detail::given_a_range<Given...>
    refused_value evaluate(const Given&...) TG_REFUSES(TG_A_RANGE_HAS_NO_SHAPE);
    template <class X, class... Labels>
        requires detail::tensor_of_another_type<X, first_element>
    refused_value evaluate(const X&, const Labels&...) TG_REFUSES(TG_ANOTHER_ELEMENT_TYPE);
    template <class... Given>
        requires detail::tensors_of_another_count<sizeof...(Elements), Given...>
    refused_value predict(const Given&...) const TG_REFUSES(TG_COUNT_OF_INPUTS);
    template <class... Given>
        requires detail::tensors_of_another_count<columns_of_batch, Given...>
    refused_value train_on_batch(const Given&...) TG_REFUSES(TG_COUNT_OF_COLUMNS);
    template <class... Given>
        requires detail::tensors_of_another_count<columns_of_batch, Given...>
    refused_value gradients(const Given&...) TG_REFUSES(TG_COUNT_OF_COLUMNS);
    template <class... Given>
        requires detail::tensors_of_another_count<columns_of_batch, Given...>
    refused_value evaluate(const Given&...) TG_REFUSES(TG_COUNT_OF_COLUMNS);
    template <class... Given>
        requires detail::tensors_of_another_count<columns_of_batch, Given...>
    refused_value fit(const Given&...) TG_REFUSES(TG_COUNT_OF_COLUMNS);
    template <handle X>
        requires(columns_of_batch != 1)
    detail::columns_missing fit(const X&, const fit_options&) TG_MISTAKE;
    template <handle X, handle Y>
        requires(columns_of_batch != 2)
    detail::columns_missing fit(const X&, const Y&, const fit_options&) TG_MISTAKE;
    template <handle X, handle Y, handle Z>
        requires(columns_of_batch != 3)
    detail::columns_missing fit(const X&, const Y&, const Z&, const fit_options&) TG_MISTAKE;
    detail::batch_size_given evaluate(any_argument, detail::batch_size_in_braces) TG_MISTAKE;
    detail::batch_size_given evaluate(any_argument, any_argument, detail::batch_size_in_braces) TG_MISTAKE;
    detail::batch_size_given predict(any_argument, detail::batch_size_in_braces) const TG_MISTAKE;
    template <class X, class Y>
        requires detail::given_a_range<X, Y>
    detail::range_given fit(const X&, const Y&, ...) TG_MISTAKE;
    template <class X>
        requires detail::tensor_of_another_type<X, first_element>
    detail::another_type_given fit(const X&, any_argument, ...) TG_MISTAKE;
    no_such_option_in<fit_options> fit(any_argument, ...) TG_MISTAKE;
    no_such_option_in<fit_options> fit(any_argument, any_argument, ...) TG_MISTAKE;
    // clang-format on

    /// The loss, whose numbers may change between steps.
    auto& loss() {
        if constexpr (requires { loss_.metrics; })
            return loss_.loss; // it is stored with the metrics
        else
            return loss_;
    }

    /// Metrics by name: their values since the epoch began, or since reset_metrics().
    std::vector<named_value> metrics() const {
        std::vector<named_value> values;
        metrics_of(*this, values);
        return values;
    }
    using Trainer::reset_metrics;

protected:
    using loss_numbers = std::array<double, static_cast<std::size_t>(objective::count)>;
    loss_numbers numbers_of_loss() const {
        loss_numbers numbers{};
        double* to = numbers.data();
        objective::write(loss_, to);
        return numbers;
    }

    /// Prints hints about probable mistakes in outputs and losses, and in scopes
    /// (train/output_hints.hpp, train/scope_hints.hpp).
    template <class Model>
    static void look_at_outputs() {
        using parts = detail::hinted_parts<Loss>;
        static constexpr ir::model_view view =
            ir::stage_view<ir::traced_stage<ir::prediction_trace<Model, Spec, true>>>();
        detail::hint_of_outputs(view, parts::all.data(), parts::all.size());
        detail::hint_of_scopes(view);
    }

private:
    // Whether there is something to measure besides loss and accuracy.
    static constexpr bool has_metrics = objective::has_results;
    static constexpr bool takes_weights = [] {
        bool weighted = false;
        for (int k = 0; k < objective::columns; ++k)
            weighted = weighted || objective::column_names[k] == "sample_weight";
        return weighted;
    }();
    static data::dataset records_of(const tensor<Elements>&... x) {
        data::dataset records;
        std::size_t k = 0;
        const auto add = [&](const auto& each) {
            const std::string_view name = detail::input_table<Spec>::rows[k++].name;
            records.add(std::string(name.empty() ? "input" : name), each);
        };
        (add(x), ...);
        return records;
    }
    static detail::mode_calls batch_calls() {
        detail::mode_calls calls;
        calls.inputs = {detail::input_table<Spec>::rows, sizeof...(Elements)};
        calls.labels = {std::data(objective::column_names), static_cast<std::size_t>(objective::columns)};
        return calls;
    }
    static detail::mode_calls step_calls() {
        detail::mode_calls calls = batch_calls();
        calls.step = [](detail::model_base& m, detail::batch_columns columns) {
            return with_column_named(columns, [&] { return static_cast<Derived&>(m).step_once(columns); });
        };
        return calls;
    }
    // An index outside its range is an operation's error. If the index is in a column of the batch,
    // the error names that column, too.
    template <class F>
    static step_result with_column_named(detail::batch_columns columns, const F& f) {
        try {
            return f();
        } catch (const index_error& e) {
            detail::name_column(batch_calls(), columns, &ir::labels_name<Loss>, e);
            throw;
        }
    }
    static step_result measure_of(detail::model_base& m, detail::batch_columns columns) {
        return with_column_named(columns, [&] { return static_cast<Derived&>(m).measure_once(columns); });
    }
    static void metrics_of(const detail::model_base& m, std::vector<named_value>& to) {
        objective::results(static_cast<const Derived&>(m).loss_, [&](std::string_view name, const auto& result) {
            const detail::stored_metric stored(m.variables(), name);
            if (!stored.found()) return;
            to.push_back({std::string(name), result(stored.values())});
        });
    }

    Loss loss_;
};

} // namespace tapegraph
