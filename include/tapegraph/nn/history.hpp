#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/core/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tapegraph {

/// What one step of training measured.
struct step_result {
    double loss = 0;
    double accuracy = 0; ///< 0 where the loss has no notion of it
};

/// A number that a metric gives.
struct named_value {
    std::string name;
    double value = 0;
};

/// What `evaluate` measures of a model with metrics.
struct measured_result : step_result {
    std::vector<named_value> metrics;
    /// A metric by its name. Throws argument_error for one that does not exist, with those that do.
    double operator[](std::string_view name) const { return value_of(metrics, name); }

    template <class = void>
    static double value_of(const std::vector<named_value>& all, std::string_view name) {
        std::string text = "no metric '" + std::string(name) + "'";
        for (const named_value& each : all) {
            if (each.name == name) return each.value;
            text.append(&each == all.data() ? ", there are '" : ", '").append(each.name).append("'");
        }
        throw argument_error(text);
    }
};

/// What one epoch of `fit` measured. Seconds are wall clock.
struct epoch_result {
    double loss = 0, accuracy = 0;
    double validation_loss = 0, validation_accuracy = 0;
    double seconds = 0;           ///< training, without validation
    double ingestion_seconds = 0; ///< of these: waiting for the data set
    std::int64_t steps = 0, records = 0;
    std::vector<named_value> metrics, validation_metrics; ///< of models that have some
};

/// What `fit` returns.
struct history {
    std::vector<epoch_result> epochs; ///< in the order in which they were trained
};

} // namespace tapegraph
