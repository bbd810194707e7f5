#pragma once

#include <tapegraph/io/tensorboard/wire.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// Times of graph nodes, for TensorBoard's graph tab.

namespace tapegraph::io {

/// One run of a node, under its name in the GraphDef (io/graph_def.hpp).
struct node_time {
    std::string name;
    std::int64_t start_us = 0; ///< on any clock that all nodes of a step share
    double duration_us = 0;    ///< shown in whole microseconds
    std::int64_t bytes = 0;    ///< memory of its results
    std::string device = "/device:CPU:0";
};

namespace detail::wire {

/// TaggedRunMetadata 8: tag 1, run_metadata 2, bytes of RunMetadata: step_stats 1 {dev_stats 1* {device 1, node_stats 2*}}.
inline void node_times_event(std::string& buffer, double wall_time, std::int64_t step, std::string_view tag,
                             std::span<const node_time> times) {
    std::string run;
    {
        writer metadata(run);
        writer stats(metadata, 1);
        for (std::size_t first = 0; first < times.size(); ++first) {
            const std::string& device = times[first].device;
            const auto same = [&](const node_time& t) { return t.device == device; };
            if (std::any_of(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(first), same)) continue;
            writer of_device(stats, 1);
            text(of_device, 1, device);
            for (const node_time& t : times) {
                if (!same(t)) continue;
                writer node(of_device, 2);
                const auto took = static_cast<std::int64_t>(t.duration_us + 0.5);
                text(node, 1, t.name);
                node.add_int64(2, t.start_us);
                node.add_int64(4, took);
                node.add_int64(5, took);
                writer memory(node, 6);
                text(memory, 1, "arena");
                memory.add_int64(2, t.bytes);
                memory.add_int64(3, t.bytes);
            }
        }
    }
    writer event(buffer);
    event_head(event, wall_time, step);
    writer tagged(event, 8);
    text(tagged, 1, tag);
    text(tagged, 2, run);
}

} // namespace detail::wire
} // namespace tapegraph::io
