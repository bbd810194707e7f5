#pragma once

#include <tapegraph/formats/path.hpp>
#include <tapegraph/io/onnx/file.hpp>
#include <tapegraph/io/onnx/prediction.hpp>
#include <tapegraph/io/onnx/quantized.hpp>
#include <tapegraph/io/onnx/rules.hpp>
#include <tapegraph/ir/eliminate.hpp>
#include <tapegraph/ir/simplify.hpp>

#include <string>
#include <utility>
#include <vector>

/// Writes models as ONNX files (opset 17, or a later one) for onnxruntime and others:
/// `tg::io::export_onnx(model, "m.onnx")`. Not part of tapegraph.hpp; needs protozero.

namespace tapegraph::onnx {

namespace detail {

template <class Op>
concept has_rule = requires(call& c) {
    rule<Op>::write(c, typename Op::attributes{});
};

/// Finds nodes whose operations the library has no rule for, each operation once.
template <class Stage>
constexpr auto unknown_nodes() {
    constexpr int count = Stage::value.used.nodes;
    constexpr auto all = [] {
        struct {
            int at[count > 0 ? count : 1]{};
            int size = 0;
        } found;
        const auto& f = Stage::value;
        list<int> live(count, 0);
        for (int i = 0; i < f.used.outputs; ++i) live[f.outputs[i].node] = 1;
        for (int i = count - 1; i >= 0; --i) {
            if (live[i] == 0) continue;
            const ir::entry& e = f.nodes[i];
            for (int k = 0; k < e.arguments; ++k) live[f.arguments[e.first_argument + k]] = 1;
            bool known = known_operation(e.op->name);
            for (int k = 0; k < found.size; ++k) known = known || ir::same_operation(f.nodes[found.at[k]].op, e.op);
            if (!known) found.at[found.size++] = i;
        }
        return found;
    }();
    return all;
}

template <class Op>
void write_by_rule(graph& g, int node) {
    const auto settings = attributes_from_words<Op>(g.t.words_of(node));
    if constexpr (Op::kind == operation_kind::map) {
        write_elementwise(g, node, [&](call& c) { return rule<Op>::write(c, settings); });
    } else {
        std::vector<std::string> operands;
        for (int k = 0; k < g.at(node).arguments; ++k) operands.push_back(g.plain(g.t.argument(node, k)));
        call c(g, node, std::move(operands));
        g.define(node, rule<Op>::write(c, settings));
    }
}

/// The operation of the k-th of those nodes.
template <class Stage, int K>
using unknown_operation = ir::operation_type<Stage::value.nodes[unknown_nodes<Stage>().at[K]].op>;

template <class Stage>
constexpr bool all_have_rules() {
    return []<int... K>(std::integer_sequence<int, K...>) { return (has_rule<unknown_operation<Stage, K>> && ...); }
    (std::make_integer_sequence<int, unknown_nodes<Stage>().size>{});
}
template <class Stage>
std::vector<user_rule> rules_of() {
    std::vector<user_rule> all;
    [&]<int... K>(std::integer_sequence<int, K...>) {
        [[maybe_unused]] const auto add = [&]<class Op>(std::type_identity<Op>) {
            if constexpr (has_rule<Op>) all.push_back({&ir::descriptor_of<Op>, &write_by_rule<Op>});
        };
        (add(std::type_identity<unknown_operation<Stage, K>>{}), ...);
    }
    (std::make_integer_sequence<int, unknown_nodes<Stage>().size>{});
    return all;
}

/// Writes the graph of a trace, of which `t` is a copy.
template <class G>
void fill(G& g, ir::model_trace& t) {
    for (const ir::input_entry& input : t.inputs) g.add_input(std::string(input.name));
    for (const ir::output_entry& output : t.outputs) g.name_of_output(g.plain(output.node), output.name);
    if (g.refused().empty()) return g.finish();
    std::string text = "export_onnx: ONNX (opset " + std::to_string(g.opset) + ") has nothing for ";
    for (std::size_t i = 0; i < g.refused().size(); ++i) text += (i > 0 ? ", " : "") + g.refused()[i];
    throw argument_error(text + "; custom operations: tg::onnx::rule<Op>");
}

} // namespace detail

/// Whether every operation by which a model (a compiled model or an instance, given as its type)
/// predicts has a rule: `static_assert(tg::onnx::exportable<decltype(model)>)`. Only attributes
/// that ONNX lacks are left for the export to find.
template <class Model>
inline constexpr bool
    exportable = detail::all_have_rules<typename detail::prediction_of<std::remove_cvref_t<Model>>::stage>();

} // namespace tapegraph::onnx

namespace tapegraph::io {

namespace detail {

/// Calls f(graph) with the graph by which a model predicts, ready to be written.
template <class Model, class F>
void with_onnx_graph(const Model& model, const onnx_options& options, const F& f) {
    if (options.opset < onnx::opset_version || options.opset > onnx::newest_opset)
        throw argument_error("export_onnx: opset " + std::to_string(options.opset) + ", those from " +
                             std::to_string(onnx::opset_version) + " to " + std::to_string(onnx::newest_opset) +
                             " are written");
    ir::model_trace t;
    std::vector<onnx::user_rule> rules;
    const auto& variables = onnx::detail::trace_prediction(model, t);
    if constexpr (onnx::detail::compiled_prediction<Model>) // operations of graphs made at run time have no rules
        rules = onnx::detail::rules_of<typename onnx::detail::prediction_of<Model>::stage>();
    ir::simplify(t);
    ir::eliminate_common_subexpressions(t);
    ir::eliminate_dead_nodes(t);
    onnx::graph g(t, variables, rules);
    g.prefix_masks = options.prefix_masks;
    g.opset = options.opset;
    onnx::detail::fill(g, t);
    f(g);
}

} // namespace detail

/// Writes the graph by which a model predicts, and its weights, as an ONNX file. Inputs and outputs
/// have their names ("input" and "output" in models that have one of each), the run-time extents of
/// `tg::dyn` are "batch", those of `tg::dim<"time">` are "time". The file appears when it is
/// complete, and is the same in all modes. A model that load_onnx made may be written again, with
/// another opset. Custom operations of tg::traced are refused. Throws argument_error for another
/// opset, and one that names every operation that ONNX does not have, and data_error if the file
/// cannot be written.
template <class Model>
void export_onnx(const Model& model, const files::path& path, const onnx_options& options = {}) {
    detail::with_onnx_graph(model, options, [&](auto& g) {
        if (options.int8_weights) onnx::quantize_weights(g);
        detail::write_onnx(path, g, options);
    });
}

} // namespace tapegraph::io
