#pragma once

#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/model/columns.hpp>
#include <tapegraph/nn/metrics/metric.hpp>

#include <vector>

/// Metrics outside of compiled models: runs the same `update` that programs trace, on tensors.

namespace tapegraph {

namespace detail {

/// The state of a metric in eager mode.
class metric_state {
public:
    /// Adds to a state of this shape, which starts as zeros. Throws shape_error where the value has
    /// another shape.
    void add(std::string_view name, const shape& dims, const auto& value) const {
        const tensor<double> sealed = eval(cast<double>(value));
        add_to(name, dims, sealed);
    }
    /// Everything that was accumulated, by name.
    std::vector<metric_values::entry> entries() const {
        std::vector<metric_values::entry> list;
        for (const named& each : states_) list.push_back({each.name, each.values});
        return list;
    }
    /// A state with its shape. Throws argument_error for a name that the metric did not use.
    tensor<double> tensor_of(std::string_view name) const {
        for (const named& each : states_)
            if (each.name == name) return {each.values, each.dims};
        throw argument_error("metric: no state '" + std::string(name) + "'");
    }
    void reset() { states_.clear(); }

private:
    struct named {
        std::string name;
        std::vector<double> values;
        shape dims;
    };
    void add_to(std::string_view name, const shape& dims, const tensor<double>& value) const {
        if (!(value.shape() == dims))
            throw shape_error("metric: state '" + std::string(name) + "' has shape " + to_string(dims) + ", given " +
                              to_string(value.shape()));
        named* target = nullptr;
        for (named& each : states_)
            if (each.name == name) target = &each;
        if (target == nullptr) {
            states_.push_back({std::string(name), std::vector<double>(static_cast<std::size_t>(value.size())), dims});
            target = &states_.back();
        }
        if (target->values.size() != static_cast<std::size_t>(value.size()))
            throw shape_error("metric: state '" + std::string(name) + "' has " + std::to_string(target->values.size()) +
                              " numbers, given " + std::to_string(value.size()));
        const double* from = value.data();
        for (double& to : target->values) to += *from++;
    }

    mutable std::vector<named> states_;
};

} // namespace detail

/// Accumulates a metric over batches of any sizes:
///
///     tg::metric_accumulator recall(tg::recall{.threshold = 0.3});
///     for (...) recall.update(model.predict(x), y);
///     recall.result();
///
/// Nothing is recorded on a tape.
template <class Metric>
class metric_accumulator {
public:
    /// Throws argument_error for numbers that the metric refuses.
    explicit metric_accumulator(const Metric& metric = {}) : metric_(metric) { numbers<double>(); }

    /// Adds one batch; weights are per record, [batch].
    template <class T, tensor_like Z>
    void update(const tapegraph::tensor<T>& x, const Z& z) {
        run(x, z, none{});
    }
    template <class T, tensor_like Z, tensor_like W>
    void update(const tapegraph::tensor<T>& x, const Z& z, const W& weights) {
        run(x, z, eval(weights));
    }
    /// The result since the last reset; without any batch 0, or the value that the metric defines
    /// for nothing.
    double result() const {
        const auto entries = state_.entries();
        return entries.empty() ? 0 : metric_.result(metric_values(entries));
    }
    /// A state by its name: `all("confusion_matrix")`. Throws argument_error for a name that the
    /// metric did not use.
    std::vector<double> all(std::string_view name) const {
        const auto entries = state_.entries();
        const auto values = metric_values(entries).all(name);
        return {values.begin(), values.end()};
    }
    /// The same with its shape: `tensor("confusion_matrix")` is [classes, classes].
    tapegraph::tensor<double> tensor(std::string_view name) const { return state_.tensor_of(name); }
    /// Forgets what was added.
    void reset() { state_.reset(); }
    /// The metric, whose numbers may be changed between updates.
    Metric& metric() { return metric_; }

private:
    template <class T>
    auto numbers() const {
        if constexpr (detail::has_numbers<Metric>) {
            const auto values = metric_.numbers();
            std::array<typed_number<T>, Metric::count> n;
            for (std::size_t i = 0; i < values.size(); ++i) n[i] = {static_cast<T>(values[i])};
            return n;
        } else {
            return none{};
        }
    }
    template <class T, class Z, class W>
    void run(const tapegraph::tensor<T>& x, const Z& z, const W& weights) {
        using scalar = std::conditional_t<std::is_same_v<T, double>, double, float>;
        const auto here = std::source_location::current();
        // Converts 16-bit outputs and labels to float, as models do, because squares of their
        // differences leave half's range.
        Metric::update(state_, detail::as_float(x.detach(), here), detail::as_float(eval(z), here), weights,
                       numbers<scalar>());
    }

    Metric metric_;
    detail::metric_state state_;
};

} // namespace tapegraph
