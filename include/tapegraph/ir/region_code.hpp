#pragma once

#include <tapegraph/ir/region_view.hpp>
#include <tapegraph/ir/trace.hpp>

/// Encodes nodes as the words of a canonical region.

namespace tapegraph::ir {

/// A region encoded from nodes; region_view reads the words.
struct region_code {
    list<int> slots;   // nodes read
    list<int> words;
    int instructions = 0;
};

/// The place of each node of a trace in a region, and lists for the current region. They are reused
/// from region to region: allocating the former for each would make encoding quadratic, and nvcc
/// for devices forgot to destroy the latter (see core/list.hpp).
struct region_marks {
    list<int> slot, order;
    list<int> slots, ordered; // operands and computed nodes of the current region
};

namespace detail {

/// Collects instructions depth first, operands before users, each node once.
template <class IsSlot, class OpIndex>
struct region_encoder {
    trace& t;
    const IsSlot& is_slot;
    const OpIndex& op_index;
    list<int> &slot_mark, &order_mark; // per node: its place, -1 elsewhere
    list<int>& slots;
    list<int>& order;

    constexpr region_encoder(trace& source, const IsSlot& slot, const OpIndex& index, region_marks& marks)
        : t(source),
          is_slot(slot),
          op_index(index),
          slot_mark(marks.slot),
          order_mark(marks.order),
          slots(marks.slots),
          order(marks.ordered) {
        slots.clear();
        order.clear();
        slot_mark.resize(source.nodes.size(), -1);
        order_mark.resize(source.nodes.size(), -1);
    }
    constexpr void forget_marks() {
        for (const int node : slots) slot_mark[node] = -1;
        for (const int node : order) order_mark[node] = -1;
    }

    constexpr void visit(int node) {
        if (slot_mark[node] >= 0 || order_mark[node] >= 0) return;
        if (is_slot(node)) {
            slot_mark[node] = slots.push_back(node);
            return;
        }
        for (int k = 0; k < t.nodes[node].arguments; ++k) visit(t.argument(node, k));
        order_mark[node] = order.push_back(node);
    }
    constexpr int reg(int node) const {
        return slot_mark[node] >= 0 ? slot_mark[node] : slots.size() + order_mark[node];
    }
};

} // namespace detail

/// Encodes the nodes from which `roots` are computed, down to those for which is_slot holds. op_index numbers operations.
template <class IsSlot, class OpIndex>
constexpr region_code encode_region(trace& t, const list<int>& roots, const IsSlot& is_slot, const OpIndex& op_index,
                                    region_marks& marks) {
    detail::region_encoder<IsSlot, OpIndex> s(t, is_slot, op_index, marks);
    for (int root : roots) s.visit(root);
    region_code result;
    result.words.reserve(region_view::size(s.slots.size(), s.order.size(), roots.size()));
    result.words.push_back(s.slots.size());
    result.words.push_back(s.order.size());
    result.words.push_back(roots.size());
    for (int slot : s.slots) result.words.push_back(static_cast<int>(t.nodes[slot].type));
    for (int id : s.order) {
        const entry& e = t.nodes[id];
        result.words.push_back(op_index(e.op));
        result.words.push_back(static_cast<int>(e.type));
        for (int k = 0; k < 4; ++k) result.words.push_back(k < e.arguments ? s.reg(t.argument(id, k)) : -1);
    }
    for (int root : roots) result.words.push_back(s.reg(root));
    result.instructions = s.order.size();
    result.slots = s.slots;
    s.forget_marks();
    return result;
}

} // namespace tapegraph::ir
