#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/data/dataset.hpp>
#include <tapegraph/model/model_signature.hpp>

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What goes into an any_model and comes out of it.

namespace tapegraph {

template <class T>
class tensor;

/// A tensor, of any element type; no formula.
template <class T>
concept tensor_of_any_type = std::derived_from<T, any_tensor>;

/// A tensor and the name of the column, input or output that it is.
struct named_tensor {
    std::string name;
    any_tensor value;
};

/// The inputs of a model, followed by its labels for training, in the model's order or by name.
struct tensor_columns {
    std::vector<any_tensor> tensors;
    std::vector<std::string> names{}; ///< of each; empty: they are in order

    tensor_columns(std::initializer_list<any_tensor> in_order) : tensors(in_order) {}  // NOLINT: given in braces
    tensor_columns(std::vector<any_tensor> in_order) : tensors(std::move(in_order)) {} // NOLINT: or as a list
    tensor_columns(std::initializer_list<named_tensor> by_name)                        // NOLINT
        : tensor_columns(std::vector<named_tensor>(by_name)) {}
    tensor_columns(const std::vector<named_tensor>& by_name) { // NOLINT
        for (const named_tensor& each : by_name) {
            tensors.push_back(each.value);
            names.push_back(each.name);
        }
    }
};

/// The outputs of a model, by position or by name. A single one converts to a tensor:
/// `tg::tensor<float> y = model.predict(x);`
class any_outputs {
public:
    any_outputs(const model_signature& of, std::vector<any_tensor> values) : values_(std::move(values)) {
        for (const tensor_signature& each : of.outputs) names_.push_back(each.name);
    }
    any_outputs(std::vector<std::string> names, std::vector<any_tensor> values)
        : values_(std::move(values)), names_(std::move(names)) {}
    int size() const { return static_cast<int>(values_.size()); }
    /// The outputs' names in their order; empty where the model has one without a name.
    const std::vector<std::string>& names() const { return names_; }
    auto begin() const { return values_.begin(); }
    auto end() const { return values_.end(); }

    /// Throws range_error for one that does not exist.
    const any_tensor& operator[](int place) const {
        if (place < 0 || place >= size())
            throw range_error("outputs: number " + std::to_string(place) + " of " + std::to_string(size()));
        return values_[static_cast<std::size_t>(place)];
    }
    /// Throws argument_error for a name that none has, with those that there are.
    const any_tensor& operator[](std::string_view name) const {
        std::string text = "outputs: none is '" + std::string(name) + "', there are";
        for (std::size_t i = 0; i < values_.size() && i < names_.size(); ++i) {
            if (names_[i] == name) return values_[i];
            text.append(i > 0 ? ", '" : " '").append(names_[i]).append("'");
        }
        throw argument_error(text);
    }
    /// The only one. Throws argument_error where there are several.
    const any_tensor& only() const {
        if (size() != 1)
            throw argument_error("outputs: the model has " + std::to_string(size()) + ", say which by name or number");
        return values_.front();
    }
    /// The only one, of this element type. Throws dtype_error for another one.
    template <class T>
    operator tensor<T>() const { // NOLINT: so that a prediction is a tensor
        return tensor<T>(only());
    }

private:
    std::vector<any_tensor> values_;
    std::vector<std::string> names_;
};

namespace detail {

/// The tensors in the model's order. Throws argument_error for a name that the model does not have or
/// that is missing, and as check_columns does.
std::vector<any_tensor> ordered_columns(const char* who, const model_signature& of, const tensor_columns& columns,
                                        bool with_labels);

/// A tensor as a column of a data set.
struct record_tensor : any_tensor {
    const void* data() const { return read(); }
};

/// A data set of a model's inputs and labels, in its order.
data::dataset records_of(const model_signature& of, const std::vector<any_tensor>& columns);

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION std::vector<any_tensor> ordered_columns(const char* who, const model_signature& of,
                                                      const tensor_columns& columns, bool with_labels) {
    std::vector<any_tensor> found = columns.tensors;
    if (!columns.names.empty()) {
        std::vector<tensor_signature> wanted = of.inputs;
        if (with_labels) wanted.insert(wanted.end(), of.labels.begin(), of.labels.end());
        const auto place_of = [&](const std::string& name) {
            std::size_t i = 0;
            while (i < wanted.size() && wanted[i].name != name) ++i;
            return i;
        };
        std::vector<bool> given(wanted.size());
        found.resize(wanted.size());
        for (std::size_t k = 0; k < columns.names.size(); ++k) {
            const std::size_t place = place_of(columns.names[k]);
            if (place == wanted.size() || given[place])
                throw argument_error(std::string(who) + ": '" + columns.names[k] +
                                     (place == wanted.size() ? "' is not one of " + text_of(wanted, "column", "columns")
                                                             : "' is given twice"));
            given[place] = true;
            found[place] = columns.tensors[k];
        }
        for (std::size_t i = 0; i < wanted.size(); ++i)
            if (!given[i])
                throw argument_error(std::string(who) + ": '" + wanted[i].name + "' is missing, the model takes " +
                                     text_of(wanted, "column", "columns"));
    }
    check_columns(who, of, found, with_labels);
    return found;
}

TG_DEFINITION data::dataset records_of(const model_signature& of, const std::vector<any_tensor>& columns) {
    data::dataset records;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::size_t label = i - of.inputs.size();
        records.add(i < of.inputs.size() ? of.inputs[i].name : of.labels[label].name, record_tensor{columns[i]});
    }
    return records;
}

#endif

} // namespace detail

} // namespace tapegraph
