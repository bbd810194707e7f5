#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/eager/any_tensor.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What a model takes and gives, as values: for programs that do not know its type.

namespace tapegraph {

/// An input, a column of labels or an output of a model.
struct tensor_signature {
    std::string name;                  ///< "input", "labels" and "output" where the model gives none
    dtype type = dtype::f32;           ///< of its elements
    std::vector<std::int64_t> shape{}; ///< -1: known only at run time, as the batch is

    /// "f32[?, 28, 28, 1]"
    std::string text() const;
};

/// All of a model: columns of labels are those of its losses, none for a model that only predicts.
struct model_signature {
    std::vector<tensor_signature> inputs, labels, outputs;
};

namespace detail {

/// "2 inputs (image: f32[?, 28, 28, 1], age: f32[?, 1])"
std::string text_of(const std::vector<tensor_signature>& all, const char* one, const char* several);

/// Checks that tensors are the inputs of a model, followed by its labels with `with_labels`. Throws argument_error for a wrong
/// number of them, and dtype_error or shape_error that names the input at fault. The losses check the labels.
void check_columns(const char* who, const model_signature& of, std::span<const any_tensor> columns, bool with_labels);

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION std::string text_of(const std::vector<tensor_signature>& all, const char* one, const char* several) {
    std::string text = std::to_string(all.size()) + ' ' + (all.size() == 1 ? one : several);
    for (const tensor_signature& each : all)
        text.append(&each == all.data() ? " (" : ", ").append(each.name).append(": ").append(each.text());
    return all.empty() ? text : text + ")";
}

TG_DEFINITION void check_columns(const char* who, const model_signature& of, std::span<const any_tensor> columns,
                                 bool with_labels) {
    const std::size_t count = of.inputs.size() + (with_labels ? of.labels.size() : 0);
    if (columns.size() != count) {
        std::string text = std::string(who) + ": given " + std::to_string(columns.size()) +
                           (columns.size() == 1 ? " tensor" : " tensors") + ", the model takes " +
                           text_of(of.inputs, "input", "inputs");
        if (with_labels) text += " and " + text_of(of.labels, "column of labels", "columns of labels");
        throw argument_error(text);
    }
    for (std::size_t i = 0; i < of.inputs.size(); ++i) {
        const tensor_signature& wanted = of.inputs[i];
        const any_tensor& given = columns[i];
        const auto called = [&] { return std::string(who) + ": input '" + wanted.name + "' "; };
        if (given.type() != wanted.type)
            throw dtype_error(called() + "is " + name_of(given.type()) + ", the model takes " + name_of(wanted.type));
        bool valid = given.rank() == static_cast<int>(wanted.shape.size());
        for (int axis = 0; valid && axis < given.rank(); ++axis) {
            const std::int64_t extent = wanted.shape[static_cast<std::size_t>(axis)];
            valid = extent < 0 || given.shape()[axis].value == extent;
        }
        if (!valid)
            throw shape_error(called() + "has shape " + to_string(given.shape()) + ", the model takes " +
                              wanted.text());
    }
}

#endif

} // namespace detail

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION std::string tensor_signature::text() const {
    std::string s = name_of(type) + std::string("[");
    for (std::size_t i = 0; i < shape.size(); ++i)
        s.append(i > 0 ? ", " : "").append(shape[i] < 0 ? std::string("?") : std::to_string(shape[i]));
    return s + "]";
}

#endif

} // namespace tapegraph
