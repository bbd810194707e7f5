#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/eager/any_tensor.hpp>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tapegraph {

/// The derivative of a loss by one variable, of its type and shape.
struct named_gradient {
    std::string path;
    any_tensor value;
};

/// What a step would assign to a variable that no optimizer updates, such as a moving average.
struct assigned_value {
    std::string path;
    any_tensor value;
};

/// What model.gradients gives: the derivatives of a batch's loss by each trainable variable, in the order of the variables; zeros where
/// the loss does not depend on one.
class gradient_list {
public:
    double loss = 0;
    double accuracy = 0;

    /// By the variable's path. Throws argument_error for one that has none, with those that have.
    const any_tensor& operator[](std::string_view path) const {
        for (const named_gradient& each : all_)
            if (each.path == path) return each.value;
        return refuse(path);
    }
    int size() const { return static_cast<int>(all_.size()); }
    auto begin() const { return all_.begin(); }
    auto end() const { return all_.end(); }
    /// What a step on the same batch would assign: the batch's part of moving averages. gradients() itself assigns nothing.
    const std::vector<assigned_value>& assigned() const { return assigned_; }
    void add_assigned(std::string path, any_tensor value) { assigned_.push_back({std::move(path), std::move(value)}); }
    /// A value without memory stands for zeros.
    template <class = void>
    void add(std::string path, any_tensor value, dtype type, const shape& dims) {
        if (!value.has_storage()) {
            const device_scope on(nullptr);
            value = any_tensor(type, dims);
            const buffer_view to = value.view();
            if (to.bytes() > 0) std::memset(to.data, 0, to.bytes());
        }
        all_.push_back({std::move(path), std::move(value)});
    }

private:
    template <class = void>
    [[noreturn]] const any_tensor& refuse(std::string_view path) const {
        std::string text = "gradients: no trainable variable '" + std::string(path) + "'";
        const char* before = ", there are '";
        for (const named_gradient& each : all_) {
            text.append(before).append(each.path).append("'");
            before = ", '";
        }
        throw argument_error(text);
    }

    std::vector<named_gradient> all_;
    std::vector<assigned_value> assigned_;
};

} // namespace tapegraph
