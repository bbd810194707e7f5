#pragma once

#include <fuzz/operations.hpp>

#include <tapegraph/graph/passes/schedule.hpp>

#include <string>
#include <vector>

/// Random programs run: eagerly, and as traces made at run time with the library's own functions.

namespace tapegraph::fuzz {

/// The program does not apply: operands outside an operation's domain, shapes that do not fit, values too large.
struct unsuitable : error {
    using error::error;
};

/// The values of leaves, by instruction; empty tensors elsewhere.
std::vector<any_tensor> leaves_of(const program& p);

/// Every instruction's value. `checked`: domains are checked (throws unsuitable) and types and extents written into p.
std::vector<any_tensor> run_eagerly(program& p, const std::vector<any_tensor>& leaves, bool checked);

/// One instruction of a program, operands given.
any_tensor run_instruction(const instruction& c, const any_tensor* operands);
/// Throws unsuitable where operands are not what the operation wants. `result` may be null.
void check_domains(const operation& op, const instruction& c, const std::vector<any_tensor>& operands);

/// Inputs to differentiate by: instructions of op "input".
std::vector<int> sources_of(const program& p);
/// Outputs that are real, with their weights: the loss is the sum of their products.
struct loss_parts {
    std::vector<int> outputs; ///< instructions
    std::vector<any_tensor> weights;
};
loss_parts loss_of(const program& p, const std::vector<any_tensor>& values);

/// The loss, by the same formulas in both modes, so that the same nodes are differentiated.
template <class Handle>
Handle weighted_sum(const std::vector<Handle>& y, const std::vector<Handle>& w) {
    Handle total = eval(sum(y[0] * w[0]));
    for (std::size_t k = 1; k < y.size(); ++k) total = eval(total + sum(y[k] * w[k]));
    return total;
}

struct results {
    std::vector<any_tensor> outputs;   ///< of the program's outputs
    std::vector<any_tensor> gradients; ///< by the sources; empty without a real output
    std::vector<any_tensor> tangents;  ///< of the loss's outputs, along `direction`; empty where there are no gradients
    std::vector<any_tensor> second;    ///< derivatives of the gradients' weighted sum; empty where not asked for
    std::vector<any_tensor> products;  ///< forward over reverse: of the gradients, along `second_direction`
    std::vector<any_tensor> mixed; ///< reverse over forward: derivatives of the tangents' sum, weighted as the loss is
    double twice = 0;              ///< forward over forward: that sum's, along `second_direction`; eager mode
    double loss = 0;
};
/// The program and its gradient on a tape.
results run_on_tape(program& p, const std::vector<any_tensor>& leaves, const loss_parts& loss);
/// Second derivatives by nested tapes: the path that executes derivatives node by node.
std::vector<any_tensor> run_on_nested_tapes(program& p, const std::vector<any_tensor>& leaves, const loss_parts& loss);
/// Forward mode in eager mode, alone and over and under reverse mode: tangents and, with `second`, products, mixed, and, if the tangent
/// of a tangent exists, twice.
struct forward_options {
    bool second, twice;
};
void run_forward(program& p, const std::vector<any_tensor>& leaves, const loss_parts& loss, forward_options wanted,
                 results& r);
/// The gradients' sum, weighted with `direction`.
double slope_at(program& p, const std::vector<any_tensor>& leaves, const loss_parts& loss);
/// What gradient k is multiplied with before second derivatives are taken, and source k's direction in forward mode.
any_tensor direction(const any_tensor& gradient, std::size_t k);
/// The direction of forward mode over something.
any_tensor second_direction(const any_tensor& source, std::size_t k);
/// The loss alone.
double loss_at(program& p, const std::vector<any_tensor>& leaves, const loss_parts& loss);

struct trace_options {
    bool grouped = false;  ///< inner instructions become parts of the formulas that use them
    bool second = false;   ///< second derivatives, too
    bool symbolic = false; ///< the first input's axis 0 is a symbol, and so are axes 0 of inputs with that extent
};
/// Traces a program, its loss and its gradient. Returns what the trace's inputs are fed with; outputs are those of
/// `results`: the program's, the loss, the gradients. The caller looks at t.error.
std::vector<any_tensor> trace_program(ir::trace& t, const program& p, const std::vector<any_tensor>& leaves,
                                      const loss_parts& loss, const trace_options& options);

/// The values of a trace's outputs, sorted out.
results sorted_out(const std::vector<any_tensor>& outputs, const program& p);

/// Runs a trace node by node, each into a buffer of its own. Extents must be numbers.
std::vector<any_tensor> interpret(ir::trace& t, const std::vector<any_tensor>& feeds);
results interpret(ir::trace& t, const std::vector<any_tensor>& feeds, const program& p);

/// Runs a schedule as the library does, bound and planned by ir::program, except that fused kernels are spelled out
/// instruction by instruction.
results run_schedule(ir::trace& t, ir::schedule& s, const std::vector<any_tensor>& feeds, const program& p);

} // namespace tapegraph::fuzz
