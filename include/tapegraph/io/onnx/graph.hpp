#pragma once

#include <tapegraph/io/onnx/weight.hpp>
#include <tapegraph/ir/text.hpp>
#include <tapegraph/model/first_values.hpp>
#include <tapegraph/model/variables.hpp>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// The ONNX graph of a trace, written from the outputs backwards: a rule writes the operands of a
/// node's value when the value is requested.
///
/// A value need not be laid out as in the trace: ONNX's convolutions require channels first,
/// recurrent layers time first. Its `axes` describe the layout, most operations keep it, and a
/// Transpose is written only where another layout is required.

namespace tapegraph::onnx {

/// Axis i in the file is axis order[i] of the trace. Empty: as in the trace.
using order = std::vector<int>;

/// The layout of a value in the file.
struct placed {
    std::string name;
    order axes;
    /// For a flattened value: the extents that the last axis combines, and the order of their axes
    /// before flattening.
    std::vector<std::int64_t> flat;
    order flat_axes;
};

class graph;

/// A registered rule for a custom operation.
struct user_rule {
    const ir::operation* op;
    void (*write)(graph&, int node);
};

/// An ONNX graph in the making: nodes of a trace become operations of the file, by rules.
class graph {
public:
    graph(ir::model_trace& traced, const variable_list& variables, const std::vector<user_rule>& rules)
        : t(traced), variables_(variables), rules_(rules), values_(static_cast<std::size_t>(traced.nodes.size())) {}

    ir::model_trace& t;
    std::vector<node_entry> nodes;
    std::vector<weight> weights;
    std::vector<std::string> outputs; ///< their names in the file

    // --- the trace ---

    /// A node of the trace.
    const ir::entry& at(int node) const { return t.nodes[node]; }
    /// The number of axes of a node's value.
    int rank(int node) const { return at(node).rank; }
    /// An extent of a node's value; negative if it is a symbol.
    std::int64_t extent_of(int node, int axis) const { return t.pool[at(node).dims + axis]; }
    /// All extents of a node's value.
    std::vector<std::int64_t> dims(int node) const {
        std::vector<std::int64_t> all;
        for (int i = 0; i < rank(node); ++i) all.push_back(extent_of(node, i));
        return all;
    }
    /// Whether all extents of a node's value are numbers.
    bool known(int node) const {
        const auto all = dims(node);
        return std::none_of(all.begin(), all.end(), is_symbolic);
    }
    /// Whether a node is an operation of that name.
    bool is(int node, std::string_view op) const { return at(node).op->name == op; }
    /// The attributes of a node, which must be an Op.
    template <class Op>
    typename Op::attributes attributes_of(int node) const {
        return attributes_from_words<Op>(t.words_of(node));
    }
    /// The value of a constant.
    bool number(int node, double& value) const {
        if (!is(node, "constant")) return false;
        value = std::bit_cast<double>(t.words_of(node)[0]);
        if (at(node).type == dtype::f32) value = static_cast<double>(static_cast<float>(value));
        return true;
    }

    // --- values ---

    /// The value of a node in its current layout.
    const placed& get(int node);
    /// A node's value in a given order of its axes; flattened values keep theirs.
    std::string in_order(int node, const order& wanted);
    /// A node's value with its axes in the order of the trace.
    std::string plain(int node) { return in_order(node, {}); }
    /// Says which value of the file is that of a node, and the order of its axes.
    void define(int node, std::string name, order axes = {}) {
        values_[static_cast<std::size_t>(node)] = {std::move(name), normal(std::move(axes)), {}, {}};
    }
    void define(int node, placed value) { values_[static_cast<std::size_t>(node)] = std::move(value); }
    /// Whether the elements are those of a variable, in some order.
    bool backed(int node, strided_view& v) const;
    /// Adds constants to the file with the elements of the view, and returns their name.
    std::string initializer(const strided_view& v, std::vector<std::int64_t> dims, std::vector<int> parts = {});
    std::string initializer(const strided_view& v) { return initializer(v, v.dims); }

    /// The order, empty if it changes nothing.
    static order normal(order axes) {
        for (std::size_t i = 0; i < axes.size(); ++i)
            if (axes[i] != static_cast<int>(i)) return axes;
        return {};
    }
    /// The order with a place for each axis, also if it changes nothing.
    static order whole(const order& axes, int rank) {
        if (!axes.empty()) return axes;
        order all(static_cast<std::size_t>(rank));
        for (int i = 0; i < rank; ++i) all[static_cast<std::size_t>(i)] = i;
        return all;
    }
    /// The position of an axis of the trace.
    static int position(const order& axes, int axis) {
        for (std::size_t i = 0; i < axes.size(); ++i)
            if (axes[i] == axis) return static_cast<int>(i);
        return axis;
    }
    /// The order [batch, channels, spatial...] for [batch, spatial..., channels].
    static order channels_first(int rank) {
        order axes{0, rank - 1};
        for (int i = 1; i + 1 < rank; ++i) axes.push_back(i);
        return axes;
    }

    // --- functions for rules ---

    /// Writes an operation; its first output has its name, followed by the others.
    std::string emit(std::string_view op, std::vector<std::string> inputs, const attributes& settings = {},
                     int count = 1);
    /// The name of output k of an operation whose first output is `first`.
    std::string output_of(const std::string& first, int k) const { return first + ":" + std::to_string(k); }
    /// A scalar of the type.
    std::string constant(double value, dtype type);
    /// A list of int64, or a scalar.
    std::string integers(const std::vector<std::int64_t>& values, bool scalar = false);
    /// An array of constants of the type, from its bytes.
    std::string constants(std::string bytes, dtype type, std::vector<std::int64_t> dims);
    /// An extent as a tensor [1] of int64.
    std::string extent_tensor(std::int64_t extent);
    /// Extents as a tensor of int64.
    std::string shape_tensor(const std::vector<std::int64_t>& extents);
    /// x converted to the type.
    std::string cast(const std::string& x, dtype to) {
        return emit("Cast", {x}, attributes().set("to", type_number(to)));
    }
    /// x with the extents `to` instead of `from`.
    std::string reshape(const std::string& x, const std::vector<std::int64_t>& from,
                        const std::vector<std::int64_t>& to);
    /// x without these axes, whose extents are 1.
    std::string squeeze(const std::string& x, const std::vector<std::int64_t>& axes) {
        return axes.empty() ? x : emit("Squeeze", {x, integers(axes)});
    }
    /// x with new axes of extent 1 at these places.
    std::string unsqueeze(const std::string& x, const std::vector<std::int64_t>& axes) {
        return axes.empty() ? x : emit("Unsqueeze", {x, integers(axes)});
    }
    /// x with its axes in the order of the permutation.
    std::string transpose(const std::string& x, const order& permutation) {
        return normal(permutation).empty() ? x : emit("Transpose", {x}, attributes().set("perm", permutation));
    }
    /// Records that this node cannot be written. Tracing continues, so that all of them are found.
    void refuse(int node, const std::string& why = {});
    /// What could not be written, and why, a line each.
    const std::vector<std::string>& refused() const { return refused_; }

    // --- the whole ---

    /// Writes a node by its rule.
    void write(int node); // in rules.hpp
    void finish();
    /// Takes the name of an input, so that no value gets it.
    void add_input(const std::string& name) { names_.insert(name); }
    std::string name_of_output(const std::string& value, std::string_view wanted);
    /// The name, followed by a number if it is taken.
    std::string new_name(std::string name) { return unique(std::move(name)); }
    bool prefix_masks = false; ///< whether the user guarantees prefix masks
    std::int64_t opset = opset_version;
    /// For values that the backward half of a bidirectional layer has in time order.
    std::map<int, placed> in_time;

private:
    std::string unique(std::string name) {
        if (names_.insert(name).second) return name;
        for (int i = 1;; ++i)
            if (std::string other = name + "_" + std::to_string(i); names_.insert(other).second) return other;
    }
    std::string scope_text(int node) const { return tapegraph::detail::path_of(t.scopes, at(node).scope); }

    const variable_list& variables_;
    const std::vector<user_rule>& rules_;
    std::vector<placed> values_;
    std::map<std::pair<int, order>, std::string> ordered_;
    std::map<std::string, std::string> known_;
    std::set<std::string> names_;
    std::vector<std::string> refused_;
    int node_ = -1;
};

inline const placed& graph::get(int node) {
    placed& value = values_[static_cast<std::size_t>(node)];
    if (!value.name.empty()) return value;
    const int before = std::exchange(node_, node);
    strided_view v;
    if (backed(node, v))
        define(node, initializer(v));
    else
        write(node);
    node_ = before;
    if (value.name.empty()) value.name = "refused"; // nothing will be written
    return value;
}

inline bool graph::backed(int node, strided_view& v) const {
    if (is(node, "variable")) {
        v = strided_view::whole(
            variables_[tapegraph::detail::path_of_variable(t, static_cast<int>(t.words_of(node)[0]))].data());
        return true;
    }
    if (is(node, "reshape") && known(node) && backed(t.argument(node, 0), v) && v.is_contiguous()) {
        v = v.reshaped(dims(node));
        return true;
    }
    return false;
}

inline std::string graph::in_order(int node, const order& given) {
    const order wanted = normal(given);
    if (strided_view v; backed(node, v)) return initializer(wanted.empty() ? v : v.permuted(wanted));
    const placed value = get(node);
    if (value.flat.empty() && value.axes == wanted) return value.name;
    std::string& name = ordered_[{node, wanted}];
    if (!name.empty()) return name;
    const int before = std::exchange(node_, node);
    std::string from = value.name;
    order axes = whole(value.axes, rank(node));
    if (!value.flat.empty()) {
        // Splits [..., c h w] into [..., c, h, w], permutes the axes to the order of the trace, and
        // merges them again.
        std::vector<std::int64_t> apart = dims(node), together = apart;
        const int fixed = rank(node) - 1;
        apart.pop_back();
        order back;
        for (int i = 0; i < fixed; ++i) back.push_back(i);
        for (const int axis : value.flat_axes) apart.push_back(value.flat[static_cast<std::size_t>(axis)]);
        for (std::size_t i = 0; i < value.flat.size(); ++i)
            back.push_back(fixed + position(value.flat_axes, static_cast<int>(i)));
        std::vector<std::int64_t> moved;
        for (const int axis : back) moved.push_back(apart[static_cast<std::size_t>(axis)]);
        from = reshape(transpose(reshape(from, together, apart), back), moved, together);
    }
    order permutation;
    for (const int axis : whole(wanted, rank(node))) permutation.push_back(position(axes, axis));
    name = transpose(from, permutation);
    node_ = before;
    return name;
}

inline std::string graph::initializer(const strided_view& v, std::vector<std::int64_t> dims, std::vector<int> parts) {
    std::string path;
    for (int i = 0; path.empty() && i < variables_.size(); ++i)
        if (&variables_.at(i).data() == v.source) path = variables_.at(i).path();
    std::string key = path;
    for (const std::vector<std::int64_t>* list :
         {static_cast<const std::vector<std::int64_t>*>(&dims), &v.dims, &v.strides}) {
        key += '|';
        for (const std::int64_t each : *list) key += std::to_string(each) + ",";
    }
    for (const int part : parts) key += "/" + std::to_string(part);
    std::string& name = known_[key];
    if (!name.empty()) return name;
    name = unique(path);
    weights.push_back({name, v.source->type(), std::move(dims), v, std::move(parts), {}});
    return name;
}

inline std::string graph::emit(std::string_view op, std::vector<std::string> inputs, const attributes& settings,
                               int count) {
    std::string scope = node_ >= 0 ? scope_text(node_) : std::string();
    if (!scope.empty()) scope += '/';
    const std::string name = unique(scope + std::string(op));
    node_entry node{name, std::string(op), std::move(inputs), {name}, settings};
    for (int k = 1; k < count; ++k) node.outputs.push_back(output_of(name, k));
    nodes.push_back(std::move(node));
    return name;
}

inline std::string graph::constants(std::string bytes, dtype type, std::vector<std::int64_t> dims) {
    std::string key = "=" + std::to_string(type_number(type));
    for (const std::int64_t d : dims) key += "," + std::to_string(d);
    key += "=" + bytes;
    std::string& name = known_[key];
    if (!name.empty()) return name;
    name = unique("constant");
    weights.push_back({name, type, std::move(dims), {}, {}, std::move(bytes)});
    return name;
}

inline std::string graph::constant(double value, dtype type) {
    std::string bytes;
    const auto put = [&]<class T>(std::type_identity<T>) {
        const T typed = static_cast<T>(value);
        bytes.assign(reinterpret_cast<const char*>(&typed), sizeof typed);
    };
    if (!common_types::visit(type, put)) {
        put(std::type_identity<float>{});
        type = dtype::f32;
    }
    return constants(std::move(bytes), type, {});
}

inline std::string graph::integers(const std::vector<std::int64_t>& values, bool scalar) {
    std::string bytes(values.size() * 8, '\0');
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return constants(std::move(bytes), dtype::i64,
                     scalar ? std::vector<std::int64_t>{}
                            : std::vector<std::int64_t>{static_cast<std::int64_t>(values.size())});
}

inline void graph::refuse(int node, const std::string& why) {
    std::string text = "'" + std::string(at(node).op->name) + "'";
    const std::string scope = scope_text(node);
    if (!why.empty()) text += ", " + why + ",";
    if (!scope.empty()) text += " in " + scope;
    if (const ir::source_line& line = t.lines[at(node).line]; line.line > 0)
        text += " (" + std::string(ir::detail::line_text(line).view()) + ")";
    if (std::find(refused_.begin(), refused_.end(), text) == refused_.end()) refused_.push_back(text);
    for (int k = 0; k < at(node).arguments; ++k) get(t.argument(node, k));
}

/// Gives a value the name of an output.
inline std::string graph::name_of_output(const std::string& value, std::string_view wanted) {
    const std::string name = unique(std::string(wanted));
    nodes.push_back({name, "Identity", {value}, {name}, {}});
    outputs.push_back(name);
    return name;
}

/// Removes unused nodes, and lets the operation that computes an output write it directly if
/// nothing else reads it.
inline void graph::finish() {
    std::map<std::string, std::size_t> maker;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        for (const std::string& each : nodes[i].outputs) maker[each] = i;
    std::map<std::string, int> uses;
    for (const node_entry& n : nodes)
        for (const std::string& each : n.inputs) ++uses[each];
    for (node_entry& n : nodes) {
        if (n.op_type != "Identity") continue;
        const auto found = maker.find(n.inputs[0]);
        if (found == maker.end() || uses[n.inputs[0]] != 1) continue;
        for (std::string& each : nodes[found->second].outputs)
            if (each == n.inputs[0]) each = n.outputs[0];
        n.op_type.clear();
    }
    std::erase_if(nodes, [](const node_entry& n) { return n.op_type.empty(); });
    std::set<std::string> read;
    for (const std::string& each : outputs) read.insert(each);
    std::vector<node_entry> kept;
    for (std::size_t i = nodes.size(); i-- > 0;) {
        const auto& made = nodes[i].outputs;
        if (std::none_of(made.begin(), made.end(), [&](const std::string& o) { return read.count(o) > 0; })) continue;
        for (const std::string& each : nodes[i].inputs) read.insert(each);
        kept.push_back(std::move(nodes[i]));
    }
    nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
    std::erase_if(weights, [&](const weight& w) { return read.count(w.name) == 0; });
}

} // namespace tapegraph::onnx
