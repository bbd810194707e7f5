#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/lifetimes.hpp>
#include <tapegraph/graph/view_offsets.hpp>
#include <tapegraph/runtime/kernel.hpp>

#include <cstddef>

namespace tapegraph::ir {

/// All places of a bound program that hold the address of an input or of a view of it. They allow
/// an input to move without reconnecting every kernel call, which would cost a small function, or a
/// step of a scan, more than a kernel.
class input_addresses {
public:
    bool empty() const { return places_.empty(); }

    /// Finds the places in the values of nodes, in the operands of kernel calls and in the outputs.
    /// These must not move afterwards. An input that is assigned to a variable unchanged has none.
    void find(const program_view& view, numbered<buffer_view>& values, numbered<buffer_view>& operands,
              numbered<buffer_view>& outputs);

    /// Writes an input's new address. Returns false where it has no places.
    bool move(int input, void* data, const view_offsets& offsets) const;

private:
    struct place {
        void** address;
        int node;
    };
    numbered<numbered<place>> places_; // for each input
};

#if TG_DEFINES_FOR_HOST(graph)

TG_DEFINITION void input_addresses::find(const program_view& view, numbered<buffer_view>& values,
                                         numbered<buffer_view>& operands, numbered<buffer_view>& outputs) {
    places_.resize(static_cast<std::size_t>(view.inputs.size()));
    for (int input = 0; input < view.inputs.size(); ++input) {
        const int of = view.inputs[input].node;
        bool assigned = false;
        for (const assignment_entry& update : view.assignments) assigned = assigned || view.alias[update.node] == of;
        if (assigned) continue;
        numbered<place>& found = places_[input];
        for (int i = 0; i < view.nodes.size(); ++i)
            if (view.alias[i] == of) found.push_back({&values[i].data, i});
        for (int k = 0; k < view.values.size(); ++k)
            if (view.alias[view.values[k]] == of) found.push_back({&operands[k].data, view.values[k]});
        for (int i = 0; i < view.outputs.size(); ++i)
            if (view.alias[view.outputs[i].node] == of) found.push_back({&outputs[i].data, view.outputs[i].node});
    }
}

TG_DEFINITION bool input_addresses::move(int input, void* data, const view_offsets& offsets) const {
    for (const place& p : places_[input]) *p.address = offsets.address(data, p.node);
    return !places_[input].empty();
}

#endif

} // namespace tapegraph::ir
