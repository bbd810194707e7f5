#pragma once

#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/passes/verify.hpp>
#include <tapegraph/ir/gradient.hpp>
#include <tapegraph/ops/ops.hpp>

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

/// Small graphs for tests of graph mode: a builder is a type whose build(trace&) traces a graph.
namespace builders {

namespace tg = tapegraph;
using tg::dtype;
using tg::shape;
using tg::ir::node;
using tg::ir::trace;

constexpr node input(trace& t, std::string_view name, std::initializer_list<std::int64_t> extents = {},
                     dtype type = dtype::f64) {
    return {&t, t.input(name, type, shape(extents))};
}

/// An input whose axis 0 is the symbol `symbol`.
constexpr node batch_input(trace& t, std::string_view name, std::initializer_list<std::int64_t> rest = {},
                           std::string_view symbol = "batch", dtype type = dtype::f64) {
    shape s;
    s.attach(&t.extents);
    s.push_back({t.extents.symbol(symbol), &t.extents});
    for (std::int64_t extent : rest) s.push_back(extent);
    return {&t, t.input(name, type, s)};
}

constexpr node variable(trace& t, std::string_view name, std::initializer_list<std::int64_t> extents = {},
                        dtype type = dtype::f64) {
    static_assert(tg::ir::operation_binding<tg::ir::variable_op>::bound);
    const shape s(extents);
    const int word = t.words.push_back(t.variables.size());
    const int id = t.append(tg::ir::descriptor_of<tg::ir::variable_op>, type, s.rank(), t.store(s), nullptr, 0, word);
    t.variables.push_back({0, name, id, true});
    return {&t, id};
}

/// Traces the following nodes in this scope.
constexpr void enter(trace& t, std::string_view name) {
    tg::ir::scope_entry scope{};
    scope.index = -1;
    scope.name = name;
    t.scope = t.scopes.push_back(scope);
}

constexpr void output(trace& t, std::string_view name, const node& value) { t.outputs.push_back({name, value.id()}); }
constexpr void assign(trace& t, const node& variable, const node& value) {
    t.assignments.push_back({static_cast<int>(t.words_of(variable.id())[0]), value.id()});
}

/// The nodes of an operation.
template <class Op>
constexpr int count(const trace& t) {
    int n = 0;
    for (const tg::ir::entry& e : t.nodes) n += e.is(tg::ir::descriptor_of<Op>) ? 1 : 0;
    return n;
}

/// The schedule of the graph that build(trace) traces, after the passes that remove duplicate and
/// unused nodes; without steps if it is invalid.
template <class Build>
constexpr tg::ir::schedule scheduled_by(const Build& build, bool fuse) {
    trace t;
    build(t);
    eliminate_common_subexpressions(t);
    eliminate_dead_nodes(t);
    tg::ir::schedule s = make_schedule(t, fuse);
    if (!verify(t, s).ok()) s = {};
    return s;
}

/// Runs every pass with the verifier after each; returns null or the error.
template <class Builder>
constexpr const char* first_problem() {
    trace t;
    Builder::build(t);
    if (t.error.what != nullptr) return t.error.what;
    if (const auto f = verify(t); !f.ok()) return f.what;
    simplify(t);
    if (const auto f = verify(t); !f.ok()) return f.what;
    fold_numbers(t);
    if (const auto f = verify(t); !f.ok()) return f.what;
    eliminate_common_subexpressions(t);
    if (const auto f = verify(t); !f.ok()) return f.what;
    eliminate_dead_nodes(t);
    if (const auto f = verify(t); !f.ok()) return f.what;
    fuse_epilogues(t);
    if (const auto f = verify(t); !f.ok()) return f.what;
    fuse_messages(t);
    if (const auto f = verify(t); !f.ok()) return f.what;
    join_pads(t);
    if (const auto f = verify(t); !f.ok()) return f.what;
    eliminate_dead_nodes(t);
    view_slices(t);
    if (const auto f = verify(t); !f.ok()) return f.what;
    snapshot_variables(t);
    if (const auto f = verify(t); !f.ok()) return f.what;
    const tg::ir::schedule s = make_schedule(t);
    return verify(t, s).what;
}

/// A program with its inputs, variables and outputs in vectors of double.
class runner {
public:
    explicit runner(const tg::ir::program_view& view) : program(view), variables(view.variables.size()) {
        for (int i = 0; i < view.variables.size(); ++i) {
            const auto at = static_cast<std::size_t>(i);
            variables[at].resize(static_cast<std::size_t>(program.variable(i).elements()));
            program.set_variable(i, variables[at].data());
        }
    }

    void feed(int index, const std::vector<double>& values, std::initializer_list<std::int64_t> extents) {
        tg::buffer_view v;
        static double none = 0; // an empty vector may have no address
        v.data = values.empty() ? &none : const_cast<double*>(values.data());
        v.type = dtype::f64;
        for (std::int64_t extent : extents) v.extents[v.rank++] = extent;
        program.set_input(index, v);
    }
    void run(bool check = false) { program.run({}, check); }
    double scalar(int index) const { return program.scalar_output(index); }
    std::vector<double> output(int index) const {
        const tg::buffer_view& v = program.output(index);
        return {v.as<double>(), v.as<double>() + v.elements()};
    }

    tg::ir::program program;
    std::vector<std::vector<double>> variables;
};

/// Some values in [-1, 1), different for each seed.
inline std::vector<double> values(std::int64_t count, std::uint32_t seed) {
    std::vector<double> v(static_cast<std::size_t>(count));
    std::uint32_t state = seed * 2654435761u + 12345u;
    for (double& x : v) x = static_cast<double>((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-23 - 1;
    return v;
}

} // namespace builders
