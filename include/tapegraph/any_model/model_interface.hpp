#pragma once

#include <tapegraph/data/dataset.hpp>
#include <tapegraph/model/gradient_list.hpp>
#include <tapegraph/model/model_signature.hpp>
#include <tapegraph/model/weight_options.hpp>
#include <tapegraph/train/fit_options.hpp>
#include <tapegraph/train/history.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The functions through which an any_model calls the model that it hides.

namespace tapegraph {

class variable_list;

namespace detail {

class model_base;
struct callback_hooks;
template <class C>
callback_hooks hooks_of(C& callback); // train/training_state.hpp
template <class C>
struct callback_rule;

/// Defined in any_model/hidden_model.hpp.
template <class Model>
class hidden_model;

/// The first type, in a form whose completeness depends on the others.
template <class T, class...>
struct first_of {
    using type = T;
};

/// Callers pass tensors in the signature's order and number, with checked inputs, and call training
/// functions only if trains().
class model_interface {
public:
    virtual ~model_interface() = default;

    virtual std::string_view mode() const = 0;
    virtual bool trains() const = 0;
    virtual const model_signature& signature() const = 0;
    virtual model_base& base() = 0;

    virtual history fit(const data::dataset& train, const fit_options& options, const callback_hooks* callbacks,
                        int count) = 0;
    virtual measured_result evaluate(const data::dataset& set, std::int64_t batch_size) = 0;
    virtual step_result evaluate_batch(std::span<const any_tensor> columns) = 0;
    virtual step_result train_on_batch(std::span<const any_tensor> columns) = 0;
    virtual gradient_list gradients(std::span<const any_tensor> columns) = 0;
    /// Called from several threads at once.
    virtual std::vector<any_tensor> predict(std::span<const any_tensor> inputs) const = 0;
    virtual std::vector<any_tensor> predict(const data::dataset& set, std::int64_t batch_size) const = 0;

    virtual double learning_rate() = 0;
    virtual void set_learning_rate(double rate) = 0;
    virtual std::vector<named_value> metrics() const = 0;
    virtual void reset_metrics() = 0;
    virtual std::size_t arena_bytes() const = 0;

    virtual variable_list& variables() = 0;
    virtual std::vector<std::string> variable_names() const = 0;
    virtual any_tensor value(std::string_view path) const = 0;
    virtual void assign(std::string_view path, const any_tensor& value) = 0;
    virtual int set_trainable(std::string_view pattern, bool trainable) = 0;
    virtual std::int64_t parameter_count(bool trainable) const = 0;
    virtual std::string summary() const = 0;
    virtual std::int64_t step() const = 0;
    virtual void save(const std::string& path, const save_options& options) const = 0;
    virtual load_report load(const std::string& path, const load_options& options) = 0;
};

/// The model without its type, as a type that is complete where `Needed` is known.
template <class Needed>
auto& base_of(model_interface& of) {
    return static_cast<typename first_of<model_base, Needed>::type&>(of.base());
}

} // namespace detail
} // namespace tapegraph
