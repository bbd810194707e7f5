#pragma once

#include <tapegraph/cluster/sharded/traces.hpp>

/// Optimizers whose state is divided among ranks: the update of a slice of every variable.

namespace tapegraph {

/// An optimizer of which each rank keeps only the state of its own slices of the variables
/// (PyTorch's ZeroRedundancyOptimizer, stage 1 of DeepSpeed's ZeRO; S. Rajbhandari et al.: ZeRO,
/// 2020): `compile<graph>(model{}, spec, loss{}, zero_redundancy{adam{}}, sharded{.shards = 8,
/// .ranks = &ranks})`. Gradients are reduce-scattered by the tree of the shards, each rank updates
/// its slices, and all gather the weights, which have the bits of the plain optimizer. The
/// optimizer's update of a variable must be elementwise. A norm of all gradients
/// (clip_by_global_norm) is not; then all ranks receive whole gradients. State of sparse gradients
/// stays whole. In models that are not sharded it is the plain optimizer.
template <class Optimizer>
struct zero_redundancy : Optimizer {
    constexpr explicit zero_redundancy(const Optimizer& optimizer) : Optimizer(optimizer) {}
};

namespace detail {
template <class Optimizer>
inline constexpr bool keeps_slices = false;
template <class Optimizer>
inline constexpr bool keeps_slices<zero_redundancy<Optimizer>> = true;
} // namespace detail

namespace ir {

namespace folded {
inline constexpr std::string_view slice = "shard_slice"; ///< inputs: the rank's slice of a gradient
inline constexpr std::string_view weight =
    "shard_weight"; ///< the same of the variable; also, after all variables, its next value
} // namespace folded

/// An optimizer's view of a slice of one variable: [n, 1, 1, ...], with as many axes as the
/// variable. An optimizer that inspects the axes, or rows, thereby notices that a slice is
/// different.
class graph_slice_slots {
public:
    constexpr graph_slice_slots(model_trace& t, const gradient_entry& of, const graph_node& w, int* next)
        : t_(&t),
          whole_(graph_scope(&t, 0), of.variable, of.optimizer, of.state),
          w_(w),
          next_(next),
          of_(of.variable) {}

    constexpr graph_node state(const graph_node&, std::string_view name) const {
        const int before = t_->variables.size();
        const graph_node made = whole_.state({t_, t_->variables[of_].node}, name);
        if (t_->variables.size() > before) { // only its slice
            t_->nodes[made.id()].dims = t_->nodes[w_.id()].dims;
            t_->nodes[made.id()].rank = t_->nodes[w_.id()].rank;
        } else if (!t_->same_shape(made.id(), w_.id())) {
            t_->fail("zero_redundancy: what all gradients have in common looks at a variable's state, of which a rank "
                     "has a slice");
        }
        return made;
    }
    constexpr void assign(const graph_node& target, const auto& value) const {
        if (target.id() != w_.id()) return whole_.assign(target, value);
        const graph_node made = eval(value);
        if (!t_->same_shape(made.id(), w_.id()) || made.type() != w_.type()) {
            const operand_info in[2]{t_->info(w_.id()), t_->info(made.id())};
            t_->fail("assign: shape or type of the value differs", in, 2);
        }
        *next_ = made.id();
    }
    constexpr bool matches(std::string_view pattern) const { return whole_.matches(pattern); }

private:
    model_trace* t_;
    graph_slots whole_;
    graph_node w_;
    int *next_, of_;
};

/// The program that updates a rank's slices. The step's own inputs, which nothing reads, are
/// followed by gradients by rows as in shard_update_trace, whole gradients where the optimizer has
/// a `shared` function, and for each dense one its slice and that of its variable. The results are
/// variables after all others, so that they are written where the caller says.
template <class Model, class Spec, class Loss, class Optimizer>
struct slice_update_trace {
    using previous = gradient_trace<Model, Spec, Loss, tapegraph::detail::scales_loss<Optimizer>()>;
    static constexpr void build(model_trace& t) {
        t.scope = 0;
        t.outputs.clear();
        t.assignments.clear();
        for (const weight_rule& rule : t.constraints)
            return detail::fail_of_variable(
                t, rule.variable,
                "zero_redundancy: a constraint looks at a whole variable, of which a rank updates a slice");
        const int first = t.nodes.size();
        list<slice> slices;
        shard_row_inputs(t);
        const traced_numbers<static_cast<std::size_t>(Optimizer::count)> numbers(t, "optimizer");
        if constexpr (requires(const graph_gradients& all) { Optimizer::shared(all, numbers.wide); }) {
            for (gradient_entry& g : t.gradients)
                if (g.indices < 0) g.node = t.input(folded::gradient, t.nodes[g.node].type, t.dims(g.node));
            const graph_gradients all(&t, t.gradients);
            const auto shared = Optimizer::shared(all, numbers.of(all.first_type()));
            each(t, slices, [&](const auto& slots, const graph_node& w, const graph_node& g) {
                Optimizer::update(slots, w, g, numbers.of(w.type()), shared);
            });
        } else {
            each(t, slices, [&](const auto& slots, const graph_node& w, const graph_node& g) {
                Optimizer::update(slots, w, g, numbers.of(w.type()));
            });
        }
        t.gradients.clear();
        require_elementwise(t, slices, first);
        for (const slice& s : slices) add_result(t, s);
    }

private:
    struct slice {
        int variable = 0, weight = 0, next = 0;
    };

    static constexpr void each(model_trace& t, list<slice>& slices, const auto& f) {
        for (const gradient_entry& g : t.gradients) {
            t.scope = t.variables[g.variable].scope;
            const graph_node whole(&t, t.variables[g.variable].node);
            if (g.indices >= 0) {
                const graph_row_slots slots(graph_slots(graph_scope(&t, 0), g.variable, g.optimizer, g.state), whole,
                                            graph_node(&t, g.indices));
                f(slots, slots.rows_of(whole), graph_node(&t, g.node));
                continue;
            }
            shape dims;
            dims.attach(&t.extents);
            dims.push_back({t.extents.symbol(""), &t.extents});
            for (int i = 1; i < whole.shape().rank(); ++i) dims.push_back(1);
            const graph_node gradient(&t, t.input(folded::slice, t.nodes[g.node].type, dims));
            const graph_node w(&t, t.input(folded::weight, whole.type(), dims));
            if (gradient.type() != w.type())
                t.fail("zero_redundancy: a gradient is of another element type than its variable");
            int next = w.id();
            f(graph_slice_slots(t, g, w, &next), w, gradient);
            slices.push_back({g.variable, w.id(), next});
        }
    }

    // The slice whose extent occurs in a node's shape; null: none.
    static constexpr const slice* found_in(const model_trace& t, const list<slice>& slices, int at) {
        const entry& e = t.nodes[at];
        for (int i = 0; i < e.rank; ++i) {
            if (!is_symbolic(t.pool[e.dims + i])) continue;
            for (const slice& s : slices)
                if (t.pool[t.nodes[s.weight].dims] == t.pool[e.dims + i]) return &s;
        }
        return nullptr;
    }
    // Requires that only elementwise operations compute and read slices.
    static constexpr void require_elementwise(model_trace& t, const list<slice>& slices, int first) {
        for (int at = first; at < t.nodes.size(); ++at) {
            const entry e = t.nodes[at];
            if (e.op->kind == operation_kind::map || e.op->kind == operation_kind::leaf) continue;
            const slice* of = found_in(t, slices, at);
            for (int k = 0; of == nullptr && k < e.arguments; ++k) of = found_in(t, slices, t.argument(at, k));
            if (of == nullptr) continue;
            t.scope = t.variables[of->variable].scope;
            t.line = e.line;
            const operand_info in = t.info(t.variables[of->variable].node);
            return t.fail("zero_redundancy: the update of a variable, of which a rank has a slice, must be elementwise",
                          &in, 1);
        }
    }

    static constexpr void add_result(model_trace& t, const slice& s) {
        const int number = t.variables.size();
        const entry like = t.nodes[s.weight];
        const int made = t.append(descriptor_of<variable_op>, like.type, like.rank, like.dims, nullptr, 0,
                                  t.words.push_back(number));
        t.define({0, folded::weight, made, false, 0, s.variable + 1}, {});
        // Named, because in place nvcc writes half of it into the host code.
        const assignment_entry update{number, s.next};
        t.assignments.push_back(update);
    }
};

} // namespace ir
} // namespace tapegraph
