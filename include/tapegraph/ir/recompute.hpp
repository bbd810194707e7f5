#pragma once

#include <tapegraph/ir/node.hpp>

/// Checkpoints in a trace. The nodes of a checkpointed function are copied, and the derivative
/// reads the copies, so that the function's values are recomputed instead of kept.

namespace tapegraph::ir {

/// Marks the end of a checkpointed function: its operand is the function's value, and the nodes
/// from `first` up to this one are the function's.
struct checkpoint_op : identity_node {
    static constexpr std::string_view name = "checkpoint";
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t first = 0;
    };
    template <int I>
    static constexpr node vjp(const attributes&, node dy, node, node) {
        return dy;
    }
};

/// A view of a value in the same memory. Copied nodes read their inputs through such views;
/// otherwise common-subexpression elimination would merge them with their originals.
struct recompute_op {
    static constexpr std::string_view name = "recompute";
    static constexpr operation_kind kind = operation_kind::view;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t checkpoint = 0; ///< the checkpoint whose recomputation it belongs to
    };
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[0].dims;
    }
    template <int I>
    static constexpr node vjp(const attributes&, node dy, node, node) {
        return dy;
    }
};

/// The copies made while one gradient is traced. The original nodes are still differentiated, and
/// only values are read from the copies, so adjoints add in the same order with and without
/// checkpoints.
class recomputation {
public:
    constexpr recomputation(trace& t, int count) : t_(t), copy_(count, -1) {}

    /// The node from which the derivative reads the value of node `id`: its copy, or itself.
    constexpr int copy_of(int id) const { return copy_[id] >= 0 ? copy_[id] : id; }
    /// The original of a copy; any other node is its own.
    constexpr int origin_of(int id) const { return id < origin_.size() && origin_[id] >= 0 ? origin_[id] : id; }

    /// Copies the nodes of the checkpointed function that ends at a node.
    constexpr void repeat(int checkpoint) {
        const auto first = static_cast<int>(t_.words_of(checkpoint)[0]);
        const int scope = t_.scope, line = t_.line;
        const auto copied = [&](int id) {
            const operation_kind kind = t_.nodes[id].op->kind; // printing is not repeated
            return id >= first && id < checkpoint && kind != operation_kind::leaf && kind != operation_kind::effect;
        };
        // Views of outside values go first, so that the nodes of a formula stay contiguous.
        list<int> outside, names;
        const auto name_of = [&](int id) {
            for (int k = 0; k < outside.size(); ++k)
                if (outside[k] == id) return names[k];
            return -1;
        };
        for (int i = first; i < checkpoint; ++i) {
            for (int k = 0; copied(i) && k < t_.nodes[i].arguments; ++k) {
                const int id = t_.argument(i, k);
                if (copied(id) || name_of(id) >= 0) continue;
                outside.push_back(id);
                names.push_back(named(id, checkpoint));
            }
        }
        list<int> made(checkpoint - first, -1);
        int group = -1, last_group = -1;
        for (int i = first; i < checkpoint; ++i) {
            if (!copied(i)) continue;
            const entry e = t_.nodes[i];
            list<int> args(e.arguments);
            for (int k = 0; k < e.arguments; ++k) {
                const int id = t_.argument(i, k);
                args[k] = copied(id) ? made[id - first] : name_of(id);
            }
            t_.scope = e.scope;
            t_.line = e.line;
            // A nested checkpoint keeps its place, but has no nodes of its own in the copy.
            const int words = t_.is(i, descriptor_of<checkpoint_op>) ? t_.words.push_back(t_.nodes.size()) : e.words;
            const int id = t_.append(*e.op, e.type, e.rank, e.dims, args.begin(), e.arguments, words);
            if (e.group != last_group) {
                last_group = e.group;
                group = t_.nodes[id].group;
            }
            t_.nodes[id].group = group;
            t_.nodes[id].sealed = e.sealed;
            made[i - first] = id;
            note(id, i);
        }
        for (int i = first; i < checkpoint; ++i)
            if (made[i - first] >= 0) copy_[i] = made[i - first];
        t_.scope = scope;
        t_.line = line;
    }

private:
    constexpr int named(int id, int checkpoint) {
        if (t_.is(id, descriptor_of<constant_op>) || t_.is(id, descriptor_of<extent_op>)) return id;
        static_assert(operation_binding<recompute_op>::bound);
        const int from = copy_of(id), word = t_.words.push_back(checkpoint);
        const entry e = t_.nodes[from];
        const int name = t_.append(descriptor_of<recompute_op>, e.type, e.rank, e.dims, &from, 1, word);
        note(name, id);
        return name;
    }
    constexpr void note(int id, int origin) {
        origin_.resize(id + 1, -1);
        origin_[id] = origin;
    }

    trace& t_;
    list<int> copy_, origin_;
};

} // namespace tapegraph::ir
