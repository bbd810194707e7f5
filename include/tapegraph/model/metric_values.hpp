#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>

#include <span>
#include <string>
#include <string_view>

namespace tapegraph {

/// The accumulated state of a metric, by the names it used.
class metric_values {
public:
    /// A metric or a state of one, and its numbers row by row.
    struct entry {
        std::string_view name;
        std::span<const double> values;
    };
    explicit metric_values(std::span<const entry> entries) : entries_(entries) {}

    /// A state that is one number.
    double operator[](std::string_view name) const { return all(name)[0]; }
    /// A state of any shape, in row-major order. Throws argument_error for a name that the metric
    /// did not use.
    std::span<const double> all(std::string_view name) const {
        for (const entry& e : entries_)
            if (e.name == name) return e.values;
        throw argument_error("metric: no state '" + std::string(name) + "'");
    }
    /// All entries, in the order of the metrics.
    std::span<const entry> entries() const { return entries_; }

private:
    std::span<const entry> entries_;
};

} // namespace tapegraph
