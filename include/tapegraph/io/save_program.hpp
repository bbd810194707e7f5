#pragma once

#include <tapegraph/graph/operation_names.hpp>
#include <tapegraph/io/onnx/file.hpp>
#include <tapegraph/io/onnx/prediction.hpp>
#include <tapegraph/io/own_operators.hpp>

#include <string>
#include <utility>
#include <vector>

/// Saves the graph by which a model predicts, operation by operation, so that load_onnx makes the
/// same graph again: `tg::io::save_program(model, "m.onnx")`. Not part of tapegraph.hpp; needs
/// protozero.

namespace tapegraph::io {

namespace detail {

/// Writes the nodes of a trace in their order.
class program_writer {
public:
    program_writer(ir::model_trace& t, const variable_list& variables)
        : graph(t, variables, no_rules),
          t_(t),
          variables_(variables),
          names_(static_cast<std::size_t>(t.nodes.size())) {
        for (const ir::input_entry& input : t.inputs) graph.add_input(std::string(input.name));
        for (int i = 0; i < t.nodes.size(); ++i) write(i);
        for (const ir::output_entry& output : t.outputs) graph.name_of_output(name_of(output.node), output.name);
        if (!refused_.empty())
            throw argument_error(
                "save_program: no other program would find " + refused_ +
                " again: scans have types for names; names of custom operations must be unique, and elementwise ones "
                "registered by tg::register_kernels");
        graph.finish();
    }

    onnx::graph graph;

private:
    const std::string& name_of(int node) const { return names_[static_cast<std::size_t>(node)]; }

    void write(int node) {
        const ir::entry& e = t_.nodes[node];
        std::string& name = names_[static_cast<std::size_t>(node)];
        const std::int64_t* const words = t_.words_of(node);
        onnx::attributes settings;
        std::vector<std::string> operands;
        if (t_.is(node, ir::descriptor_of<ir::input_op>)) {
            name = t_.inputs[static_cast<int>(words[0])].name;
            return;
        }
        if (e.op->identity || e.op->kind == operation_kind::effect) { // exists for training or display
            name = name_of(t_.argument(node, 0));
            return;
        }
        if (t_.is(node, ir::descriptor_of<ir::variable_op>)) {
            const variable& v = variables_[tapegraph::detail::path_of_variable(t_, static_cast<int>(words[0]))];
            operands.push_back(graph.initializer(onnx::strided_view::whole(v.data())));
            settings.set("trainable", v.trainable() ? 1 : 0);
        } else if (t_.is(node, ir::descriptor_of<ir::extent_op>)) {
            settings.set("value", extent_text(words[0]));
        } else if (t_.is(node, ir::descriptor_of<ir::constant_op>)) {
            settings.set("words", std::vector<std::int64_t>{words[0]});
        } else {
            const ir::operation_name known = ir::name_of_operation(e.op);
            if (known.op != e.op || e.op->per_node_kernel) return refuse(e);
            for (int k = 0; k < e.arguments; ++k) operands.push_back(name_of(t_.argument(node, k)));
            if (known.variant != 0) settings.set("variant", known.variant);
            if (e.op->words > 0) settings.set("words", std::vector<std::int64_t>(words, words + e.op->words));
            std::vector<std::string> shape;
            for (int axis = 0; axis < e.rank; ++axis) shape.push_back(extent_text(t_.pool[e.dims + axis]));
            if (!shape.empty()) settings.set("shape", shape);
            if (!e.sealed) settings.set("open", 1);
            settings.set("group", e.group);
        }
        settings.set("type", onnx::type_number(e.type));
        const std::string scope = tapegraph::detail::path_of(t_.scopes, e.scope);
        name = (scope.empty() ? "" : scope + "/") + std::string(e.op->name) + ":" + std::to_string(node);
        graph.nodes.push_back({name,
                               std::string(e.op->name),
                               std::move(operands),
                               {name},
                               std::move(settings),
                               std::string(own_operators::domain)});
    }
    std::string extent_text(std::int64_t value) const {
        return own_operators::extent_text(t_.extents, value, [this](int symbol) {
            for (int i = 0; i < t_.inputs.size(); ++i)
                for (int axis = 0; axis < t_.nodes[t_.inputs[i].node].rank; ++axis)
                    if (t_.extents.symbol_of(t_.pool[t_.nodes[t_.inputs[i].node].dims + axis]) == symbol)
                        return "@" + std::to_string(i) + "." + std::to_string(axis);
            throw argument_error("save_program: an extent is that of no input");
        });
    }
    void refuse(const ir::entry& e) {
        refused_ += (refused_.empty() ? "'" : ", '") + std::string(e.op->name) + "'";
        if (const ir::source_line& line = t_.lines[e.line]; line.line > 0)
            refused_ += " (" + std::string(ir::detail::line_text(line).view()) + ")";
    }

    inline static const std::vector<onnx::user_rule> no_rules{};
    ir::model_trace& t_;
    const variable_list& variables_;
    std::vector<std::string> names_;
    std::string refused_;
};

} // namespace detail

/// Writes the graph by which a model predicts, and its weights, as an ONNX file of operators in the
/// domain "tapegraph". load_onnx makes the same graph of it, with the same bits, in any program that
/// has the custom operations that occur. Other readers of ONNX know none of these operators: for
/// them there is export_onnx. Options and data_error as of export_onnx. Throws argument_error that
/// names scans, and custom operations that share a name or are not registered, before there is a file. Custom gradients
/// and checkpoints are not saved: a loaded model is trained by the derivatives of its operations.
template <class Model>
void save_program(const Model& model, const files::path& path, const onnx_options& options = {}) {
    ir::model_trace t;
    const auto& variables = onnx::detail::trace_prediction(model, t);
    const detail::program_writer writer(t, variables);
    detail::write_onnx(path, writer.graph, options);
}

} // namespace tapegraph::io
