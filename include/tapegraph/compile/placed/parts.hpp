#pragma once

#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/passes/effects.hpp>
#include <tapegraph/ir/eliminate.hpp>
#include <tapegraph/model/place.hpp>

#include <array>
#include <string_view>
#include <utility>

/// Splits a session's program into parts that run one after the other on several devices, or
/// several tasks. A part is all that one place can compute once the earlier parts have run; values
/// computed by other parts are its inputs, and those that others read are its outputs. Variables
/// change after all parts have run, so that every part reads their initial values.

namespace tapegraph::detail {

/// The place of a part.
struct part_place {
    int place = 0, task = 0; ///< a device of a task, which the trace counts from 1; 0: unplaced
    friend constexpr bool operator==(const part_place&, const part_place&) = default;
};

/// The part of each node.
struct parts_of_nodes {
    list<int> part;          ///< per node; -1 for a leaf, which every part has itself
    list<part_place> places; ///< per part
};
constexpr part_place place_of(const ir::entry& e) { return {e.place, e.task}; }

template <class Nodes, class Arguments>
constexpr parts_of_nodes find_parts(const Nodes& nodes, const Arguments& arguments, int count) {
    parts_of_nodes found;
    list<int> level(count, 0);
    int levels = 1, tasks = 1;
    for (int i = 0; i < count; ++i) {
        const ir::entry& e = nodes[i];
        for (int k = 0; k < e.arguments; ++k) {
            const int a = arguments[e.first_argument + k];
            if (nodes[a].op->kind == operation_kind::leaf) continue;
            const int after = level[a] + (place_of(nodes[a]) == place_of(e) ? 0 : 1);
            if (after > level[i]) level[i] = after;
        }
        if (level[i] >= levels) levels = level[i] + 1;
        if (e.task >= tasks) tasks = e.task + 1;
    }
    list<int> number(levels * tasks * place::end, -1);
    const auto number_of = [&](int i) -> int& {
        return number[(level[i] * tasks + nodes[i].task) * place::end + nodes[i].place];
    };
    for (int at = 0; at < levels; ++at)
        for (int i = 0; i < count; ++i) {
            if (nodes[i].op->kind == operation_kind::leaf || level[i] != at) continue;
            int& part = number_of(i);
            if (part < 0) part = found.places.push_back(place_of(nodes[i]));
        }
    if (found.places.empty()) found.places.push_back({});
    found.part.resize(count, -1);
    for (int i = 0; i < count; ++i)
        if (nodes[i].op->kind != operation_kind::leaf) found.part[i] = number_of(i);
    return found;
}

/// Removes unused nodes, before parts are made.
constexpr void keep_needed_nodes(ir::model_trace& t) {
    ir::eliminate_dead_nodes(t);
    t.layers.clear(); // their nodes have moved
}
template <class Whole>
struct needed_trace {
    using previous = Whole;
    static constexpr void build(ir::model_trace& t) { keep_needed_nodes(t); }
};

template <class Stage>
constexpr bool anything_placed() {
    for (int i = 0; i < Stage::value.used.nodes; ++i)
        if (!(place_of(Stage::value.nodes[i]) == part_place{})) return true;
    return false;
}
/// The same for device names only.
template <class Stage>
constexpr bool anything_on_devices() {
    for (int i = 0; i < Stage::value.used.nodes; ++i)
        if (Stage::value.nodes[i].place != place::anywhere) return true;
    return false;
}

/// The places of the parts of a program; one if nothing is placed.
template <class Whole>
constexpr auto places_of() {
    if constexpr (!anything_placed<ir::traced_stage<Whole>>()) {
        return std::array<part_place, 1>{};
    } else {
        constexpr const auto& value = ir::traced_stage<needed_trace<Whole>>::value;
        constexpr int count = find_parts(value.nodes, value.arguments, value.used.nodes).places.size();
        std::array<part_place, static_cast<std::size_t>(count)> places{};
        const parts_of_nodes found = find_parts(value.nodes, value.arguments, value.used.nodes);
        for (int k = 0; k < count; ++k) places[static_cast<std::size_t>(k)] = found.places[k];
        return places;
    }
}

/// Reduces a program without unused nodes to one of its parts.
constexpr void cut_part(ir::trace& t, int part) {
    const int count = t.nodes.size();
    const parts_of_nodes found = find_parts(t.nodes, t.arguments, count);
    list<int> read(count, 0), from_others(count, 0);
    for (int i = 0; i < count; ++i)
        for (int k = 0; k < t.nodes[i].arguments; ++k) {
            const int a = t.argument(i, k);
            if (found.part[a] < 0 || found.part[a] == found.part[i]) continue;
            if (found.part[a] == part) read[a] = 1;
            if (found.part[i] == part) from_others[a] = 1;
        }
    const auto is_own = [&](int node) { return found.part[node] == part || (found.part[node] < 0 && part == 0); };
    list<ir::output_entry> outputs;
    for (int k = 0; k < t.outputs.size(); ++k)
        if (is_own(t.outputs[k].node))
            outputs.push_back({t.outputs[k].name, t.outputs[k].node, ir::output_role::result, k});
    for (const ir::assignment_entry& update : t.assignments)
        if (is_own(update.node)) outputs.push_back({"update", update.node, ir::output_role::update, update.variable});
    for (int i = 0; i < count; ++i)
        if (read[i] != 0) outputs.push_back({"value", i, ir::output_role::value, i});
    t.outputs = outputs;
    t.assignments.clear();
    for (int i = 0; i < count; ++i) {
        if (found.part[i] >= 0 && found.part[i] != part && t.nodes[i].op->kind == operation_kind::effect)
            ir::detail::drop_effect(t, t.nodes[i]);
        if (from_others[i] == 0) continue;
        ir::entry& e = t.nodes[i];
        e.op = &ir::descriptor_of<ir::input_op>;
        e.arguments = 0;
        e.sealed = true;
        e.words = t.words.push_back(t.inputs.size());
        t.inputs.push_back({"a value of another device", i, false, false, 0, i + 1});
    }
}

/// One part of several.
template <class Whole, int Part>
struct part_trace {
    using previous = needed_trace<Whole>;
    static constexpr void build(ir::model_trace& t) { cut_part(t, Part); }
};

/// A part, compiled.
struct compiled_part {
    const ir::program_view* program = nullptr;
    const ir::model_view* model = nullptr; ///< of the whole: it defines the variables
    int place = 0;
    std::string_view task{}; ///< "/job:worker/task:1"; empty: unplaced
    bool whole = false;      ///< the only part, which changes variables in place
};

template <class Whole, class Numbers>
struct parts_table;
template <class Whole, int... Part>
struct parts_table<Whole, std::integer_sequence<int, Part...>> {
    static constexpr auto places = places_of<Whole>();
    static constexpr ir::model_view model = ir::stage_view<ir::traced_stage<Whole>>();
    static constexpr bool whole = places.size() == 1 && places[0] == part_place{};
    template <int K>
    // A pointer, because nvcc takes no address of a reference here.
    static constexpr const ir::program_view* program() {
        if constexpr (whole)
            return &ir::compile_program<Whole>();
        else
            return &ir::compile_program<part_trace<Whole, K>>();
    }
    static constexpr std::string_view task_of(part_place at) {
        return at.task == 0 ? std::string_view() : ir::traced_stage<Whole>::value.tasks[at.task - 1];
    }
    static constexpr std::array<compiled_part, sizeof...(Part)> all{
        compiled_part{program<Part>(), &model, places[static_cast<std::size_t>(Part)].place,
                      task_of(places[static_cast<std::size_t>(Part)]), whole}...};
};
template <class Whole>
using parts_of = parts_table<Whole, std::make_integer_sequence<int, static_cast<int>(places_of<Whole>().size())>>;

} // namespace tapegraph::detail
