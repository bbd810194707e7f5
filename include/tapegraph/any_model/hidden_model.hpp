#pragma once

#include <tapegraph/any_model/any_model.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/train/trainable_model.hpp>
#include <tapegraph/train/training_state.hpp>

#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Hides a compiled model in an any_model: for the source that compiles the model.

namespace tapegraph::detail {

/// The functions that need only the model's base.
class model_over_base : public model_interface {
public:
    bool trains() const override { return here().trains(); }
    const model_signature& signature() const override { return here().signature(); }
    variable_list& variables() override { return base().variables(); }
    std::vector<std::string> variable_names() const override {
        std::vector<std::string> names;
        for (const variable& v : here().variables())
            if (!v.optimizer_state() && !v.metric_state()) names.push_back(v.path());
        return names;
    }
    any_tensor value(std::string_view path) const override {
        any_tensor copy = here().variables()[path].data();
        copy.unshare();
        return copy;
    }
    void assign(std::string_view path, const any_tensor& value) override { base().variables()[path].assign(value); }
    int set_trainable(std::string_view pattern, bool trainable) override {
        return base().variables().set_trainable(pattern, trainable);
    }
    std::int64_t parameter_count(bool trainable) const override {
        return trainable ? here().trainable_parameter_count() : here().parameter_count();
    }
    std::string summary() const override { return here().summary(); }
    std::int64_t step() const override { return here().step(); }
    void save(const std::string& path, const save_options& options) const override { here().save(path, options); }
    load_report load(const std::string& path, const load_options& options) override {
        return base().load(path, options);
    }

    double learning_rate() override {
        const optimizer_number number = rate("learning_rate");
        return number.get(number.optimizer);
    }
    void set_learning_rate(double to) override {
        const optimizer_number number = rate("set_learning_rate");
        if (!std::isfinite(to) || to < 0)
            throw argument_error("set_learning_rate: " + number_text(to) + " is negative or not finite");
        number.set(number.optimizer, to);
    }

protected:
    /// The optimizer's learning rate; its functions are null if there is none.
    virtual optimizer_number changeable_number() = 0;
    const model_base& here() const { return const_cast<model_over_base&>(*this).base(); }

private:
    optimizer_number rate(const char* who) {
        const optimizer_number number = changeable_number();
        if (number.get == nullptr)
            throw argument_error(std::string(who) + ": the model's optimizer has no number 'learning_rate'");
        return number;
    }
};

/// The name of a model's mode.
template <class Model>
inline constexpr std::string_view mode_name = ir::type_name<Model>();
template <class Mode, class Model, class Spec, class Loss, class Optimizer>
inline constexpr std::string_view mode_name<compiled_model<Mode, Model, Spec, Loss, Optimizer>> = ir::type_name<Mode>();

/// A compiled model, moved in here.
template <class Model>
class hidden_model final : public model_over_base {
public:
    explicit hidden_model(Model&& model) : model_(std::move(model)) {}

    std::string_view mode() const override { return mode_name<Model>; }
    model_base& base() override { return model_; }

    history fit(const data::dataset& train, const fit_options& options, const callback_hooks* callbacks,
                int count) override {
        if constexpr (trainable) return model_.fit_hooked(train, options, callbacks, count);
        return {};
    }
    measured_result evaluate(const data::dataset& set, std::int64_t batch_size) override {
        measured_result result;
        if constexpr (trainable) {
            if constexpr (std::is_same_v<decltype(model_.evaluate(set, batch_size)), measured_result>)
                result = model_.evaluate(set, batch_size);
            else
                static_cast<step_result&>(result) = model_.evaluate(set, batch_size);
        }
        return result;
    }
    step_result evaluate_batch(std::span<const any_tensor> columns) override {
        if constexpr (trainable) return model_.evaluate_step(views(columns).data());
        return {};
    }
    step_result train_on_batch(std::span<const any_tensor> columns) override {
        if constexpr (trainable) return model_.train_step(views(columns).data());
        return {};
    }
    gradient_list gradients(std::span<const any_tensor> columns) override {
        if constexpr (trainable) return model_.gradients_of(views(columns).data());
        return {};
    }
    std::vector<any_tensor> predict(std::span<const any_tensor> inputs) const override {
        return model_.predict_any(inputs);
    }
    std::vector<any_tensor> predict(const data::dataset& set, std::int64_t batch_size) const override {
        return model_.predict_any(set, batch_size);
    }

    std::vector<named_value> metrics() const override { return model_.metrics(); }
    void reset_metrics() override { model_.reset_metrics(); }
    std::size_t arena_bytes() const override {
        if constexpr (requires(const Model& m) { m.arena_bytes(); }) return model_.arena_bytes();
        return 0;
    }

private:
    static constexpr bool trainable =
        !std::is_same_v<std::remove_cvref_t<decltype(std::declval<Model&>().optimizer())>, none>;

    optimizer_number changeable_number() override { return changeable_rate(model_.optimizer()); }
    std::vector<buffer_view> views(std::span<const any_tensor> columns) {
        const model_base::computing here(model_);
        std::vector<buffer_view> all;
        for (const any_tensor& each : columns) all.push_back(each.view());
        return all;
    }

    Model model_;
};

} // namespace tapegraph::detail
