#pragma once

#include <tapegraph/any_model/model_interface.hpp>
#include <tapegraph/data/dataset.hpp>
#include <tapegraph/model/gradient_list.hpp>
#include <tapegraph/train/fit_options.hpp>
#include <tapegraph/train/history.hpp>
#include <tapegraph/train/tensor_columns.hpp>

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// A model whose type is hidden. This header knows no layers, no modes and no templates of models:
/// an application includes it wherever it uses a model, and any_model/hidden_model.hpp, too, in the
/// one source that compiles it.

namespace tapegraph {

/// Holds what `compile` returns, of any mode, model, loss and optimizer, as one type.
///
///     // classifier.cpp
///     #include <tapegraph/traced.hpp>
///     #include <tapegraph/any_model/hidden_model.hpp>
///     tg::any_model classifier() { return tg::compile<tg::traced>(mlp{}, spec{}, loss{}, tg::adam{}); }
///
///     // elsewhere
///     ///     tg::any_model model = classifier();
///     model.fit(x, y, {.epochs = 5});
///     const tg::tensor<float> scores = model.predict(x);
///
/// Everything has the bits of the model inside. Inputs are tensors in the model's order, followed
/// by labels, or given by name: `{{"image", x}, {"labels", y}}`. Errors are those of compiled
/// models; a wrong number of tensors, or a name that the model lacks, is an argument_error. An
/// any_model that holds no model, because it is new or has been moved from, throws argument_error.
class any_model {
public:
    any_model() = default;
    /// Moves a compiled model in. Needs #include <tapegraph/any_model/hidden_model.hpp>.
    template <class Model>
        requires(!std::is_lvalue_reference_v<Model> && std::is_base_of_v<detail::model_base, Model>)
    any_model(Model&& model) { // NOLINT: for `tg::any_model m = tg::compile<...>(...)`
        static_assert(
            requires { sizeof(detail::hidden_model<Model>); },
            "any_model: needs #include <tapegraph/any_model/hidden_model.hpp> where a model is moved in");
        if constexpr (requires { sizeof(detail::hidden_model<Model>); })
            model_ = std::make_unique<detail::hidden_model<Model>>(std::move(model));
    }
    /// Takes your own implementation.
    explicit any_model(std::unique_ptr<detail::model_interface> model) : model_(std::move(model)) {}

    /// Whether it holds a model.
    explicit operator bool() const { return model_ != nullptr; }
    /// "graph", "eager", "traced".
    std::string_view mode() const { return held().mode(); }
    /// Whether it was compiled with a loss and an optimizer; otherwise it only predicts.
    bool trains() const { return held().trains(); }
    /// Names, element types and shapes of inputs, labels and outputs.
    const model_signature& signature() const { return held().signature(); }

    /// Trains over a data set, whose columns are matched as by compiled models. Callbacks follow
    /// the options; they need train/training_state.hpp, or the header of a callback.
    template <class... Callbacks>
    history fit(const data::dataset& train, const fit_options& options = {}, Callbacks&&... callbacks) {
        if constexpr (sizeof...(Callbacks) == 0) {
            return trainable("fit").fit(train, options, nullptr, 0);
        } else {
            using hooks = typename detail::first_of<detail::callback_hooks, Callbacks...>::type;
            static_assert(
                requires { sizeof(hooks); }, "fit: callbacks need #include <tapegraph/train/training_state.hpp>");
            if constexpr (requires { sizeof(hooks); }) {
                static_assert((detail::callback_rule<std::remove_reference_t<Callbacks>>::holds && ...),
                              "fit: a callback has none of the hooks on_train_begin, on_train_end, on_epoch_begin, "
                              "on_epoch_end, on_batch_begin, on_batch_end, on_test_begin, on_test_end, on_checkpoint, "
                              "each with a training_state&");
                const hooks known[]{detail::hooks_of(callbacks)...};
                return trainable("fit").fit(train, options, known, static_cast<int>(sizeof...(Callbacks)));
            }
        }
    }
    /// The same with tensors whose first axis counts the records: the inputs, followed by the
    /// labels.
    template <class... Callbacks>
    history fit(const tensor_columns& columns, const fit_options& options = {}, Callbacks&&... callbacks) {
        return fit(records_of("fit", columns), options, std::forward<Callbacks>(callbacks)...);
    }
    /// The same for a model of one input and one column of labels.
    template <class... Callbacks>
    history fit(const any_tensor& x, const any_tensor& y, const fit_options& options = {}, Callbacks&&... callbacks) {
        return fit(tensor_columns{x, y}, options, std::forward<Callbacks>(callbacks)...);
    }

    /// Mean loss, accuracy and metrics over a data set.
    measured_result evaluate(const data::dataset& set, std::int64_t batch_size = 32) {
        return trainable("evaluate").evaluate(set, batch_size);
    }
    /// Loss and accuracy of one batch, which metrics accumulate.
    step_result evaluate(const tensor_columns& columns) {
        return trainable("evaluate").evaluate_batch(ordered("evaluate", columns, true));
    }
    template <tensor_of_any_type... Tensors>
    step_result evaluate(const Tensors&... columns) {
        return evaluate(tensor_columns{any_tensor(columns)...});
    }

    /// Takes one step on a batch. Returns loss and accuracy before the update.
    step_result train_on_batch(const tensor_columns& columns) {
        return trainable("train_on_batch").train_on_batch(ordered("train_on_batch", columns, true));
    }
    template <tensor_of_any_type... Tensors>
    step_result train_on_batch(const Tensors&... columns) {
        return train_on_batch(tensor_columns{any_tensor(columns)...});
    }

    /// The derivative of a batch's loss by each trainable variable; nothing changes.
    gradient_list gradients(const tensor_columns& columns) {
        return trainable("gradients").gradients(ordered("gradients", columns, true));
    }
    template <tensor_of_any_type... Tensors>
    gradient_list gradients(const Tensors&... columns) {
        return gradients(tensor_columns{any_tensor(columns)...});
    }

    /// The model's outputs for a batch, of any element types, outside of training. Safe from
    /// several threads at once.
    any_outputs predict(const tensor_columns& inputs) const {
        return {signature(), held().predict(ordered("predict", inputs, false))};
    }
    template <tensor_of_any_type... Tensors>
    any_outputs predict(const Tensors&... inputs) const {
        return predict(tensor_columns{any_tensor(inputs)...});
    }
    /// The outputs for all records of a data set, in its order.
    any_outputs predict(const data::dataset& set, std::int64_t batch_size = 32) const {
        return {signature(), held().predict(set, batch_size)};
    }

    /// The model's variables, followed by the optimizer's. Using the list needs #include
    /// <tapegraph/model/variables.hpp>; the next four functions do not.
    variable_list& variables() { return held().variables(); }
    /// Paths of the model's variables, without the optimizer's and the states of metrics.
    std::vector<std::string> variable_names() const { return held().variable_names(); }
    /// A copy of a variable's value, by its path. Throws argument_error, which lists the existing
    /// ones, for one that does not exist.
    any_tensor value(std::string_view path) const { return held().value(path); }
    /// Sets a variable. Throws argument_error as `value` does, shape_error and dtype_error if shape
    /// or type is not the variable's.
    void assign(std::string_view path, const any_tensor& value) { held().assign(path, value); }
    /// Freezes or unfreezes variables, as variable_list::set_trainable does.
    int set_trainable(std::string_view pattern, bool trainable) { return held().set_trainable(pattern, trainable); }
    /// The number of elements of all variables of the model; the optimizer's state is not counted.
    std::int64_t parameter_count() const { return held().parameter_count(false); }
    /// The same of the trainable variables that are not frozen.
    std::int64_t trainable_parameter_count() const { return held().parameter_count(true); }
    /// The layer table as text.
    std::string summary() const { return held().summary(); }
    /// Steps trained so far.
    std::int64_t step() const { return held().step(); }
    /// Bytes of memory that a training step uses; 0 if it is not planned ahead (eager mode), or no
    /// batch size is known yet.
    std::size_t arena_bytes() const { return held().arena_bytes(); }

    /// The optimizer's learning rate; for a schedule that of the next step. Throws argument_error
    /// if it has none.
    double learning_rate() const { return held().learning_rate(); }
    /// Sets the rate from the next step on; a schedule continues, scaled to this value. Throws
    /// argument_error if the optimizer has none, and for a rate that is negative or not finite.
    void set_learning_rate(double rate) { held().set_learning_rate(rate); }
    /// Metrics by name: their values since the epoch began, or since reset_metrics().
    std::vector<named_value> metrics() const { return held().metrics(); }
    /// Clears what the metrics have accumulated, as at the start of an epoch.
    void reset_metrics() { held().reset_metrics(); }

    /// As for compiled models, with the same files. A path that is not text, such as
    /// tg::io::shards, needs io/weights.hpp here.
    template <class Path>
    void save(const Path& path, const save_options& options = {}) const {
        if constexpr (std::is_convertible_v<const Path&, std::string>)
            held().save(path, options);
        else
            detail::base_of<Path>(held()).save(path, options);
    }
    /// Reads a file that `save` wrote, of either mode, and says what was matched. Throws error for a file that does not
    /// fit.
    load_report load(const std::string& path, const load_options& options = {}) { return held().load(path, options); }

    /// The model without its type, which callbacks see as training_state::model().
    detail::model_base& base() { return held().base(); }
    const detail::model_base& base() const { return held().base(); }

private:
    detail::model_interface& held() const {
        if (model_ == nullptr) throw argument_error("any_model: it holds no model");
        return *model_;
    }
    detail::model_interface& trainable(const char* who) const {
        if (!held().trains())
            throw argument_error(std::string(who) + ": the model was compiled for prediction, without a loss");
        return held();
    }
    std::vector<any_tensor> ordered(const char* who, const tensor_columns& columns, bool with_labels) const {
        return detail::ordered_columns(who, signature(), columns, with_labels);
    }
    data::dataset records_of(const char* who, const tensor_columns& columns) const {
        return detail::records_of(trainable(who).signature(), ordered(who, columns, true));
    }

    std::unique_ptr<detail::model_interface> model_;
};

} // namespace tapegraph
