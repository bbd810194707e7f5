#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/lifetimes.hpp>
#include <tapegraph/ops/movement/kernel.hpp>

#include <cstddef>
#include <cstdint>

namespace tapegraph::ir {

/// Offsets of a program's nodes in their buffers: views of parts have one, once extents are bound.
class view_offsets {
public:
    void find(const program_view& view, const lifetimes& live, const numbered<buffer_view>& values);
    /// The address of a node in its buffer.
    void* address(void* buffer, int id) const {
        return buffer == nullptr ? nullptr : static_cast<std::byte*>(buffer) + bytes_[id];
    }

private:
    numbered<std::int64_t> bytes_;
};

#if TG_DEFINES_FOR_HOST(graph)

TG_DEFINITION void view_offsets::find(const program_view& view, const lifetimes& live,
                                      const numbered<buffer_view>& values) {
    bytes_.assign(values.size(), 0);
    for (int i = 0; i < view.nodes.size(); ++i) { // operands come before their views
        if (view.alias[i] == i || live.death[view.alias[i]] < 0) continue;
        const entry& e = view.nodes[i];
        const int operand = view.arguments[e.first_argument];
        bytes_[i] = bytes_[operand];
        if (!e.is(descriptor_of<slice_view_op>)) continue;
        const auto place = attributes_from_words<slice_view_op>(&view.words[e.words]);
        bytes_[i] += runtime::detail::elements_before(place, values[operand], values[i]) *
                     static_cast<std::int64_t>(size_of(e.type));
    }
}

#endif

} // namespace tapegraph::ir
