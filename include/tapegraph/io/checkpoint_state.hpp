#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/json_reader.hpp>
#include <tapegraph/formats/path.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <string>

/// The metadata of a checkpoint besides its tensors, stored as state.json.

namespace tapegraph {

/// The position of a training. Training by `fit` need not set anything: its position in the data is
/// among the tensors.
struct checkpoint_state {
    std::int64_t step = -1;    ///< -1 when passed to save: the model's
    std::int64_t epoch = 0;    ///< from 0
    std::int64_t position = 0; ///< batches of the epoch that were seen, or the position of a custom loop
    std::uint64_t seed = 0;    ///< the model's
    std::map<std::string, double> metrics{};

    /// A metric; NaN if there is none of that name.
    double metric(const std::string& name) const {
        const auto found = metrics.find(name);
        return found == metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
    }
};

namespace io::detail {

std::string text_of(const checkpoint_state& state);

/// Throws data_error naming `origin` if the text is invalid. Unknown names are ignored.
checkpoint_state state_of(std::string_view text, const std::string& origin);

inline checkpoint_state read_state(const files::path& path) {
    const auto bytes = read_file(path);
    return state_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, quoted(path));
}

} // namespace io::detail
} // namespace tapegraph

namespace tapegraph::io::detail {

#if TG_DEFINES_FOR_HOST(io)

TG_DEFINITION std::string text_of(const checkpoint_state& state) {
    std::string text = "{\"step\":" + std::to_string(state.step) + ",\"epoch\":" + std::to_string(state.epoch) +
                       ",\"position\":" + std::to_string(state.position) + ",\"seed\":" + std::to_string(state.seed) +
                       ",\"metrics\":{";
    for (const auto& [name, value] : state.metrics)
        text.append(text.back() == '{' ? "" : ",").append(json_string(name)).append(":").append(json_number(value));
    return text + "}}\n";
}

TG_DEFINITION checkpoint_state state_of(std::string_view text, const std::string& origin) {
    json_reader json(text, origin);
    checkpoint_state state;
    json.begin_object();
    for (std::string name; json.next_name(name);) {
        if (name == "step")
            state.step = json.integer();
        else if (name == "epoch")
            state.epoch = json.integer();
        else if (name == "position")
            state.position = json.integer();
        else if (name == "seed")
            state.seed = json.unsigned_integer();
        else if (name == "metrics") {
            json.begin_object();
            for (std::string metric; json.next_name(metric);)
                if (json.peek() == json_kind::null) { // a value that was not finite
                    json.null();
                    state.metrics[metric] = std::numeric_limits<double>::quiet_NaN();
                } else {
                    state.metrics[metric] = json.number();
                }
        } else {
            json.skip();
        }
    }
    json.end();
    if (state.step < 0) throw data_error(origin + ": names no step");
    return state;
}

#endif

} // namespace tapegraph::io::detail
