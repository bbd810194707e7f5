#pragma once

#include <tapegraph/cluster/ranks/exchange.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/model/gradient_list.hpp>
#include <tapegraph/nn/optimizers/eager_slots.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

/// Serializes the data that workers push to a parameter server.

namespace tapegraph::detail {

/// The pushed data, value by value: a number of rows, -1 for all of a variable, followed by their
/// indices and the rows.
class pushed_block {
public:
    void begin() { bytes_.clear(); }
    void put(const void* from, std::size_t count) {
        const auto* const at = static_cast<const std::byte*>(from);
        bytes_.insert(bytes_.end(), at, at + count);
    }
    void put(const named_gradient& g);
    std::span<const std::byte> bytes() const { return bytes_; }

private:
    std::vector<std::byte> bytes_;
};

/// Reads such data.
class pushed_values {
public:
    explicit pushed_values(std::span<const std::byte> bytes) : left_(bytes) {}
    const std::byte* take(std::size_t count) {
        if (count > left_.size()) throw exchange_error("parameter_servers: a worker pushes less than a model has");
        const std::byte* const at = left_.data();
        left_ = left_.subspan(count);
        return at;
    }
    /// Reads a gradient of a variable, and its indices.
    void take(const variable& of, any_tensor& gradient, any_tensor& indices);

private:
    void fill(any_tensor& to) {
        const std::size_t bytes = to.outline_view().bytes();
        const std::byte* const from = take(bytes);
        if (bytes > 0) std::memcpy(to.overwrite(), from, bytes);
    }
    std::span<const std::byte> left_;
};

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION void pushed_block::put(const named_gradient& g) {
    const std::int64_t rows = g.by_rows() ? g.indices.size() : -1;
    put(&rows, sizeof rows);
    if (g.by_rows()) put(g.indices.read(), g.indices.outline_view().bytes());
    const any_tensor& values = g.by_rows() ? g.rows : g.value;
    put(values.read(), values.outline_view().bytes());
}

TG_DEFINITION void pushed_values::take(const variable& of, any_tensor& gradient, any_tensor& indices) {
    std::int64_t rows = 0;
    std::memcpy(&rows, take(sizeof rows), sizeof rows);
    shape dims = of.shape();
    indices = any_tensor();
    if (rows >= 0) {
        dims = shape_of_rows(dims, rows);
        indices = any_tensor(dtype::i64, shape{rows});
        fill(indices);
    }
    if (!gradient.has_storage() || !(gradient.shape() == dims)) gradient = any_tensor(of.type(), dims);
    fill(gradient);
}

#endif

} // namespace tapegraph::detail
