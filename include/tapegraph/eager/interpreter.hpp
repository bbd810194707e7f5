#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/jvp.hpp>
#include <tapegraph/ir/jvp.hpp>
#include <tapegraph/runtime/kernel.hpp>
#include <tapegraph/runtime/placement_log.hpp>
#include <tapegraph/runtime/scalar.hpp>

#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

/// Derivatives of derivatives in eager mode. While a walk is itself recorded, formulas are
/// differentiated at run time into trace nodes, and the nodes are executed one by one, each with a
/// record of its own whose derivative is taken the same way. This unfused path is correct at any
/// order but slower than the fused one. All functions are templates, so that programs that do not
/// use them do not compile them.

namespace tapegraph::detail {

/// A trace whose first nodes stand for given tensors, executed on demand.
class interpreter {
public:
    ir::trace t;

    int input(const any_tensor& value);

    const any_tensor& value(int id);

private:
    any_tensor compute(int id);
    std::vector<std::unique_ptr<any_tensor>> values_;
};
using node_interpreter = interpreter;

/// One executed node on the tape.
struct node_record : tape_record {
    const ir::operation* op;
    std::int64_t words[8];
    int count;
    any_tensor inputs[4];
    any_tensor output;

    static void destroy(tape_record& base) { static_cast<node_record&>(base).~node_record(); }
    static void backward(tape_record& base, backward_pass& walk, const any_tensor& adjoint);
    static bool jvp(tape_record& base, const jvp_pass& walk, any_tensor& tangent);
    static bool forward(tape_record& base, const jvp_pass& walk, any_tensor& tangent);
};

namespace interpreting {

/// `from` repeated to the shape `dims`, contiguous.
any_tensor spread(const any_tensor& from, const shape& dims);

any_tensor widened(const any_tensor& x);

any_tensor sum_over(const any_tensor& x, std::int64_t axes, const shape& dims);

/// An elementwise operation on operands of the result's shape. 16-bit operands are evaluated in float.
any_tensor evaluate(const ir::operation& op, dtype common, const any_tensor* operands, int count, dtype type,
                    const shape& dims);

#if TG_DEFINES_FOR_HOST(eager)

TG_DEFINITION any_tensor spread(const any_tensor& from, const shape& dims) {
    if (from.shape() == dims) return from;
    any_tensor result(from.type(), dims);
    const auto size = static_cast<std::int64_t>(size_of(from.type()));
    const int lead = dims.rank() - from.rank();
    const std::int64_t count = dims.elements();
    const auto* source = static_cast<const std::byte*>(from.read());
    auto* target = static_cast<std::byte*>(result.overwrite());
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t rest = i, at = 0, stride = 1;
        for (int axis = dims.rank() - 1; axis >= 0; --axis) {
            const std::int64_t index = rest % dims[axis].value;
            rest /= dims[axis].value;
            const std::int64_t own = axis >= lead ? from.shape()[axis - lead].value : 1;
            if (own != 1) at += index * stride;
            stride *= own;
        }
        std::memcpy(target + i * size, source + at * size, static_cast<std::size_t>(size));
    }
    return result;
}

TG_DEFINITION any_tensor widened(const any_tensor& x) {
    any_tensor wide(dtype::f32, x.shape());
    cpu::widen(x.type(), x.read(), static_cast<float*>(wide.overwrite()), x.size());
    return wide;
}

TG_DEFINITION any_tensor sum_over(const any_tensor& x, std::int64_t axes, const shape& dims) {
    any_tensor result(x.type(), dims);
    const auto mask = static_cast<std::uint32_t>(axes);
    const auto reduce = [&]<class T>(T) {
        std::vector<std::byte> workspace(cpu::reduce_workspace_bytes<T>(x.rank(), x.shape().data(), mask) + 64);
        void* memory = workspace.data();
        std::size_t room = workspace.size();
        std::align(64, 1, memory, room);
        cpu::reduce_axes<cpu::reduction::sum, T>(x.rank(), x.shape().data(), mask,
                                                 {static_cast<const T*>(x.read()), nullptr, nullptr},
                                                 static_cast<T*>(result.overwrite()), memory);
    };
    if (x.type() == dtype::f64) {
        reduce(0.0);
    } else if (is_storage_type(x.type())) {
        const any_tensor sum = sum_over(widened(x), axes, dims);
        cpu::narrow(x.type(), result.overwrite(), static_cast<const float*>(sum.read()), result.size());
    } else {
        reduce(0.0f);
    }
    return result;
}

TG_DEFINITION any_tensor evaluate(const ir::operation& op, dtype common, const any_tensor* operands, int count,
                                  dtype type, const shape& dims) {
    const dtype computed = is_storage_type(common) ? dtype::f32 : common;
    any_tensor wide[4];
    const void* in[4]{};
    for (int k = 0; k < count; ++k) {
        if (is_storage_type(operands[k].type())) wide[k] = widened(operands[k]);
        in[k] = is_storage_type(operands[k].type()) ? wide[k].read() : operands[k].read();
    }
    any_tensor result(op.result_type(computed), dims); // a conversion has the type that it converts to
    if (op.evaluate == nullptr || !op.evaluate(computed, in, result.overwrite(), dims.elements()))
        throw dtype_error("derivatives of derivatives: " + std::string(op.name) + " of " + name_of(common));
    if (result.type() == type) return result;
    any_tensor rounded(type, dims);
    cpu::narrow(type, rounded.overwrite(), static_cast<const float*>(result.read()), result.size());
    return rounded;
}

#endif

} // namespace interpreting

/// Differentiates the group that ends at `last` of an interpreter's trace and adds the adjoints to the walk.
void interpret_adjoints(node_interpreter& run, int last, int output, int adjoint, const any_tensor* const* leaves,
                        const int* leaf_nodes, int leaf_count, backward_pass& walk);

/// The tangent of the group that ends at `last` of an interpreter's trace; false when no leaf has one.
bool interpret_tangent(node_interpreter& run, int last, int output, const any_tensor* const* leaves,
                       const int* leaf_nodes, int leaf_count, const jvp_pass& walk, any_tensor& tangent);

/// a + b of one shape, on the tape when they are tracked. Adds adjoints of 16-bit types, so that
/// programs without these types contain no formulas of them.
any_tensor interpreted_sum(const any_tensor& a, const any_tensor& b);

#if TG_DEFINES_FOR_HOST(eager)

TG_DEFINITION int interpreter::input(const any_tensor& value) {
    const int id = t.input("", value.type(), value.shape());
    values_.resize(static_cast<std::size_t>(id) + 1);
    values_[static_cast<std::size_t>(id)] = std::make_unique<any_tensor>(value);
    return id;
}

TG_DEFINITION const any_tensor& interpreter::value(int id) {
    values_.resize(static_cast<std::size_t>(t.nodes.size()));
    auto& slot = values_[static_cast<std::size_t>(id)];
    if (slot == nullptr) {
        auto result = std::make_unique<any_tensor>(compute(id));
        values_[static_cast<std::size_t>(id)] = std::move(result);
    }
    return *values_[static_cast<std::size_t>(id)];
}

TG_DEFINITION bool node_record::jvp(tape_record& base, const jvp_pass& walk, any_tensor& tangent) {
    return walk.kernels.node(base, walk, tangent);
}

TG_DEFINITION any_tensor interpreter::compute(int id) {
    const ir::entry e = t.nodes[id];
    const shape dims = t.dims(id);
    const std::int64_t* const words = t.words_of(id);
    if (e.is(ir::descriptor_of<ir::constant_op>) || e.is(ir::descriptor_of<ir::extent_op>)) {
        any_tensor result(e.type, shape{});
        const double value =
            e.is(ir::descriptor_of<ir::constant_op>) ? std::bit_cast<double>(words[0]) : static_cast<double>(words[0]);
        runtime::store_scalar(result.view(), value);
        return result;
    }
    node_record saved{};
    saved.op = e.op;
    saved.count = e.arguments;
    for (int w = 0; w < e.op->words && w < 8; ++w) saved.words[w] = words[w];
    bool tracked = false;
    for (int k = 0; k < e.arguments; ++k) {
        saved.inputs[k] = value(t.argument(id, k));
        tracked = tracked || tape_storage::instance().tracks(saved.inputs[k]);
    }
    any_tensor result;
    if (e.op->kind == operation_kind::map) {
        const int common = e.op->conditions < e.arguments ? e.op->conditions : 0;
        any_tensor operands[4];
        for (int k = 0; k < e.arguments; ++k) operands[k] = interpreting::spread(saved.inputs[k], dims);
        result = interpreting::evaluate(*e.op, saved.inputs[common].type(), operands, e.arguments, e.type, dims);
    } else if (e.op->kind == operation_kind::view) {
        result = saved.inputs[0].viewed(dims);
    } else if (e.is(ir::descriptor_of<sum_op>)) {
        result = interpreting::sum_over(saved.inputs[0], words[0], dims);
    } else {
        throw argument_error("derivatives of derivatives: no way through " + std::string(e.op->name));
    }
    if (runtime::placement_is_logged() && e.op->kind != operation_kind::view)
        runtime::write_placement("node by node: " + std::string(e.op->name), result.outline_view(), nullptr, true);
    if (tracked) {
        tape_index at;
        node_record& r = tape_storage::instance().append<node_record>(at);
        r.op = saved.op;
        r.count = saved.count;
        for (int w = 0; w < 8; ++w) r.words[w] = saved.words[w];
        for (int k = 0; k < saved.count; ++k) r.inputs[k] = saved.inputs[k];
        result.set_tape_index(at);
        r.output = result;
    }
    return result;
}

TG_DEFINITION void interpret_adjoints(node_interpreter& run, int last, int output, int adjoint,
                                      const any_tensor* const* leaves, const int* leaf_nodes, int leaf_count,
                                      backward_pass& walk) {
    const auto wanted = [&](int node) {
        for (int i = 0; i < leaf_count; ++i)
            if (leaf_nodes[i] == node) return walk.wants(*leaves[i]);
        return false;
    };
    const bool reduction = run.t.nodes[last].op->kind == operation_kind::reduce;
    const int domain = reduction ? run.t.argument(last, 0) : last;
    for (const ir::contribution& c : ir::differentiate_group(run.t, last, output, adjoint, wanted)) {
        const int flow = ir::detail::fitted(run.t, c.adjoint, domain, c.leaf);
        for (int i = 0; i < leaf_count; ++i)
            if (leaf_nodes[i] == c.leaf) walk.add(*leaves[i], run.value(flow));
    }
}

TG_DEFINITION bool interpret_tangent(node_interpreter& run, int last, int output, const any_tensor* const* leaves,
                                     const int* leaf_nodes, int leaf_count, const jvp_pass& walk, any_tensor& tangent) {
    list<int> tangents(run.t.nodes.size(), -1);
    for (int i = 0; i < leaf_count; ++i)
        if (const any_tensor* found = walk.find(*leaves[i])) tangents[leaf_nodes[i]] = run.input(*found);
    const int result =
        ir::formula_tangent(run.t, last, output, [&](int id) { return id < tangents.size() ? tangents[id] : -1; });
    if (result >= 0) tangent = run.value(result);
    return result >= 0;
}

TG_DEFINITION any_tensor interpreted_sum(const any_tensor& a, const any_tensor& b) {
    node_interpreter run;
    const int operands[2]{run.input(a), run.input(b)};
    return run.value(run.t.map(ir::descriptor_of<add_op>, operands, 2));
}

TG_DEFINITION void node_record::backward(tape_record& base, backward_pass& walk, const any_tensor& adjoint) {
    auto& self = static_cast<node_record&>(base);
    node_interpreter run;
    int nodes[4]{};
    const any_tensor* leaves[4]{};
    for (int k = 0; k < self.count; ++k) {
        nodes[k] = run.input(self.inputs[k]);
        leaves[k] = &self.inputs[k];
    }
    const int output = run.input(self.output), above = run.input(adjoint);
    if (self.op->kind == operation_kind::view) {
        const int back = ir::detail::reshaped(run.t, above, self.inputs[0].shape()).id();
        if (walk.wants(self.inputs[0])) walk.add(self.inputs[0], run.value(back));
        return;
    }
    int last = 0;
    const shape dims = self.output.shape();
    if (self.op->kind == operation_kind::map) {
        last = run.t.append(*self.op, self.output.type(), dims.rank(), run.t.store(dims), nodes, self.count, 0);
    } else {
        last = run.t.invoke(*self.op, self.words, nullptr, nodes, self.count);
    }
    interpret_adjoints(run, last, output, above, leaves, nodes, self.count, walk);
}

TG_DEFINITION bool node_record::forward(tape_record& base, const jvp_pass& walk, any_tensor& tangent) {
    auto& self = static_cast<node_record&>(base);
    node_interpreter run;
    int nodes[4]{};
    const any_tensor* leaves[4]{};
    bool any = false;
    for (int k = 0; k < self.count; ++k) {
        nodes[k] = run.input(self.inputs[k]);
        leaves[k] = &self.inputs[k];
        any = any || walk.find(self.inputs[k]) != nullptr;
    }
    if (!any || !ir::detail::is_floating(self.output.type())) return false;
    const shape dims = self.output.shape();
    if (self.op->kind == operation_kind::view) {
        tangent = run.value(ir::detail::reshaped(run.t, run.input(*walk.find(self.inputs[0])), dims).id());
        return true;
    }
    const int output = run.input(self.output);
    const int last =
        self.op->kind == operation_kind::map
            ? run.t.append(*self.op, self.output.type(), dims.rank(), run.t.store(dims), nodes, self.count, 0)
            : run.t.invoke(*self.op, self.words, nullptr, nodes, self.count);
    return interpret_tangent(run, last, output, leaves, nodes, self.count, walk, tangent);
}

#endif

} // namespace tapegraph::detail
