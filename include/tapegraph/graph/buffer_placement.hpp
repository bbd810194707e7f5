#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/lifetimes.hpp>
#include <tapegraph/graph/lower.hpp>
#include <tapegraph/graph/plan.hpp>
#include <tapegraph/runtime/memory.hpp>

#include <cstdint>

namespace tapegraph::ir {

/// Places the buffers of a bound program's arena and each step's scratch memory, planned for the
/// largest extents seen. Buffers of smaller extents fit at the same offsets, because every extent
/// grows with its symbols.
class buffer_placement {
public:
    /// The offset of a node's buffer in the arena, once there is a plan; -1: it lives elsewhere.
    std::int64_t offset(int id) const { return offsets_[id]; }
    std::int64_t scratch_offset(int step) const { return scratch_offsets_[step]; }
    std::size_t scratch_bytes(int step) const { return scratch_bytes_[static_cast<std::size_t>(step)]; }

    /// Bytes of scratch memory that steps need for the current extents; the caller writes them
    /// before it requests a plan.
    numbered<std::size_t>& needed_scratch() { return needed_scratch_; }

    /// Whether the current extents and scratch memory fit into the plan.
    bool valid(const lifetimes& live, const numbered<buffer_view>& values) const;

    /// Makes a new plan, in the memory of the first one. Returns the arena's bytes. The plan holds
    /// once take_plan() is called; if the arena cannot be allocated, there is no plan.
    std::size_t plan(const program_view& view, const lifetimes& live, const numbered<buffer_view>& values);
    void take_plan();

private:
    // An elementwise kernel may overwrite an operand that nothing reads afterwards, each of its
    // results another operand, except for sums, which come first. This is not used for devices'
    // kernels of several results.
    int reusable(const program_view& view, const lifetimes& live, const numbered<buffer_view>& values, int s,
                 int id) const;

    numbered<std::int64_t> offsets_, scratch_offsets_;
    numbered<std::size_t> planned_bytes_, scratch_bytes_, needed_scratch_, sizes_;
    numbered<int> request_of_;
    list<buffer_request> requests_;
    list<int> order_, placed_;
    int first_scratch_ = 0;
};

#if TG_DEFINES_FOR_HOST(graph)

TG_DEFINITION std::size_t buffer_placement::plan(const program_view& view, const lifetimes& live,
                                                 const numbered<buffer_view>& values) {
    // Earlier extents stay planned for: a kernel may need more scratch memory for small extents
    // than for large ones, and a plan for only one of them would be replaced at every change.
    sizes_.resize(values.size());
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
        const bool known = !offsets_.empty() && offsets_[i] >= 0;
        const std::size_t before = known ? planned_bytes_[i] : 0, now = values[i].bytes();
        sizes_[i] = now > before ? now : before;
    }
    for (std::size_t s = 0; s < scratch_bytes_.size(); ++s)
        if (needed_scratch_[s] < scratch_bytes_[s]) needed_scratch_[s] = scratch_bytes_[s];
    requests_.clear();
    request_of_.assign(values.size(), -1);
    const int steps = view.steps.size();
    for (int s = 0; s < steps; ++s) {
        const step_entry& step = view.steps[s];
        for (int k = step.inputs; k < step.inputs + step.outputs; ++k) {
            const int id = view.values[step.first_value + k];
            if (live.variable_of[id] >= 0) continue;
            const int shared = reusable(view, live, values, s, id);
            if (shared >= 0) {
                request_of_[id] = shared;
                requests_[shared].death = live.death[id];
            } else {
                request_of_[id] = requests_.push_back(
                    {static_cast<std::int64_t>(runtime::aligned(sizes_[id])), s, live.death[id], 0});
            }
        }
    }
    first_scratch_ = requests_.size();
    for (int s = 0; s < steps; ++s)
        requests_.push_back({static_cast<std::int64_t>(runtime::aligned(needed_scratch_[s])), s, s, 0});
    offsets_.clear();
    return static_cast<std::size_t>(plan_buffers(requests_, order_, placed_));
}

TG_DEFINITION bool buffer_placement::valid(const lifetimes& live, const numbered<buffer_view>& values) const {
    if (offsets_.empty()) return false;
    for (std::size_t s = 0; s < needed_scratch_.size(); ++s)
        if (needed_scratch_[s] > scratch_bytes_[s]) return false;
    for (std::size_t i = 0; i < values.size(); ++i)
        if (live.birth[i] >= 0 && values[i].bytes() > planned_bytes_[i]) return false;
    return true;
}

TG_DEFINITION void buffer_placement::take_plan() {
    offsets_.assign(sizes_.size(), -1);
    planned_bytes_.assign(sizes_.size(), ~std::size_t{0}); // values that live elsewhere always fit
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
        if (request_of_[i] < 0) continue;
        offsets_[i] = requests_[request_of_[i]].offset;
        planned_bytes_[i] = sizes_[i];
    }
    scratch_bytes_ = needed_scratch_;
    scratch_offsets_.resize(needed_scratch_.size());
    for (std::size_t s = 0; s < scratch_offsets_.size(); ++s)
        scratch_offsets_[s] = requests_[first_scratch_ + static_cast<int>(s)].offset;
}

TG_DEFINITION int buffer_placement::reusable(const program_view& view, const lifetimes& live,
                                             const numbered<buffer_view>& values, int s, int id) const {
    const step_entry& step = view.steps[s];
    const kernel_entry& kernel = view.kernels[step.kernel];
    if (kernel.kind != static_cast<int>(kernel_kind::region) && kernel.kind != static_cast<int>(kernel_kind::sums))
        return -1;
    if (step.outputs > 1 && (runtime::has_backend || live.death[id] == s)) return -1;
    const int sums = reductions_of(kernel, view.kernel_words.begin());
    for (int k = 0; k < sums; ++k)
        if (view.values[step.first_value + step.inputs + k] == id) return -1;
    for (int k = 0; k < step.inputs; ++k) {
        const int operand = view.values[step.first_value + k], owner = view.alias[operand];
        if (request_of_[owner] >= 0 && live.death[owner] == s && requests_[request_of_[owner]].death == s &&
            same_extents(view, operand, id) && values[owner].bytes() == values[id].bytes() &&
            sizes_[owner] == sizes_[id] && !reads_part_of(view, step, owner))
            return request_of_[owner];
    }
    return -1;
}

#endif

} // namespace tapegraph::ir
