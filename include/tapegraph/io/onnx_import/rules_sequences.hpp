#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>

/// Sequences of tensors. Their lengths are known when the graph is made: they are lists of values, and
/// nodes see the tensors alone.

namespace tapegraph::io::onnx_import {

namespace rules {

inline const std::vector<value_pointer>& items_of(call& c, int i) {
    if (!c.operand(i).sequence) refuse("operand " + std::to_string(i) + " is no sequence");
    return c.operand(i).items;
}
inline void give_sequence(call& c, std::vector<value_pointer> items) {
    for (const value_pointer& v : items)
        if (v->sequence) refuse("a sequence of sequences");
    auto made = std::make_shared<value>();
    made->sequence = true;
    made->items = std::move(items);
    c.give(0, made);
}
/// The place that operand `i` names among `count` tensors, counted from the end if it is negative, and up to `last`;
/// `otherwise` if there is none.
inline std::size_t place_in(call& c, int i, std::size_t count, std::size_t last, std::size_t otherwise) {
    if (!c.has(i)) return otherwise;
    const std::vector<std::int64_t> at = c.integers(i, "a position");
    const auto size = static_cast<std::int64_t>(count);
    if (at.size() != 1) refuse("a position that is not a number");
    if (at[0] < -size || at[0] > static_cast<std::int64_t>(last))
        refuse("position " + std::to_string(at[0]) + " of " + std::to_string(size));
    return static_cast<std::size_t>(at[0] < 0 ? at[0] + size : at[0]);
}

inline void sequence_empty(call& c) {
    c.ignore("dtype");
    give_sequence(c, {});
}
inline void sequence_construct(call& c) {
    std::vector<value_pointer> items;
    for (int i = 0; i < c.inputs(); ++i) items.push_back(c.pointer(i));
    give_sequence(c, std::move(items));
}
inline void sequence_insert(call& c) {
    std::vector<value_pointer> items = items_of(c, 0);
    const std::size_t at = place_in(c, 2, items.size(), items.size(), items.size());
    items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), c.pointer(1));
    give_sequence(c, std::move(items));
}
inline void sequence_erase(call& c) {
    std::vector<value_pointer> items = items_of(c, 0);
    if (items.empty()) refuse("of an empty sequence");
    items.erase(items.begin() +
                static_cast<std::ptrdiff_t>(place_in(c, 1, items.size(), items.size() - 1, items.size() - 1)));
    give_sequence(c, std::move(items));
}
inline void sequence_at(call& c) {
    const std::vector<value_pointer>& items = items_of(c, 0);
    if (items.empty()) refuse("of an empty sequence");
    c.operand(1); // is required
    c.give(0, items[place_in(c, 1, items.size(), items.size() - 1, 0)]);
}
inline void sequence_length(call& c) {
    c.give_known(0, array::integers({static_cast<std::int64_t>(items_of(c, 0).size())}, true));
}
inline void concat_from_sequence(call& c) {
    const std::vector<value_pointer>& items = items_of(c, 0);
    if (items.empty()) refuse("of an empty sequence");
    const bool raised = c.integer("new_axis", 0) != 0;
    const int rank = items[0]->rank() + (raised ? 1 : 0);
    c.give(0, joined(c, items, c.axis(c.integer("axis", 0), rank), raised));
}
inline void split_to_sequence(call& c) {
    const int axis = c.axis(c.integer("axis", 0), c.rank(0));
    const std::int64_t size = known_extent(c.dims(0)[axis], "its parts");
    const bool by_ones = !c.has(1), flat = by_ones && c.integer("keepdims", 1) == 0;
    if (!by_ones) c.ignore("keepdims");
    std::vector<std::int64_t> sizes;
    if (by_ones || c.rank(1) == 0) {
        const std::int64_t chunk = by_ones ? 1 : c.integers(1, "sizes").at(0);
        if (chunk < 1) refuse("into parts of " + std::to_string(chunk));
        if ((size + chunk - 1) / chunk > most_parts) refuse("into more than " + std::to_string(most_parts) + " parts");
        for (std::int64_t at = 0; at < size; at += chunk) sizes.push_back(std::min(chunk, size - at));
    } else {
        sizes = c.integers(1, "sizes");
        std::int64_t sum = 0;
        for (const std::int64_t each : sizes) {
            if (each < 0 || each > size) refuse("into a part of " + std::to_string(each));
            sum += each;
        }
        if (sum != size) refuse("its sizes do not add up to " + std::to_string(size));
    }
    std::vector<value_pointer> items;
    std::int64_t at = 0;
    for (const std::int64_t each : sizes) {
        const auto number = [&](std::int64_t v) { return c.on.make_known(array::integers({v})); };
        const value_pointer part = computed(c, {"Slice",
                                                {c.pointer(0), number(at), number(at + each), number(axis)},
                                                {},
                                                std::max<std::int64_t>(c.opset(), 10)});
        items.push_back(
            !flat ? part : computed(c, {"Squeeze", {part, number(axis)}, {}, std::max<std::int64_t>(c.opset(), 13)}));
        at += each;
    }
    give_sequence(c, std::move(items));
}

inline std::span<const operator_rule> sequences() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"SequenceEmpty", &sequence_empty},
        {"SequenceConstruct", &sequence_construct},
        {"SequenceInsert", &sequence_insert},
        {"SequenceErase", &sequence_erase},
        {"SequenceAt", &sequence_at},
        {"SequenceLength", &sequence_length},
        {"ConcatFromSequence", &concat_from_sequence},
        {"SplitToSequence", &split_to_sequence},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
