#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/train/model_base.hpp>

#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Models that come as data: an ONNX file becomes a model that runs, without Python and without a
/// compiler. docs/onnx.md says what is imported. Link the component (docs/compile_time.md), which
/// holds the rules of the operators; without it they are compiled here.

namespace tapegraph::detail {
class hidden_onnx;
}

namespace tapegraph::io {

namespace onnx_import {
struct state;
}

/// An input or output of a file's graph.
struct onnx_value {
    std::string name;
    dtype type = dtype::f32;
    std::vector<std::int64_t> extents;     ///< -1: any, or what the name below says
    std::vector<std::string> extent_names; ///< "batch"; empty for those without a name
    bool ranked = true;                    ///< false: the file does not give the number of axes
};

/// A graph of ONNX, ready to run. Copies share their variables.
///
///     const tg::io::onnx_model net = tg::io::load_onnx("resnet18.onnx");
///     const tg::tensor<float> scores(net.predict({image})[0]);
///
/// It is also a model function of graphs that are made at run time; the file's weights are the
/// initial values of its variables:
///
///     auto model = tg::compile<tg::traced>(net, tg::spec<float, tg::dyn, 3, 224, 224>{}, tg::sparse_softmax_cross_entropy{}, tg::adam{});
class onnx_model {
public:
    /// Throws data_error for a file that is missing or damaged, and argument_error that names all
    /// nodes that cannot be imported, each with its operator and the reason.
    explicit onnx_model(const files::path& file);

    /// The model's inputs and outputs, in the file's order. Initializers are not inputs.
    const std::vector<onnx_value>& inputs() const;
    /// Names, types and shapes of the outputs, in the order of the file.
    const std::vector<onnx_value>& outputs() const;

    /// Computes the outputs for these inputs, in the file's order. Safe from several threads at
    /// once. Throws argument_error for a wrong number of inputs, dtype_error and shape_error for
    /// one that differs from the file.
    std::vector<any_tensor> predict(std::span<const any_tensor> x) const;
    std::vector<any_tensor> predict(std::initializer_list<any_tensor> x) const {
        return predict(std::span<const any_tensor>(x.begin(), x.size()));
    }
    /// The same by name. Throws argument_error for names that are not the file's.
    std::map<std::string, any_tensor> predict(const std::map<std::string, any_tensor>& x) const;

    /// The file's floating initializers, by their names with '/' for '.'. Those that the graph
    /// reads as filters of images have the library's order of axes (docs/onnx.md).
    variable_list& variables();
    const variable_list& variables() const;
    /// Writes the variables as safetensors, as compiled models do. save and load need #include
    /// <tapegraph/io/weights.hpp>.
    template <class Path>
    void save(const Path& path, const save_options& options = {}) const {
        base().save(path, options);
    }
    /// Reads weights that `save` wrote; the model's own are those of the ONNX file.
    template <class Path>
    load_report load(const Path& path, const load_options& options = {}) {
        return base().load(path, options);
    }

    /// The graph up to one of its values, which becomes its only output, for another head. Throws
    /// argument_error for a name that no node gives.
    onnx_model until(std::string_view value) const;
    /// The same for several values, which become the outputs in this order; inputs, initializers and outputs are
    /// values, too.
    onnx_model until_all(const std::vector<std::string>& values) const;

    /// Applies the graph to nodes. With one output it is a model function of
    /// tg::compile<tg::traced>.
    std::vector<graph_node> call(const graph_scope& scope, std::span<const graph_node> x) const;
    /// Calls the model as a layer of another one, with a node for each input. Throws argument_error if it has several
    /// outputs.
    template <class... Nodes>
    graph_node operator()(const graph_scope& scope, const Nodes&... x) const {
        const graph_node all[]{graph_node(x)...};
        return the_only(call(scope, all));
    }

    /// Traces the prediction again, for io/onnx.hpp and io/save_program.hpp, which write it as another file. Returns the
    /// variables of the trace: the model's, and what the file has as constants. Throws argument_error where the graph
    /// needs numbers for the extents of its inputs, or takes or gives integers that nodes hold in wider ones.
    variable_list trace_prediction(ir::model_trace& t) const;

private:
    friend class tapegraph::detail::hidden_onnx;
    explicit onnx_model(std::shared_ptr<onnx_import::state> s) : state_(std::move(s)) {}
    tapegraph::detail::model_base& base() const;
    graph_node the_only(const std::vector<graph_node>& results) const;

    std::shared_ptr<onnx_import::state> state_;
};

} // namespace tapegraph::io
