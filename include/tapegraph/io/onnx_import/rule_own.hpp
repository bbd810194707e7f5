#pragma once

#include <tapegraph/graph/operation_names.hpp>
#include <tapegraph/graph/passes/verify.hpp>
#include <tapegraph/io/onnx_import/call.hpp>
#include <tapegraph/io/own_operators.hpp>
#include <tapegraph/ops/recurrent/gru.hpp>
#include <tapegraph/ops/recurrent/lstm.hpp>
#include <tapegraph/ops/recurrent/simple_rnn.hpp>

/// The library's own operators, as save_program writes them: each is a node of the trace as it was.

namespace tapegraph::io::onnx_import::rules {

/// Recurrent layers are in no list of operations. A program that only loads has these of them: with a
/// bias or without anything, with a mask, an initial state (recurrence in ops/recurrent/recurrent.hpp).
template <class Cell, int... Extras>
constexpr bool has_recurrences(std::integer_sequence<int, Extras...>) {
    return ((ir::operation_binding<recurrent_op<Cell, Extras>>::bound &&
             ir::operation_binding<recurrent_states_op<Cell, Extras>>::bound &&
             ir::operation_binding<recurrent_result_op<Cell, Extras>>::bound) &&
            ...);
}
template <class... Cells>
constexpr bool has_all_recurrences = (has_recurrences<Cells>(std::integer_sequence<int, 0, 8, 9, 12, 13>{}) && ...);
static_assert(has_all_recurrences<tapegraph::detail::lstm_layer_cell, tapegraph::detail::gru_layer_cell,
                                  tapegraph::detail::simple_rnn_layer_cell>);

/// The extent that a text gives for the inputs of this trace.
inline extent own_extent(call& c, const std::string& text) {
    extent_table& table = c.on.trace().extents;
    const auto extent_of = [&](int input, int axis) {
        const auto& inputs = c.on.shared().model.graph.inputs;
        const value_pointer x = input >= 0 && input < static_cast<int>(inputs.size())
                                    ? c.around().find(inputs[static_cast<std::size_t>(input)].name)
                                    : nullptr;
        if (x == nullptr || axis < 0 || axis >= x->rank())
            refuse("extent '" + text + "' of an input that there is not");
        return extent(x->dims()[axis].value, &table);
    };
    extent result;
    if (!own_operators::read_extent(text, table, extent_of, result)) refuse("extent '" + text + "'");
    return result;
}

inline dtype own_type(call& c) {
    const auto number = static_cast<int>(c.integer("type", 0));
    const auto type = element_type(number);
    if (!type || carrier_of(*type) != *type) refuse("elements of type " + element_type_name(number));
    return *type;
}

/// Appends a node of any operation, and checks it as a whole: files may lie.
inline void own_operation(call& c) {
    ir::model_trace& t = c.on.trace();
    const std::string& name = c.node().type;
    const ir::operation_name known = ir::operation_named(name, static_cast<int>(c.integer("variant", 0)));
    if (known.op == nullptr)
        refuse(
            "this program has no operation of that name, or several; tg::register_kernels<Op, float>() registers it");
    const ir::operation& op = *known.op;
    std::vector<std::int64_t> words = c.integers("words");
    if (static_cast<int>(words.size()) != op.words) refuse("attribute words of another number than the operation's");
    if (op.ordinal_word >= 0) words[static_cast<std::size_t>(op.ordinal_word)] = t.draw();
    if (op.arity != any_arity && c.inputs() != op.arity) refuse("with " + std::to_string(c.inputs()) + " operands");
    if (op.kind == operation_kind::map && c.inputs() == 0) refuse("without an operand");
    std::vector<int> operands;
    for (int i = 0; i < c.inputs(); ++i) operands.push_back(c.plain(i).id());
    const std::vector<std::string> extents = c.texts("shape");
    if (extents.size() > static_cast<std::size_t>(max_rank)) refuse("a result with too many axes");
    shape dims;
    dims.attach(&t.extents);
    for (const std::string& each : extents) dims.push_back(own_extent(c, each));
    const dtype type = own_type(c);
    const int first_word = t.words.size();
    for (const std::int64_t word : words) t.words.push_back(word);
    const int made = t.append(op, type, dims.rank(), t.store(dims), operands.data(), c.inputs(), first_word);
    t.nodes[made].group = c.on.group(c.integer("group", -1), t.nodes[made].group);
    t.nodes[made].sealed = c.integer("open", 0) == 0;
    if (const char* const problem = ir::detail::node_problem(t, made)) refuse(problem);
    c.give(graph_node(&t, made));
}

inline void own_rule(call& c) {
    ir::model_trace& t = c.on.trace();
    const std::string& name = c.node().type;
    if (name == ir::variable_op::name) {
        c.integer("trainable", 0); // which model.hpp reads
        if (own_type(c) != c.type(0)) refuse("of another element type than its initializer");
        c.plain(0); // here, where it stands in the trace
        return c.give(0, c.pointer(0));
    }
    if (name == ir::extent_op::name)
        return c.give(graph_node(&t, t.extent_value(own_extent(c, c.text("value", "")), own_type(c))));
    if (name == ir::constant_op::name) {
        const std::vector<std::int64_t> words = c.integers("words");
        if (words.size() != 1) refuse("attribute words of another number than 1");
        return c.give(graph_node(&t, t.constant(std::bit_cast<double>(words[0]), own_type(c))));
    }
    own_operation(c);
}

} // namespace tapegraph::io::onnx_import::rules
