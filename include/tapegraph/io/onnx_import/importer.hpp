#pragma once

#include <tapegraph/graph/traced_program.hpp>
#include <tapegraph/io/onnx_import/file_model.hpp>
#include <tapegraph/model/scope.hpp>
#include <tapegraph/ops/ops.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Turns a graph of ONNX into nodes of a trace: values, layouts, weights, and the walk over nodes.
/// The rules of operators are in files beside it.

namespace tapegraph::io::onnx_import {

/// Why a node cannot be imported.
struct refusal {
    std::string why;
    bool by_symbols = false; ///< it could be if extents were numbers
};
[[noreturn]] inline void refuse(std::string why) { throw refusal{std::move(why)}; }
[[noreturn]] inline void refuse_symbols(std::string why) { throw refusal{std::move(why), true}; }

/// The element type that nodes have for one of a file: narrow integers are computed in wider ones.
constexpr dtype carrier_of(dtype type) {
    switch (type) {
    case dtype::i8:
    case dtype::i16:
    case dtype::u16: return dtype::i32;
    case dtype::u32:
    case dtype::u64: return dtype::i64;
    default: return type;
    }
}
constexpr bool is_integer(dtype type) { return !is_floating(type) && type != dtype::boolean; }

struct value;
using value_pointer = std::shared_ptr<value>;

/// A tensor while a graph is read: known elements, or a node, or both after a rule requested the
/// node. Or a sequence of tensors.
struct value {
    dtype type = dtype::f32;
    array_pointer known;
    graph_node node;
    bool traced = false, refused = false;
    std::vector<int> axes; ///< axis i of the node is ONNX's axis axes[i]; empty: in order
    std::string weight;    ///< the name of the initializer in `known`, if training may change it
    bool sequence = false; ///< of `items`
    std::vector<value_pointer> items;

    bool in_order() const { return axes.empty(); }
    int rank() const { return known ? known->rank() : node.rank(); }
    /// Extents in ONNX's order.
    shape dims() const {
        if (known) return known->shape();
        const shape own = node.shape();
        shape s = own;
        for (std::size_t i = 0; i < axes.size(); ++i) s.set(axes[i], own[static_cast<int>(i)]);
        return s;
    }
};

/// A float initializer as the model holds it.
struct weight {
    std::string name, path;
    std::vector<int> order; ///< axis i of the variable is axis order[i] of the initializer; empty: in order
    std::vector<int> gates; ///< block k of the initializer's axis 1 is block gates[k] of the file's; empty: in order
    bool trainable = true;
};

/// Of LSTM, GRU and RNN: the library's k-th gate is ONNX's gate [k]. Empty for other operators.
inline std::vector<int> recurrent_gates(const std::string& type) {
    if (type == "LSTM") return {0, 2, 3, 1};
    if (type == "GRU") return {0, 1, 2};
    if (type == "RNN") return {0};
    return {};
}

/// What all traces of one file share.
struct store {
    file_model model;
    std::map<std::string, weight> weights;
    std::function<const void*(const weight&)> values; ///< where a weight's numbers are now
    std::vector<any_tensor> constants;

    /// Adds a constant, or finds an equal one; it stays as long as the store.
    std::size_t keep(dtype type, const shape& dims, const void* data, std::size_t bytes) {
        for (std::size_t k = 0; k < constants.size(); ++k) {
            const any_tensor& c = constants[k];
            if (c.type() == type && c.shape() == dims && (bytes == 0 || std::memcmp(c.read(), data, bytes) == 0))
                return k;
        }
        any_tensor made(type, dims);
        if (bytes > 0) std::memcpy(made.overwrite(), data, bytes);
        constants.push_back(made);
        return constants.size() - 1;
    }
};

/// Names that nodes see: those of a graph and of the graphs around it.
struct environment {
    environment* around = nullptr;
    std::map<std::string, value_pointer> values;
    const std::vector<attribute>* arguments = nullptr; ///< attributes of the function's call
    const file_function* function = nullptr;

    value_pointer find(const std::string& name) const {
        for (const environment* e = this; e != nullptr; e = e->around)
            if (const auto found = e->values.find(name); found != e->values.end()) return found->second;
        return nullptr;
    }
};

class importer;
class call;
using rule_function = void (*)(call&);
/// A row of the tables in rules_*.hpp.
struct operator_rule {
    std::string_view type; ///< the operator's name
    rule_function apply;
};
/// Returns the rule of a domain's operator, or null.
rule_function rule_of(std::string_view domain, std::string_view type);
/// Computes arithmetic of extents without a node; returns whether it did.
bool compute_extents(call& c);

/// The origin of a variable of the trace: a weight or a constant.
struct binding {
    const weight* of = nullptr; ///< null: a constant
    std::size_t constant = 0;
};

class importer {
public:
    importer(store& s, ir::model_trace& t, const graph_scope& root) : store_(s), t_(t), root_(root) {}

    ir::model_trace& trace() { return t_; }
    store& shared() { return store_; }
    std::int64_t opset() const { return opset_; }
    void set_opset(std::int64_t v) { opset_ = v; }
    /// Of the trace's variables, in their order.
    std::vector<binding> bindings;
    /// Whether the trace is a prediction by itself: it may have operations that only the CPU computes.
    bool predicts = false;

    /// Returns the outputs of the model for these inputs. Throws argument_error with all refusals.
    std::vector<value_pointer> run(const std::vector<value_pointer>& inputs,
                                   const std::vector<std::string>& until = {});

    /// Runs nodes [first, last) of the model's graph on these values and returns some of the results.
    std::vector<value_pointer> run_part(const std::map<std::string, value_pointer>& values, std::size_t first,
                                        std::size_t last, const std::vector<std::string>& names);
    /// Returns the outputs of a graph within another.
    std::vector<value_pointer> run_graph(const file_graph& g, environment& around);
    void run_nodes(const std::vector<file_node>& nodes, environment& env);
    void run_node(const file_node& n, environment& env);

    value_pointer make_known(array a) const {
        auto v = std::make_shared<value>();
        v->type = a.type();
        v->known = std::make_shared<const array>(std::move(a));
        return v;
    }
    value_pointer make(const graph_node& n, dtype type, std::vector<int> axes = {}) const {
        auto v = std::make_shared<value>();
        v->type = type;
        v->node = n;
        v->traced = true;
        for (std::size_t i = 0; i < axes.size(); ++i)
            if (axes[i] != static_cast<int>(i)) v->axes = axes;
        return v;
    }

    /// Returns the node of a value with its axes in order.
    graph_node plain(value& v) {
        if (v.sequence) refuse("a sequence where a tensor is expected");
        if (!v.traced) {
            v.node = materialized(v);
            v.traced = true;
        }
        if (!v.axes.empty()) {
            std::vector<int> back(v.axes.size());
            for (std::size_t i = 0; i < v.axes.size(); ++i)
                back[static_cast<std::size_t>(v.axes[i])] = static_cast<int>(i);
            v.node = transposed(v.node, back);
            v.axes.clear();
        }
        return v.node;
    }
    /// Returns the node of a value with its axes in this order, whatever its layout was.
    graph_node arranged(value& v, const std::vector<int>& axes) {
        if (!v.traced && !v.weight.empty()) {
            const weight& w = store_.weights.at(v.weight);
            if (w.order == axes && w.gates.empty()) return weight_node(w);
        }
        if (v.known && v.weight.empty() && !v.known->symbolic()) return constant(v.known->transposed(axes));
        if (v.traced && v.axes == axes) return v.node;
        return transposed(plain(v), axes);
    }
    /// The node of a weight that is kept in this order of gates and axes, if the value is one.
    bool kept_so(value& v, const std::vector<int>& gates, const std::vector<int>& axes, graph_node& found) {
        if (v.weight.empty()) return false;
        const weight& w = store_.weights.at(v.weight);
        if (w.order != axes || w.gates != gates) return false;
        found = weight_node(w);
        return true;
    }
    graph_node transposed(const graph_node& x, const std::vector<int>& order) {
        transpose_op::attributes a;
        a.rank = static_cast<std::int64_t>(order.size());
        for (std::size_t i = 0; i < order.size(); ++i) a.permutation[i] = order[i];
        return graph::invoke<transpose_op>(a, nullptr, std::source_location::current(), x);
    }
    graph_node number(double v, dtype type) { return {&t_, t_.constant(v, carrier_of(type))}; }
    graph_node constant(const array& a) {
        const dtype type = carrier_of(a.type());
        const bool exact = is_floating(type) || type == dtype::boolean || a.rank() > 0 ||
                           (a.integer(0) < (std::int64_t{1} << 53) && a.integer(0) > -(std::int64_t{1} << 53));
        if (a.rank() == 0 && exact) return number(a.number(0), type);
        const array converted = type == a.type() ? a : in_carrier(a, type);
        const std::size_t k = store_.keep(type, converted.shape(), converted.data(), converted.byte_count());
        if (const auto found = constants_.find(k); found != constants_.end()) return found->second;
        const graph_node made = variable("constants/" + std::to_string(k), type, converted.shape(), false,
                                         store_.constants[k].has_storage() ? store_.constants[k].read() : nullptr);
        bindings.push_back({nullptr, k});
        return constants_[k] = made;
    }
    /// Any node, for functions that take an example of the mode.
    graph_node example() { return {&t_, t_.constant(0, dtype::f32)}; }
    std::map<std::string, int>& reads() { return reads_; }
    /// The trace's number for a group of the file: `fresh` for the first node of it.
    int group(std::int64_t of_file, int fresh) { return groups_.try_emplace(of_file, fresh).first->second; }

    /// Computes the outputs of a node whose operands are all known.
    std::vector<value_pointer> fold(const file_node& n, const std::vector<value_pointer>& in, environment& env);

private:
    static array in_carrier(const array& a, dtype type) {
        array to(type, a.dims());
        for (std::int64_t i = 0; i < a.size(); ++i)
            if (type == dtype::i32)
                static_cast<std::int32_t*>(to.data())[i] = static_cast<std::int32_t>(a.integer(i));
            else
                static_cast<std::int64_t*>(to.data())[i] = a.integer(i);
        return to;
    }
    graph_node materialized(const value& v) {
        if (!v.weight.empty()) {
            const weight& w = store_.weights.at(v.weight);
            const graph_node stored = weight_node(w);
            if (w.order.empty()) return stored;
            std::vector<int> back(w.order.size());
            for (std::size_t i = 0; i < w.order.size(); ++i)
                back[static_cast<std::size_t>(w.order[i])] = static_cast<int>(i);
            const graph_node plain = transposed(stored, back);
            if (w.gates.size() < 2) return plain;
            std::vector<graph_node> blocks(w.gates.size());
            const std::int64_t units = plain.shape()[1].value / static_cast<std::int64_t>(blocks.size());
            for (std::size_t k = 0; k < blocks.size(); ++k)
                blocks[static_cast<std::size_t>(w.gates[k])] = tapegraph::detail::part_of(
                    plain, 1, static_cast<std::int64_t>(k) * units, units, std::source_location::current());
            return tapegraph::concat(blocks, 1);
        }
        if (!v.known->symbolic()) return constant(*v.known);
        std::vector<graph_node> items;
        for (const std::int64_t i : v.known->as_integers())
            items.push_back(reshape(graph_node(&t_, t_.extent_value({i, &t_.extents}, carrier_of(v.type))), {1}));
        return reshape(tapegraph::concat(items, 0), v.known->shape());
    }
    graph_node weight_node(const weight& w) {
        if (const auto found = weights_.find(w.name); found != weights_.end()) return found->second;
        const initializer_info* info = nullptr;
        for (const initializer_info& each : store_.model.graph.initializers)
            if (each.name == w.name) info = &each;
        shape dims = info->value->shape();
        for (std::size_t i = 0; i < w.order.size(); ++i)
            dims.set(static_cast<int>(i), info->value->shape()[w.order[i]]);
        const graph_node made = variable(w.path, info->value->type(), dims, w.trainable, store_.values(w));
        bindings.push_back({&w, 0});
        return weights_[w.name] = made;
    }
    // Like graph_scope::variable, of any element type and with initial values in memory.
    graph_node variable(const std::string& path, dtype type, const shape& dims, bool trainable, const void* values) {
        const std::size_t slash = path.rfind('/');
        const graph_scope owner = slash == path.npos ? root_ : root_ / path.substr(0, slash);
        const std::string name = slash == path.npos ? path : path.substr(slash + 1);
        const int scope = owner.index();
        const int word = t_.words.push_back(t_.variables.size());
        const int node =
            t_.append(ir::descriptor_of<ir::variable_op>, type, dims.rank(), t_.store(dims), nullptr, 0, word);
        const int at = t_.words.push_back(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(values)));
        int& newest = t_.members[scope].last_variable;
        newest = t_.define({scope, kept_text(name), node, trainable},
                           {static_cast<int>(initializer_kind::stored), static_cast<double>(at), 0, newest}) +
                 1;
        return {&t_, node};
    }
    void finish(const file_node& n);

    store& store_;
    ir::model_trace& t_;
    graph_scope root_;
    std::int64_t opset_ = 1;
    std::map<std::string, graph_node> weights_;
    std::map<std::size_t, graph_node> constants_;
    std::map<std::string, int> reads_;
    std::map<std::int64_t, int> groups_;
    std::vector<std::string> problems_;
    bool by_symbols_ = true;
};

} // namespace tapegraph::io::onnx_import
