#pragma once

#include <tapegraph/model/eager_scope.hpp>
#include <tapegraph/model/scope.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>

#include <string>
#include <string_view>

/// Accumulators of metrics: variables of the model, created and updated by the step's program. They
/// start at zero in every epoch.

namespace tapegraph::detail {

/// Prefix of the paths of metrics' variables, which distinguishes them from those of layers.
inline constexpr std::string_view metrics_scope = "__metrics__";

template <class Value>
constexpr auto wide_value(const Value& value) {
    if constexpr (tensor_like<Value>)
        return cast<double>(value);
    else
        return value; // a number
}

/// The state of one metric in graph mode.
class graph_metric_state {
public:
    constexpr explicit graph_metric_state(graph_scope scope) : scope_(scope) {}
    /// Adds to the state of this name and shape; its extents must be numbers.
    constexpr void add(std::string_view name, const shape& dims, const auto& value) const {
        const graph_node sum = scope_.variable<double>(name, dims, {init::zeros{}, false});
        scope_.assign(sum, sum + wide_value(value));
    }

private:
    graph_scope scope_;
};
class graph_metrics {
public:
    constexpr explicit graph_metrics(graph_scope root) : scope_(root / metrics_scope) {}
    constexpr graph_metric_state of(std::string_view metric) const { return graph_metric_state(scope_ / metric); }

private:
    graph_scope scope_;
};

/// The same in eager mode; updates apply at the end of the step.
class eager_metric_state {
public:
    eager_metric_state(eager_context* context, std::string path) : context_(context), path_(std::move(path)) {}
    void add(std::string_view name, const shape&, const auto& value) const {
        variable& sum = (*context_->variables)[path_ + std::string(name)];
        context_->updates.push_back({&sum, eval(tensor<double>(sum.data()) + wide_value(value))});
    }

private:
    eager_context* context_;
    std::string path_;
};
class eager_metrics {
public:
    explicit eager_metrics(eager_context* context) : context_(context) {}
    eager_metric_state of(std::string_view metric) const {
        return {context_, std::string(metrics_scope) + '/' + std::string(metric) + '/'};
    }

private:
    eager_context* context_;
};

} // namespace tapegraph::detail
