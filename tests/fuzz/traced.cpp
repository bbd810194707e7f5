#include <fuzz/evaluate.hpp>
#include <fuzz/kernels.hpp>

#include <tapegraph/ir/jvp.hpp>
#include <tapegraph/runtime/scalar.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>

/// Programs as traces, and traces run node by node.

namespace tapegraph::fuzz {

namespace {

struct tracer {
    ir::trace& t;
    const program& p;
    const trace_options& options;
    std::vector<graph_node> values{}; ///< of instructions that have one

    bool inner(int i) const { return options.grouped && p.code[static_cast<std::size_t>(i)].inner; }

    /// An operand: a value there is, or an inner instruction written out again.
    graph_node operand(int i) { return inner(i) ? formula(i) : values[static_cast<std::size_t>(i)]; }

    // Operands that are inner are traced just before their user and put into its group, as `put` does for an
    // expression: the nodes of one formula follow each other, and only the last is sealed.
    graph_node formula(int i) {
        const instruction& c = p.code[static_cast<std::size_t>(i)];
        const int start = t.nodes.size();
        std::vector<graph_node> x;
        for (const int k : c.operands) x.push_back(operand(k));
        const int own = t.nodes.size();
        const graph_node result = operation_named(c.op).graph(x.data(), c.with);
        if (own == start) return result;
        int first = own; // the operation's first own node is the one that reads the operands
        while (first < t.nodes.size() && t.nodes[first].op->kind == operation_kind::leaf) ++first;
        if (first == t.nodes.size()) return result;
        if (!t.nodes[first].op->in_formula()) return result; // max, prod: differentiated whole, they seal their operand
        for (int n = start; n < own; ++n) {
            if (t.nodes[n].op->kind == operation_kind::leaf) continue;
            t.nodes[n].group = t.nodes[first].group;
            t.nodes[n].sealed = false;
        }
        return result;
    }
};

} // namespace

std::vector<any_tensor> trace_program(ir::trace& t, const program& p, const std::vector<any_tensor>& leaves,
                                      const loss_parts& loss, const trace_options& options) {
    std::vector<any_tensor> feeds;
    std::int64_t batch = -1;
    for (const int source : sources_of(p)) {
        const shape dims = leaves[static_cast<std::size_t>(source)].shape();
        if (options.symbolic && batch < 0 && dims.rank() > 0) batch = dims[0].value;
    }
    tracer run{t, p, options};
    for (int i = 0; i < p.size(); ++i) {
        const instruction& c = p.code[static_cast<std::size_t>(i)];
        const any_tensor& leaf = leaves[static_cast<std::size_t>(i)];
        if (c.op == "constant") {
            run.values.emplace_back(&t, t.constant(c.with.real[0], dtype::f64));
        } else if (c.leaf()) {
            shape dims = leaf.shape();
            dims.attach(&t.extents);
            if (batch > 1 && dims.rank() > 0 && dims[0].value == batch)
                dims.set(0, {t.extents.symbol("batch"), &t.extents});
            run.values.emplace_back(&t, t.input("input", leaf.type(), dims));
            feeds.push_back(leaf);
        } else {
            run.values.push_back(run.inner(i) ? graph_node() : run.formula(i));
        }
    }
    for (const int output : p.outputs) t.outputs.push_back({"", run.values[static_cast<std::size_t>(output)].id()});
    if (loss.outputs.empty()) return feeds;

    std::vector<graph_node> y, w;
    for (std::size_t k = 0; k < loss.outputs.size(); ++k) {
        y.push_back(run.values[static_cast<std::size_t>(loss.outputs[k])]);
        w.emplace_back(&t, t.input("weights", dtype::f64, y.back().shape()));
        feeds.push_back(loss.weights[k]);
    }
    const graph_node total = weighted_sum(y, w);
    t.outputs.push_back({"loss", total.id()});
    list<int> sources;
    for (const int source : sources_of(p)) sources.push_back(run.values[static_cast<std::size_t>(source)].id());
    const auto refused = [&t] { return t.error.what != nullptr; }; // then shapes are not what derivatives expect
    if (refused()) return feeds;
    const list<int> found = ir::gradient(t, total.id(), sources);
    std::vector<graph_node> gradients;
    for (int k = 0; k < found.size(); ++k) {
        gradients.emplace_back(&t, found[k] >= 0 ? found[k] : ir::detail::zeros_like(t, sources[k]));
        t.outputs.push_back({"gradient", gradients.back().id()});
    }
    if (gradients.empty() || refused()) return feeds;

    const auto fed = [&](const char* name, any_tensor (*value)(const any_tensor&, std::size_t)) {
        std::vector<graph_node> nodes;
        for (std::size_t k = 0; k < gradients.size(); ++k) {
            const auto source = static_cast<std::size_t>(sources_of(p)[k]);
            nodes.emplace_back(&t, t.input(name, dtype::f64, run.values[source].shape()));
            feeds.push_back(value(leaves[source], k));
        }
        return nodes;
    };
    // Tangents of some nodes; the function is all that was traced before them.
    const auto pushed = [&](const std::vector<graph_node>& of, const std::vector<graph_node>& along, const char* name) {
        list<int> tangents;
        for (const graph_node& each : along) tangents.push_back(each.id());
        int last = 0;
        for (const graph_node& each : of) last = std::max(last, each.id() + 1);
        for (int each : sources) last = std::max(last, each + 1);
        const list<int> all = ir::push_forward(t, 0, last, sources, tangents);
        std::vector<graph_node> made;
        for (const graph_node& each : of) {
            made.emplace_back(&t, all[each.id()] >= 0 ? all[each.id()] : ir::detail::zeros_like(t, each.id()));
            t.outputs.push_back({name, made.back().id()});
        }
        return made;
    };
    const std::vector<graph_node> directions = fed("directions", &direction);
    const std::vector<graph_node> tangents = pushed(y, directions, "tangent");
    if (!options.second || refused()) return feeds;

    const list<int> second = ir::gradient(t, weighted_sum(gradients, directions).id(), sources);
    for (int k = 0; k < second.size(); ++k)
        t.outputs.push_back({"second", second[k] >= 0 ? second[k] : ir::detail::zeros_like(t, sources[k])});
    if (refused()) return feeds;
    pushed(gradients, fed("second directions", &second_direction), "product");
    if (refused()) return feeds;
    const list<int> mixed = ir::gradient(t, weighted_sum(tangents, w).id(), sources);
    for (int k = 0; k < mixed.size(); ++k)
        t.outputs.push_back({"mixed", mixed[k] >= 0 ? mixed[k] : ir::detail::zeros_like(t, sources[k])});
    return feeds;
}

namespace {

// Scratch as programs give it: aligned.
void* scratch(std::vector<std::byte>& memory, std::size_t bytes) {
    memory.assign(bytes + 128, std::byte{0xA5});
    void* at = memory.data();
    std::size_t room = memory.size();
    return std::align(64, bytes, at, room);
}

dtype common_type(const ir::trace& t, int node) {
    const ir::entry& e = t.nodes[node];
    return t.nodes[t.argument(node, e.op->conditions < e.arguments ? e.op->conditions : 0)].type;
}

any_tensor compute(ir::trace& t, int id, const std::vector<any_tensor>& values) {
    const ir::entry e = t.nodes[id];
    const shape dims = t.dims(id);
    if (e.op->kind == operation_kind::view) return values[static_cast<std::size_t>(t.argument(id, 0))].viewed(dims);
    any_tensor result(e.type, dims);
    if (e.op == &ir::descriptor_of<ir::constant_op> || e.op == &ir::descriptor_of<ir::extent_op>) {
        const std::int64_t word = t.words_of(id)[0];
        const bool number = e.op == &ir::descriptor_of<ir::constant_op>;
        runtime::store_scalar(result.view(), number ? std::bit_cast<double>(word) : static_cast<double>(word));
        return result;
    }
    if (e.op->kind == operation_kind::map) {
        any_tensor operands[4];
        const void* in[4]{};
        for (int k = 0; k < e.arguments; ++k) {
            operands[k] =
                tapegraph::detail::interpreting::spread(values[static_cast<std::size_t>(t.argument(id, k))], dims);
            in[k] = operands[k].read();
        }
        evaluate(*e.op, common_type(t, id), in, e.arguments, result.write(), dims.elements());
        return result;
    }
    std::vector<buffer_view> in(static_cast<std::size_t>(std::max(e.arguments, 1)));
    buffer_view out = result.view();
    for (int k = 0; k < e.arguments; ++k)
        in[static_cast<std::size_t>(k)] = values[static_cast<std::size_t>(t.argument(id, k))].view();
    kernel_call call;
    call.in = in.data();
    call.inputs = e.arguments;
    call.out = &out;
    call.outputs = 1;
    call.attributes = t.words_of(id);
    call.domain = e.op->kind == operation_kind::reduce ? in[0] : out;
    const runtime::kernel_pair kernel = kernel_of(*e.op, in[0].type);
    std::vector<std::byte> memory;
    call.workspace = scratch(memory, kernel.workspace(call));
    kernel.run(call);
    return result;
}

} // namespace

std::vector<any_tensor> interpret(ir::trace& t, const std::vector<any_tensor>& feeds) {
    std::vector<any_tensor> values;
    for (int i = 0; i < t.nodes.size(); ++i) {
        if (t.is(i, ir::descriptor_of<ir::input_op>))
            values.push_back(feeds[static_cast<std::size_t>(t.words_of(i)[0])]);
        else
            values.push_back(compute(t, i, values));
    }
    std::vector<any_tensor> outputs;
    for (const ir::output_entry& output : t.outputs) outputs.push_back(values[static_cast<std::size_t>(output.node)]);
    return outputs;
}

results interpret(ir::trace& t, const std::vector<any_tensor>& feeds, const program& p) {
    return sorted_out(interpret(t, feeds), p);
}

results sorted_out(const std::vector<any_tensor>& outputs, const program& p) {
    results r;
    const std::size_t sources = sources_of(p).size();
    std::size_t at = 0, real_ones = 0;
    const auto take = [&](std::vector<any_tensor>& to, std::size_t count) {
        for (; count > 0 && at < outputs.size(); --count) to.push_back(outputs[at++]);
    };
    take(r.outputs, p.outputs.size());
    for (const any_tensor& y : r.outputs) real_ones += y.type() == dtype::f64;
    if (at == outputs.size()) return r;
    r.loss = *static_cast<const double*>(outputs[at++].read());
    take(r.gradients, sources);
    take(r.tangents, real_ones);
    take(r.second, sources);
    take(r.products, sources);
    take(r.mixed, sources);
    return r;
}

} // namespace tapegraph::fuzz
