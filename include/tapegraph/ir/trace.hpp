#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/list.hpp>
#include <tapegraph/ir/operation.hpp>

#include <bit>
#include <cstdint>
#include <source_location>
#include <string_view>

/// The trace: a graph as a flat list of nodes in execution order, with pools for everything of
/// varying length. What a model keeps beside its graph is in graph/model_trace.hpp.

namespace tapegraph::ir {

// Members default to zero where possible: arrays of these are frozen with long tails of unused
// elements, which cost the compiler nothing as long as all their bits are zero.

struct entry {
    const operation* op = nullptr;
    int first_argument = 0, arguments = 0;
    int dims = 0, rank = 0; // extents start at pool[dims]
    int words = 0;          // attributes start at words[words]
    int group = 0;          // nodes that are differentiated together share it
    int scope = 0, line = 0;
    dtype type{};
    bool sealed = false;    // the last node of its formula, which may be stored in a buffer
    std::uint8_t place = 0; // where a session computes it (model/place.hpp)
    std::uint8_t task = 0;  // the task of a cluster that computes it, counted from 1; 0: unplaced

    constexpr bool is(const operation& other) const { return same_operation(op, &other); }
};

struct scope_entry {
    int parent = 0;
    int index = 0; // scope / 3; -1 for a name; after a name, as in "layer_3"
    std::string_view name;
};

struct source_line {
    const char* file = nullptr;
    int line = 0;
};

struct variable_entry {
    int scope = 0;
    std::string_view name;
    int node = 0;
    bool trainable = false;
    // The input, counted from 1, that says in each step whether it is frozen; 0: it is never frozen
    int frozen_input = 0;
    int of = 0; // in a shard's program, for a value that shards add up: 1 + the variable it belongs to
};

struct input_entry {
    std::string_view name;
    int node = 0;
    bool scalar_parameter = false; // a number that the program sets anew in every step
    bool has_default = false;      // sessions feed `fallback` unless another value is fed
    double fallback = 0;
    int from_part = 0; // for a part of a session's program: 1 + the node of the whole that another part computes
};

/// The role of an output of a part of a session's program: a result, a value that other parts read,
/// or a variable's next value.
enum class output_role : int { result, value, update };

struct output_entry {
    std::string_view name;
    int node = 0;
    output_role role{}; // this and the next: for parts of a session's program
    int number = 0;     // the index of the result, the node in the whole, or the variable
};

/// An update: the variable takes the node's value at the end of the step.
struct assignment_entry {
    int variable = 0, node = 0;
};

struct pass_entry {
    std::string_view name;
    int nodes = 0;
};

/// The first error found while tracing: its text, its source line, and two of its operands.
struct failure {
    const char* what = nullptr;
    int scope = 0, line = 0;
    int operands = 0;
    operand_info first, second;
    std::string_view operation; // prefix of `what`, where that does not name the operation
};

/// The nodes that a custom derivative traced for one value and one adjoint. They are kept within a
/// constant evaluation, because the gradient requests derivatives operand by operand, and they are
/// traced all at once.
struct custom_flows {
    int value = 0, adjoint = 0;
    int nodes[most_operands]{};
};

/// The same as custom_flows, for a value with any number of operands. Bit k of `wanted` says
/// whether the derivative by operand k is requested.
struct list_flows {
    int value = -1, adjoint = -1;
    std::uint64_t wanted = 0;
    list<int> nodes;
};

class trace;
// trace::map and trace::invoke when the program runs.
int map_at_run_time(trace& t, const operation& op, const int* args, int count);
int invoke_at_run_time(trace& t, const operation& op, const std::int64_t* attributes, const shape* target,
                       const int* args, int count);

class trace {
public:
    list<entry> nodes;
    list<int> arguments;
    list<std::int64_t> pool; // extents
    list<std::int64_t> words;
    list<scope_entry> scopes;
    list<source_line> lines;
    list<variable_entry> variables;
    list<input_entry> inputs;
    list<output_entry> outputs;
    list<assignment_entry> assignments;
    list<pass_entry> history;
    extent_table extents;
    failure error{};
    custom_flows flows{-1, -1, {}};
    list_flows many_flows{};
    /// While a gradient is traced: bit k says whether the derivative of the current node by operand
    /// k is requested.
    std::uint64_t wanted = ~std::uint64_t{0};
    int groups = 0;
    /// Number of draws, an extent: random nodes are numbered in tracing order, and a scan of T steps
    /// draws T times what its cell draws.
    std::int64_t ordinals = 0;
    bool in_shards = false;      // the batch is sharded: a mean over more than records is one over all shards
    bool differentiated = false; // derivatives have been taken
    bool of_a_model = false;     // it is a model_trace; the step of a scan is not
    int scope = 0;               // scope of the layer being traced
    int line = 0;                // source line of the seal
    int place = 0;               // place of nodes that are appended
    int computing_task = 0;      // task of nodes that are appended

    constexpr trace() {
        scopes.push_back({-1, -1, {}});
        lines.push_back({"", 0});
    }

    constexpr int argument(int node, int i) const { return arguments[nodes[node].first_argument + i]; }
    constexpr const std::int64_t* words_of(int node) const { return words.begin() + nodes[node].words; }
    constexpr bool is(int node, const operation& op) const { return same_operation(nodes[node].op, &op); }
    constexpr bool same_shape(int a, int b) const {
        const entry &x = nodes[a], &y = nodes[b];
        if (x.rank != y.rank) return false;
        for (int i = 0; x.dims != y.dims && i < x.rank; ++i)
            if (pool[x.dims + i] != pool[y.dims + i]) return false;
        return true;
    }
    constexpr shape dims(int node) { return shape(nodes[node].rank, pool.begin() + nodes[node].dims, &extents); }
    constexpr operand_info info(int node) { return {nodes[node].type, dims(node)}; }

    /// Numbers the next draws, and returns the first one's number.
    constexpr std::int64_t draw(extent count = 1) {
        const std::int64_t first = ordinals;
        ordinals = (extent(first, &extents) + count).value;
        return first;
    }

    constexpr int intern(std::source_location where) {
        const int number = static_cast<int>(where.line());
        for (int i = lines.size() - 1; i > 0 && i > lines.size() - 8; --i)
            if (lines[i].line == number && __builtin_strcmp(lines[i].file, where.file_name()) == 0) return i;
        return lines.push_back({where.file_name(), number});
    }

    /// Nodes appended from now on are computed where the given node is.
    constexpr void compute_where(int node) {
        place = nodes[node].place;
        computing_task = nodes[node].task;
    }
    constexpr void compute_anywhere() { place = computing_task = 0; }
    constexpr int store(const shape& s) {
        const int first = pool.size();
        for (int i = 0; i < s.rank(); ++i) pool.push_back(s[i].value);
        return first;
    }

    /// Appends a node as a sealed group of its own; callers that build a formula regroup it.
    constexpr int append(const operation& op, dtype type, int rank, int dims, const int* args, int count, int word) {
        const int first = arguments.size();
        for (int i = 0; i < count; ++i) arguments.push_back(args[i]);
        return nodes.push_back({&op, first, count, dims, rank, word, groups++, scope, line, type, true,
                                static_cast<std::uint8_t>(place), static_cast<std::uint8_t>(computing_task)});
    }

    constexpr int constant(double value, dtype type) {
        return append(descriptor_of<constant_op>, type, 0, 0, nullptr, 0,
                      words.push_back(std::bit_cast<std::int64_t>(value)));
    }
    constexpr int extent_value(extent value, dtype type) {
        return append(descriptor_of<extent_op>, type, 0, 0, nullptr, 0, words.push_back(value.value));
    }
    constexpr int input(std::string_view name, dtype type, const shape& s, bool scalar_parameter = false) {
        const int node =
            append(descriptor_of<input_op>, type, s.rank(), store(s), nullptr, 0, words.push_back(inputs.size()));
        inputs.push_back({name, node, scalar_parameter});
        return node;
    }

    constexpr void fail(const char* what, const operand_info* in = nullptr, int count = 0) {
        if (error.what != nullptr) return;
        error.what = what;
        error.scope = scope;
        error.line = line;
        error.operands = count < 2 ? count : 2;
        if (count > 0) error.first = in[0];
        if (count > 1) error.second = in[1];
    }

    /// Appends an elementwise node over existing ones: broadcasts shapes and checks element types.
    constexpr int map(const operation& op, const int* args, int count) {
        return TG_RUNS_HERE ? append_map(op, args, count) : map_at_run_time(*this, op, args, count);
    }

    /// Appends any other node: runs its shape rule.
    constexpr int invoke(const operation& op, const std::int64_t* attributes, const shape* target, const int* args,
                         int count) {
        return TG_RUNS_HERE ? append_invocation(op, attributes, target, args, count)
                            : invoke_at_run_time(*this, op, attributes, target, args, count);
    }

private:
    friend int map_at_run_time(trace& t, const operation& op, const int* args, int count);
    friend int invoke_at_run_time(trace& t, const operation& op, const std::int64_t* attributes, const shape* target,
                                  const int* args, int count);
    constexpr int append_map(const operation& op, const int* args, int count) {
        int widest = op.conditions < count ? args[op.conditions] : args[0];
        const dtype common = nodes[widest].type;
        shape result;
        bool ok = true, plain = true;
        for (int i = 0; i < count; ++i) {
            if (i >= op.conditions && nodes[args[i]].type != common)
                return mismatch(op, "element types differ", args, count);
            if (i < op.conditions && nodes[args[i]].type != dtype::boolean)
                return mismatch(op, "the condition must be bool", args, count);
            if (nodes[args[i]].rank > nodes[widest].rank) widest = args[i];
        }
        for (int i = 0; i < count; ++i) plain = plain && (nodes[args[i]].rank == 0 || same_shape(args[i], widest));
        if (plain) return append(op, op.result_type(common), nodes[widest].rank, nodes[widest].dims, args, count, 0);
        result = dims(args[0]);
        for (int i = 1; i < count; ++i) result = broadcast(result, dims(args[i]), ok);
        if (!ok) return mismatch(op, "shapes do not broadcast", args, count);
        return append(op, op.result_type(common), result.rank(), store(result), args, count, 0);
    }

    constexpr int append_invocation(const operation& op, const std::int64_t* attributes, const shape* target,
                                    const int* args, int count) {
        operand_info few[4]{};
        list<operand_info> many;
        if (count > 4) many.resize(count);
        operand_info* const in = count > 4 ? many.begin() : few;
        for (int i = 0; i < count; ++i) in[i] = info(args[i]);
        inference io{in, count, target, count > 0 ? in[0].type : dtype::f32, {}, nullptr};
        op.infer(attributes, io);
        if (io.error != nullptr) {
            if (io.culprit > 1) in[1] = in[io.culprit];
            fail(io.error, in, count);
            io.result = count > 0 ? in[0].dims : shape{};
        }
        const int word = words.size();
        for (int i = 0; i < op.words; ++i) words.push_back(attributes[i]);
        return append(op, io.type, io.result.rank(), store(io.result), args, count, word);
    }

    constexpr int mismatch(const operation& op, const char* what, const int* args, int count) {
        operand_info in[4]{};
        // A condition is seldom the culprit, so the two operands after it are named.
        const int skip = count > 2 ? count - 2 : 0;
        for (int i = skip; i < count; ++i) in[i - skip] = info(args[i]);
        if (error.what == nullptr) error.operation = op.name;
        fail(what, in, count - skip);
        return append(*nodes[args[0]].op, nodes[args[0]].type, nodes[args[0]].rank, nodes[args[0]].dims, nullptr, 0, 0);
    }
};

#if TG_DEFINES(graph)
TG_DEFINITION int map_at_run_time(trace& t, const operation& op, const int* args, int count) {
    return t.append_map(op, args, count);
}
TG_DEFINITION int invoke_at_run_time(trace& t, const operation& op, const std::int64_t* attributes, const shape* target,
                                     const int* args, int count) {
    return t.append_invocation(op, attributes, target, args, count);
}
#endif

} // namespace tapegraph::ir
