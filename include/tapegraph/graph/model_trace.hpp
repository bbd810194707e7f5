#pragma once

#include <tapegraph/ir/trace.hpp>

#include <cstdint>
#include <source_location>
#include <string_view>

/// The trace of a model: its graph, and the record of what models, layers, optimizers and sessions
/// define while they are traced. Passes see the graph alone.

namespace tapegraph::ir {

/// What a model defines of a variable, beside its name, scope and node.
struct variable_definition {
    int initializer = 0; // an initializer_kind
    double a = 0, b = 0; // its numbers
    int previous = 0;    // in the same scope, counted from 1
    int optimizers = 0;  // in a session's model: the number of optimizers that update it
    int state_of = 0;    // 1 + the optimizer whose state it is
    std::string_view collection{};
    std::string_view task{}; // the cluster task that holds it: "/job:ps/task:0"
};

/// Linked lists of a scope's variables and scopes, newest first, so that looking up a name visits
/// only its scope. Indices count from 1; 0 means none.
struct scope_members {
    int last_variable = 0, last_child = 0, previous_sibling = 0;
};

/// A restriction of a variable in training: a regularizer or a constraint of
/// model/weight_rules.hpp, its kind and numbers.
struct weight_rule {
    int variable = 0, kind = 0;
    double a = 0, b = 0, c = 0;
    std::int64_t along = 0;
};

/// A gather of rows of a variable. The gradient is taken by these rows instead of the whole
/// variable.
struct row_use_entry {
    int variable = 0, node = 0;
};

/// dL/d(variable), passed from the gradient to the optimizer. If `indices` is not -1, it is
/// dL/d(the rows with these indices).
struct gradient_entry {
    int variable = 0, node = 0, indices = -1;
    int optimizer = 0; // among several in one step, or of a session's model
    // In a session's model: the optimizer's position among those of the variable, and whether
    // `node` is still the loss.
    int state = 0;
    bool differentiate = false;
    int loss = 0; // in a custom step: the index of its loss
};

/// A loss that a custom step minimizes, the variables that it is differentiated by, and the
/// optimizer of the step.
struct minimization_entry {
    int node = 0, optimizer = 0, line = 0;
    std::string_view variables; // a pattern of paths
};

/// The number of times that graph_scope::unique was called with a name.
struct unique_entry {
    int parent = 0;
    std::string_view name;
    int count = 0;
};

/// A value that a session can fetch or feed by name.
struct named_entry {
    int scope = 0;
    std::string_view name;
    int node = 0;
};

/// The result of a layer, including layers nested in others, or a value with a name of its own.
struct result_entry {
    int scope = 0;
    std::string_view name; // empty for a layer
    int node = 0;
    int first = 0; // results from this index on are those of nested layers
};

/// A row of the layer table: the layer's kind, scope and nodes, and the variables created while it was
/// traced.
struct layer_entry {
    std::string_view type;
    int scope = 0, first_node = 0, node = 0, first_variable = 0, last_variable = 0;
};

/// A graph with the record of its model. Nodes refer to the graph; scopes also write into the record.
class model_trace : public trace {
public:
    list<variable_definition> definitions; // one per variable of the graph
    list<scope_members> members;           // one per scope
    list<weight_rule> regularizers, constraints;
    list<std::string_view> tasks; // cluster tasks that compute parts: "/job:worker/task:1"
    list<row_use_entry> row_uses; // until the gradient has been taken
    list<gradient_entry> gradients;
    list<minimization_entry> minimizations;
    list<layer_entry> layers;
    list<int> added_losses;  // until the loss has been traced
    list<named_entry> named; // this and the next two: while the model is traced
    list<result_entry> results;
    list<unique_entry> unique_scopes;
    bool training = true;               // the value of scope.training()
    int trainings = 0;                  // optimizer steps that a session's model has named so far
    std::uint64_t wanted_trainings = 0; // bit k: the current run takes step k
    std::string_view task{};            // task of variables that are created

    constexpr model_trace() {
        of_a_model = true;
        members.push_back({});
    }

    /// Adds a variable to the graph and to the record. Returns its index.
    constexpr int define(const variable_entry& variable, const variable_definition& definition) {
        definitions.push_back(definition);
        return variables.push_back(variable);
    }
    /// The same for a scope.
    constexpr int add_scope(const scope_entry& added, const scope_members& its) {
        members.push_back(its);
        return scopes.push_back(added);
    }
    /// The number of a computing task, counted from 1.
    constexpr int number_of_task(std::string_view name) {
        for (int i = 0; i < tasks.size(); ++i)
            if (tasks[i] == name) return i + 1;
        return tasks.push_back(name) + 1;
    }
};

/// The model's trace that a node belongs to: for functions that a model calls with nodes alone, such as
/// minimize. Null, after an error at `where`, for a node of the step of a scan, which is traced
/// without a model.
constexpr model_trace* model_of(trace& t, const char* refusal, std::source_location where) {
    t.line = t.intern(where);
    if (t.of_a_model) return static_cast<model_trace*>(&t);
    t.fail(refusal);
    return nullptr;
}

} // namespace tapegraph::ir
