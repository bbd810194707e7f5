#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/eager/any_tensor.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tapegraph {

/// The derivative of a loss by one variable, of its type and shape. For a table whose rows a step
/// has gathered (sparse gradients), also the derivative by these rows, [n, rest...], and their
/// indices, int64 [n], each once: for models in graph mode if they are compiled with tg::sharded,
/// for eager ones always.
struct named_gradient {
    std::string path;
    any_tensor value;
    any_tensor rows{}, indices{};
    /// Whether it consists of rows and their indices instead of the whole array.
    bool by_rows() const { return indices.has_storage(); }
};

/// A value that a step would assign to a variable that no optimizer updates, such as a moving
/// average.
struct assigned_value {
    std::string path;
    any_tensor value;
};

/// The result of model.gradients: the derivatives of a batch's loss by each trainable variable, in
/// the order of the variables; zeros where the loss does not depend on one.
class gradient_list {
public:
    double loss = 0;
    double accuracy = 0;

    /// The gradient by the variable's path. Throws argument_error, with the paths that have one, if
    /// it has none.
    const any_tensor& operator[](std::string_view path) const { return named(path).value; }
    /// The same with its rows, if it has any.
    const named_gradient& named(std::string_view path) const;
    int size() const { return static_cast<int>(all_.size()); }
    auto begin() const { return all_.begin(); }
    auto end() const { return all_.end(); }
    /// Values that a step on the same batch would assign, such as moving averages. gradients()
    /// itself assigns nothing.
    const std::vector<assigned_value>& assigned() const { return assigned_; }
    /// Adds a value that the step assigns to the variable of that path.
    void add_assigned(std::string path, any_tensor value) { assigned_.push_back({std::move(path), std::move(value)}); }
    /// A value without memory stands for zeros.
    void add(std::string path, any_tensor value, dtype type, const shape& dims);
    /// Rows of the gradient added last: rows [picks..., rest...] and their indices [picks...]. Rows
    /// of equal indices are to be added, in their order, or are sums already.
    void add_rows(const buffer_view& rows, const buffer_view& indices, bool are_sums);

private:
    [[noreturn]] void refuse(std::string_view path) const;

    std::vector<named_gradient> all_;
    std::vector<assigned_value> assigned_;
};

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION void gradient_list::add(std::string path, any_tensor value, dtype type, const shape& dims) {
    if (!value.has_storage()) {
        const device_scope on(nullptr);
        value = any_tensor(type, dims);
        const buffer_view to = value.view();
        if (to.bytes() > 0) std::memset(to.data, 0, to.bytes());
    }
    all_.push_back({std::move(path), std::move(value), {}, {}});
}

TG_DEFINITION void gradient_list::add_rows(const buffer_view& rows, const buffer_view& indices, bool are_sums) {
    const std::int64_t count = indices.elements();
    std::vector<std::int64_t> which(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < which.size(); ++i)
        which[i] = indices.type == dtype::i32 ? static_cast<const std::int32_t*>(indices.data)[i]
                                              : static_cast<const std::int64_t*>(indices.data)[i];
    std::vector<std::int64_t> distinct = which;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    named_gradient& to = all_.back();
    shape dims{static_cast<std::int64_t>(distinct.size())};
    for (int i = indices.rank; i < rows.rank; ++i) dims.push_back(rows.extents[i]);
    const device_scope on(nullptr);
    to.rows = any_tensor(rows.type, dims);
    to.indices = any_tensor(dtype::i64, shape{static_cast<std::int64_t>(distinct.size())});
    if (!distinct.empty()) std::memcpy(to.indices.write(), distinct.data(), distinct.size() * sizeof(std::int64_t));
    const std::int64_t width = distinct.empty() ? 0 : to.rows.size() / static_cast<std::int64_t>(distinct.size());
    const auto fill = [&]<class T>(T* sums) {
        std::fill_n(sums, to.rows.size(), T(0));
        for (std::size_t i = 0; i < which.size(); ++i) {
            const auto at = std::lower_bound(distinct.begin(), distinct.end(), which[i]) - distinct.begin();
            const T* const from = static_cast<const T*>(rows.data) + static_cast<std::int64_t>(i) * width;
            T* const sum = sums + at * width;
            for (std::int64_t k = 0; k < width; ++k) sum[k] = are_sums ? from[k] : sum[k] + from[k];
        }
    };
    rows.type == dtype::f64 ? fill(static_cast<double*>(to.rows.write())) : fill(static_cast<float*>(to.rows.write()));
}

[[noreturn]] TG_DEFINITION void gradient_list::refuse(std::string_view path) const {
    std::string text = "gradients: no trainable variable '" + std::string(path) + "'";
    const char* before = ", there are '";
    for (const named_gradient& each : all_) {
        text.append(before).append(each.path).append("'");
        before = ", '";
    }
    throw argument_error(text);
}

TG_DEFINITION const named_gradient& gradient_list::named(std::string_view path) const {
    for (const named_gradient& each : all_)
        if (each.path == path) return each;
    refuse(path);
}

#endif

} // namespace tapegraph
