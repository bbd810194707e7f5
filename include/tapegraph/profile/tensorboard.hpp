#pragma once

#include <tapegraph/io/graph_nodes.hpp>
#include <tapegraph/io/tensorboard/node_times.hpp>
#include <tapegraph/profile/result.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Converts a profile for TensorBoard's graph.

namespace tapegraph::profiling {

/// The times of a program's calls in the last step, in the form that io::event_writer::node_times
/// takes. `view` is that of the profiled program, for example `model.training_view()`, whose graph
/// the run shows (io::graph_def).
///
///     run.node_times("profile", tg::profiling::node_times(result, model.training_view()), model.step());
inline std::vector<io::node_time> node_times(const profile_result& result, const ir::program_view& view) {
    const std::vector<std::string> names = io::graph_call_names(view);
    std::vector<io::node_time> times;
    for (const call& c : result.calls) {
        if (c.number < 0 || static_cast<std::size_t>(c.number) >= names.size()) continue;
        const sample& last = c.samples.back();
        times.push_back({names[static_cast<std::size_t>(c.number)],
                         static_cast<std::int64_t>((last.start - result.steps.front().start) * 1e6), last.seconds * 1e6,
                         static_cast<std::int64_t>(c.arena_bytes),
                         result.device == "cpu" ? "/device:CPU:0" : "/device:GPU:0"});
    }
    return times;
}

} // namespace tapegraph::profiling
