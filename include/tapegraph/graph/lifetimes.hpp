#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/lower.hpp>

#include <vector>

namespace tapegraph::ir {

/// A vector whose elements are indexed by int, like nodes, steps and variables.
template <class T>
class numbered : public std::vector<T> {
public:
    using std::vector<T>::vector;
    using std::vector<T>::operator[];
    T& operator[](int i) { return this->begin()[i]; }
    const T& operator[](int i) const { return this->begin()[i]; }
};

/// Whether two nodes have the same extents for all values of the symbols: a plan outlives the
/// current extents.
bool same_extents(const program_view& view, int a, int b);

/// Whether a node is a view of part of its buffer.
bool shows_part(const program_view& view, int id);
/// Whether a step reads part of a buffer. Then it cannot overwrite that buffer: elements of its
/// result and of the operand with the same index are at different places.
bool reads_part_of(const program_view& view, const step_entry& step, int buffer);

/// Per node: the step that computes its buffer and the one that reads it last (-1: none; the number
/// of steps: it must outlive them all), and the variable to whose memory the result may be written
/// directly (-1: none). A use of a view counts as a use of its operand.
struct lifetimes {
    numbered<int> birth, death, variable_of;

    lifetimes() = default;
    explicit lifetimes(const program_view& view) { find(view); }

private:
    void find(const program_view& view);

    /// Whether a step may write its result over a variable. An elementwise kernel reads an element of the old value before it
    /// writes that element of the new one.
    static bool writes_over(const program_view& view, int step, int variable);
};

#if TG_DEFINES_FOR_HOST(graph)

TG_DEFINITION bool shows_part(const program_view& view, int id) {
    for (; view.alias[id] != id; id = view.arguments[view.nodes[id].first_argument])
        if (view.nodes[id].is(descriptor_of<slice_view_op>)) return true;
    return false;
}

TG_DEFINITION bool reads_part_of(const program_view& view, const step_entry& step, int buffer) {
    for (int k = 0; k < step.inputs; ++k)
        if (const int id = view.values[step.first_value + k]; view.alias[id] == buffer && shows_part(view, id))
            return true;
    return false;
}

TG_DEFINITION void lifetimes::find(const program_view& view) {
    const auto count = static_cast<std::size_t>(view.nodes.size());
    const int steps = view.steps.size();
    birth.assign(count, -1);
    death.assign(count, -1);
    variable_of.assign(count, -1);
    for (int s = 0; s < steps; ++s) {
        const step_entry& step = view.steps[s];
        for (int k = 0; k < step.inputs + step.outputs; ++k) {
            const int id = view.alias[view.values[step.first_value + k]];
            if (k >= step.inputs) birth[id] = s;
            death[id] = s;
        }
    }
    for (const output_entry& output : view.outputs) death[view.alias[output.node]] = steps;
    numbered<int> last_read;
    for (const variable_entry& v : view.variables) last_read.push_back(death[v.node]);
    for (const assignment_entry& update : view.assignments) {
        const int id = view.alias[update.node];
        const bool unread = last_read[update.variable] < 0; // its old value is not needed
        const bool in_place = birth[id] >= 0 && !shows_part(view, update.node) &&
                              (unread || writes_over(view, birth[id], view.variables[update.variable].node)) &&
                              variable_of[id] < 0 && death[id] < steps && last_read[update.variable] <= birth[id];
        if (in_place)
            variable_of[id] = update.variable;
        else
            death[id] = steps;
    }
}

TG_DEFINITION bool lifetimes::writes_over(const program_view& view, int step, int variable) {
    const step_entry& s = view.steps[step];
    const kernel_entry& kernel = view.kernels[s.kernel];
    if (reads_part_of(view, s, variable)) return false;
    if (kernel.kind == static_cast<int>(kernel_kind::region)) return true;
    if (kernel.kind != static_cast<int>(kernel_kind::operation) || !view.ops[kernel.op]->in_place) return false;
    for (int k = 1; k < s.inputs; ++k)
        if (view.alias[view.values[s.first_value + k]] == variable) return false;
    return true;
}

TG_DEFINITION bool same_extents(const program_view& view, int a, int b) {
    const entry &x = view.nodes[a], &y = view.nodes[b];
    bool same = x.rank == y.rank;
    for (int axis = 0; same && axis < x.rank; ++axis) same = view.pool[x.dims + axis] == view.pool[y.dims + axis];
    return same;
}

#endif

} // namespace tapegraph::ir
