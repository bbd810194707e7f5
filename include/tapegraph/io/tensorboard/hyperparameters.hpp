#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/io/tensorboard/wire.hpp>

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Hyperparameters and metrics by which TensorBoard's table compares runs.

namespace tapegraph::io {

/// A setting of a run: a number, a text or a boolean: {"learning_rate", 0.1}, {"optimizer",
/// "adam"}.
struct hyperparameter {
    /// The type of a hyperparameter's value.
    enum class kind : std::int32_t { text = 1, boolean = 2, number = 3 }; // numbered as in the protocol

    template <class Value>
    hyperparameter(std::string name_, const Value& v) : name(std::move(name_)) {
        if constexpr (std::is_same_v<Value, bool>)
            type = kind::boolean, number = v ? 1 : 0;
        else if constexpr (std::is_arithmetic_v<Value>)
            type = kind::number, number = static_cast<double>(v);
        else
            type = kind::text, value = std::string(v);
    }

    std::string name;
    kind type{};
    double number = 0;   ///< the value of a number, and 0 or 1 for a boolean
    std::string value{}; ///< the value of a text
};

/// A scalar by which runs are judged: its tag, and its subfolder of the run's folder:
/// {"epoch_loss", "validation"}.
struct hyperparameter_metric {
    std::string tag, group{};
};

namespace detail::wire {

/// HParamsPluginData: version 1, then one of experiment 2, session_start_info 3, session_end_info
/// 4. The plugin's content, carried by summaries of a dummy number.
inline std::string experiment(std::span<const hyperparameter> values, std::span<const hyperparameter_metric> metrics) {
    std::string content;
    writer data(content);
    writer e(data, 2);
    for (const hyperparameter& h : values) {
        writer info(e, 4);
        text(info, 1, h.name);
        info.add_enum(4, static_cast<std::int32_t>(h.type));
    }
    for (const hyperparameter_metric& m : metrics) {
        writer info(e, 5);
        writer name(info, 1);
        if (!m.group.empty()) text(name, 1, m.group);
        text(name, 2, m.tag);
    }
    e.commit();
    return content;
}

inline std::string session_start(std::span<const hyperparameter> values, std::string_view group, double seconds) {
    std::string content;
    writer data(content);
    writer start(data, 3);
    for (const hyperparameter& h : values) {
        writer pair(start, 1);
        text(pair, 1, h.name);
        writer value(pair, 2); // google.protobuf.Value: number 2, string 3, bool 4
        if (h.type == hyperparameter::kind::number)
            value.add_double(2, h.number);
        else if (h.type == hyperparameter::kind::text)
            text(value, 3, h.value);
        else
            value.add_bool(4, h.number != 0);
    }
    if (!group.empty()) text(start, 4, group);
    start.add_double(5, seconds);
    start.commit();
    return content;
}

inline std::string session_end(bool success, double seconds) {
    std::string content;
    writer data(content);
    writer end(data, 4);
    end.add_enum(1, success ? 1 : 2);
    end.add_double(2, seconds);
    end.commit();
    return content;
}

inline void hyperparameters_event(std::string& buffer, double wall_time, std::string_view tag,
                                  std::string_view content) {
    summary_event(buffer, wall_time, 0, tag, [&](writer& value) {
        {
            writer tensor(value, 8);
            tensor.add_enum(1, dt_float);
            text(tensor, 2, {});
            tensor.add_bytes(4, "\0\0\0\0", 4);
        }
        metadata(value, "hparams", data_class{}, content);
    });
}

} // namespace detail::wire
} // namespace tapegraph::io
