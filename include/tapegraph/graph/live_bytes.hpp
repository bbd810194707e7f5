#pragma once

#include <tapegraph/graph/program.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

/// Memory use of a program's arena while its calls run.

namespace tapegraph::ir {

namespace detail {

// The operand that a result of step `s` overwrites, or -1.
inline int overwritten(const program& p, int s, int result) {
    const program_view& view = p.view();
    const step_entry& step = view.steps[s];
    const std::int64_t at = p.arena_slot_of(result).offset;
    for (int k = 0; at >= 0 && k < step.inputs; ++k) {
        const int owner = view.alias[view.values[step.first_value + k]];
        const program::arena_slot slot = p.arena_slot_of(owner);
        if (slot.offset == at && slot.death == s && p.value_of(owner).bytes() > 0) return owner;
    }
    return -1;
}

} // namespace detail

/// Bytes of live buffers and of scratch memory during each call of a bound program and after the
/// last.
inline std::vector<double> live_bytes(const program& p) {
    const program_view& view = p.view();
    const int steps = view.steps.size();
    std::vector<double> live(static_cast<std::size_t>(steps) + 1, 0.0);
    for (int s = 0; s < steps; ++s) {
        live[static_cast<std::size_t>(s)] += static_cast<double>(p.scratch_bytes(s));
        const step_entry& step = view.steps[s];
        for (int k = step.inputs; k < step.inputs + step.outputs; ++k) {
            const int id = view.values[step.first_value + k];
            const program::arena_slot slot = p.arena_slot_of(id);
            if (slot.offset < 0) continue;
            // A buffer shared by a step's result and an overwritten operand counts once.
            const int first = detail::overwritten(p, s, id) >= 0 ? s + 1 : s;
            for (int at = first; at <= slot.death && at <= steps; ++at)
                live[static_cast<std::size_t>(at)] += static_cast<double>(p.value_of(id).bytes());
        }
    }
    return live;
}

} // namespace tapegraph::ir
