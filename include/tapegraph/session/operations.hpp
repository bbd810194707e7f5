#pragma once

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/ir/gradient.hpp>
#include <tapegraph/model/path_matches.hpp>
#include <tapegraph/model/scope.hpp>
#include <tapegraph/nn/optimizers/basic.hpp>
#include <tapegraph/nn/optimizers/sparse_rows.hpp>

#include <array>
#include <cstdint>
#include <source_location>
#include <string_view>
#include <tuple>

/// Operations of a session's model: what changes variables in the runs that fetch it, and in no others.

namespace tapegraph {

/// An operation of a run: updates of variables, and steps of optimizers. `Optimizers` are those that its
/// calls of `minimize` name.
template <class... Optimizers>
struct graph_operation {
    list<ir::assignment_entry> updates;
    std::array<int, sizeof...(Optimizers)> trainings{}; ///< which calls of minimize, counted through the model
    std::tuple<Optimizers...> optimizers;
    bool initializes = false;
};

/// An assignment, which is also its variable's new value.
struct graph_assignment : graph_operation<> {
    graph_node value;
};

namespace detail {
template <class... O>
constexpr bool operation_like(const graph_operation<O...>*) {
    return true;
}
constexpr bool operation_like(const void*) { return false; }
template <class T>
inline constexpr bool is_operation = operation_like(static_cast<const T*>(nullptr));

/// The number of the variable that a node is; -1 where it is none.
constexpr int variable_number(const graph_node& v, const char* refusal) {
    ir::trace& t = v.owner();
    if (t.is(v.id(), ir::descriptor_of<ir::variable_op>)) return static_cast<int>(t.words_of(v.id())[0]);
    t.fail(refusal);
    return -1;
}

template <class E>
constexpr graph_assignment assignment_of(const graph_node& variable, const E& value, std::source_location where,
                                         const char* not_a_variable, const char* does_not_fit) {
    const graph_node node = eval(value, where);
    graph_assignment result;
    result.value = node;
    ir::model_trace* const model = ir::model_of(variable.owner(), "assign: not in a cell of a scan", where);
    if (model == nullptr) return result;
    ir::model_trace& t = *model;
    const int target = variable_number(variable, not_a_variable);
    if (target < 0) return result;
    if (!t.same_shape(node.id(), variable.id()) || node.type() != variable.type()) {
        const operand_info in[2]{t.info(variable.id()), t.info(node.id())};
        t.fail(does_not_fit, in, 2);
        return result;
    }
    result.updates.push_back({target, node.id()});
    return result;
}

/// Whether a variable is one of those that a pattern names; see path_matches.
constexpr bool variable_matches(const ir::model_trace& t, int variable, std::string_view pattern) {
    const list<char> path = ir::detail::path_text(t, variable);
    return path_matches(pattern, {path.begin(), static_cast<std::size_t>(path.size())});
}
} // namespace detail

/// variable <- value, in runs that fetch this; a number fills the variable. All values of a run are
/// computed before any variable changes. Fetched as a value, it is the variable's new value.
template <class E>
    requires tensor_like<E> || arithmetic<E>
constexpr graph_assignment assign(const graph_node& variable, const E& value,
                                  std::source_location where = std::source_location::current()) {
    constexpr const char* target = "assign: the target is not a variable";
    constexpr const char* fit = "assign: shape or type of the value differs";
    if constexpr (arithmetic<E>) {
        const shape dims = variable.shape();
        const graph_node number(&variable.owner(),
                                variable.owner().constant(static_cast<double>(value), variable.type()));
        return detail::assignment_of(
            variable, dims.rank() == 0 ? number : invoke<broadcast_op>({}, &dims, where, number), where, target, fit);
    } else {
        return detail::assignment_of(variable, value, where, target, fit);
    }
}
/// variable <- variable + value, a number or a formula that broadcasts to its shape.
template <class E>
    requires tensor_like<E> || arithmetic<E>
constexpr graph_assignment assign_add(const graph_node& variable, const E& value,
                                      std::source_location where = std::source_location::current()) {
    return detail::assignment_of(variable, variable + value, where, "assign_add: the target is not a variable",
                                 "assign_add: shape or type of the value differs");
}
/// variable <- variable - value
template <class E>
    requires tensor_like<E> || arithmetic<E>
constexpr graph_assignment assign_sub(const graph_node& variable, const E& value,
                                      std::source_location where = std::source_location::current()) {
    return detail::assignment_of(variable, variable - value, where, "assign_sub: the target is not a variable",
                                 "assign_sub: shape or type of the value differs");
}

/// Which variables an optimizer changes.
struct minimize_options {
    /// Selects the trainable variables whose path, or an enclosing scope's path, matches; "*" stands
    /// for any text.
    std::string_view variables = "*";
};

/// dL/d(variable) and the variable, as compute_gradients gives them.
struct gradient_pair {
    graph_node gradient, variable;
};

namespace detail {

// Counts a call of minimize or apply_gradients, and returns whether the current run includes it.
constexpr bool begin_training(ir::model_trace& t, int& number) {
    number = t.trainings++;
    if (number >= 64) t.fail("session: a model has at most 64 training operations");
    return number < 64 && (t.wanted_trainings >> number & 1) != 0;
}

// Every optimizer has state of its own, although several may change one variable.
constexpr void note_training(ir::model_trace& t, int number, bool wanted, int variable, int node, bool differentiate) {
    const int state = t.definitions[variable].optimizers++;
    if (wanted) t.gradients.push_back({variable, node, -1, number, state, differentiate});
}

constexpr bool scalar_loss(ir::model_trace& t, const graph_node& loss, const char* refusal) {
    const operand_info given = t.info(loss.id());
    for (int i = 0; i < given.dims.rank(); ++i)
        if (given.dims[i].value != 1) {
            t.fail(refusal, &given, 1);
            return false;
        }
    return true;
}

template <class Optimizer>
constexpr graph_operation<Optimizer> training_operation(int number, const Optimizer& optimizer) {
    return {{}, {number}, {optimizer}, false};
}

} // namespace detail

// Chosen for any other arguments. They can be evaluated, so that the session adds no error of its own.
template <class... Given>
constexpr auto minimize(const Given&...) {
    constexpr bool taken = sizeof...(Given) > 64;
    static_assert(taken,
                  "minimize takes a loss, a scalar of the model, and an optimizer: tg::minimize(mean(square(y)), "
                  "tg::sgd{0.1})");
    return graph_operation<>{};
}
template <class... Given>
constexpr auto compute_gradients(const Given&...) {
    constexpr bool taken = sizeof...(Given) > 64;
    static_assert(taken,
                  "compute_gradients takes a loss, a scalar of the model: tg::compute_gradients(mean(square(y)))");
    return list<gradient_pair>{};
}
// clang-format off
no_such_option_in<minimize_options> minimize(any_argument, any_argument, ...) TG_MISTAKE;
no_such_option_in<minimize_options> compute_gradients(any_argument, ...) TG_MISTAKE;
// clang-format on

/// A step of an optimizer for a loss, a scalar: `fetch("train", minimize(loss, adam{}))`. For layers,
/// a run that fetches it is training. The gradient is compiled only into runs that fetch it.
template <tensor_like L, detail::optimizer_like Optimizer>
constexpr graph_operation<Optimizer> minimize(const L& loss, const Optimizer& optimizer,
                                              const minimize_options& options = {},
                                              std::source_location where = std::source_location::current()) {
    const graph_node y = eval(loss, where);
    int number = 0, count = 0;
    ir::model_trace* const model = ir::model_of(y.owner(), "minimize: not in a cell of a scan", where);
    if (model == nullptr) return detail::training_operation(number, optimizer);
    ir::model_trace& t = *model;
    t.scope = 0;
    const bool wanted = detail::begin_training(t, number);
    detail::scalar_loss(t, y, "minimize: the loss must be a scalar (reduce it, say with mean)");
    for (int i = 0; i < t.variables.size(); ++i) {
        if (!t.variables[i].trainable || !detail::variable_matches(t, i, options.variables)) continue;
        ++count;
        detail::note_training(t, number, wanted, i, y.id(), true);
    }
    if (count == 0) t.fail("minimize: no trainable variable has such a path");
    return detail::training_operation(number, optimizer);
}

/// The gradients of a loss by the trainable variables on which it depends, to be inspected, changed and
/// applied: `for (auto& [gradient, variable] : pairs) gradient = clip(gradient, -1, 1);`
template <tensor_like L>
constexpr list<gradient_pair> compute_gradients(const L& loss, const minimize_options& options = {},
                                                std::source_location where = std::source_location::current()) {
    const graph_node y = eval(loss, where);
    list<gradient_pair> result;
    ir::model_trace* const model = ir::model_of(y.owner(), "compute_gradients: not in a cell of a scan", where);
    if (model == nullptr) return result;
    ir::model_trace& t = *model;
    if (!detail::scalar_loss(t, y, "compute_gradients: the loss must be a scalar (reduce it, say with mean)"))
        return result;
    list<int> nodes;
    for (int i = 0; i < t.variables.size(); ++i)
        if (t.variables[i].trainable && detail::variable_matches(t, i, options.variables))
            nodes.push_back(t.variables[i].node);
    const list<int> found = ir::gradient(t, y.id(), nodes);
    for (const ir::weight_rule& r : t.regularizers)
        for (int i = 0; i < nodes.size(); ++i)
            if (nodes[i] == t.variables[r.variable].node && found[i] >= 0) {
                t.scope = t.variables[r.variable].scope;
                t.fail(
                    "compute_gradients: a variable has a regularizer, which acts in minimize; add regularization(...) "
                    "to the loss in its place");
            }
    for (int i = 0; i < nodes.size(); ++i)
        if (found[i] >= 0) result.push_back({graph_node(&t, found[i]), graph_node(&t, nodes[i])});
    t.line = t.intern(where);
    t.scope = 0;
    if (result.empty()) t.fail("compute_gradients: the loss depends on no trainable variable");
    return result;
}

/// A step of an optimizer with gradients from compute_gradients, or from elsewhere.
template <class Optimizer>
constexpr graph_operation<Optimizer> apply_gradients(const list<gradient_pair>& pairs, const Optimizer& optimizer,
                                                     std::source_location where = std::source_location::current()) {
    int number = 0;
    if (pairs.empty()) return detail::training_operation(number, optimizer);
    ir::model_trace* const model =
        ir::model_of(pairs[0].variable.owner(), "apply_gradients: not in a cell of a scan", where);
    if (model == nullptr) return detail::training_operation(number, optimizer);
    ir::model_trace& t = *model;
    t.scope = 0;
    const bool wanted = detail::begin_training(t, number);
    for (const gradient_pair& each : pairs) {
        const int v = detail::variable_number(each.variable, "apply_gradients: the target is not a variable");
        if (v < 0) break;
        if (!t.same_shape(each.gradient.id(), each.variable.id()) || each.gradient.type() != each.variable.type()) {
            const operand_info in[2]{t.info(each.variable.id()), t.info(each.gradient.id())};
            t.fail("apply_gradients: shape or type of the gradient differs", in, 2);
            break;
        }
        detail::note_training(t, number, wanted, v, each.gradient.id(), false);
    }
    return detail::training_operation(number, optimizer);
}

/// All variables take their first values again, before anything else of the run.
constexpr graph_operation<> initialize_variables() {
    graph_operation<> operation;
    operation.initializes = true;
    return operation;
}

namespace detail {
constexpr void add_updates(list<ir::assignment_entry>& to, const list<ir::assignment_entry>& from) {
    for (const ir::assignment_entry& update : from) to.push_back(update);
}
constexpr graph_operation<> joined_operations() { return {}; }
template <class... A, class... Rest>
constexpr auto joined_operations(const graph_operation<A...>& first, const Rest&... rest) {
    const auto others = joined_operations(rest...);
    return [&]<class... B>(const graph_operation<B...>& other) {
        graph_operation<A..., B...> all{first.updates,
                                        {},
                                        std::tuple_cat(first.optimizers, other.optimizers),
                                        first.initializes || other.initializes};
        add_updates(all.updates, other.updates);
        for (std::size_t i = 0; i < first.trainings.size(); ++i) all.trainings[i] = first.trainings[i];
        for (std::size_t i = 0; i < other.trainings.size(); ++i) all.trainings[sizeof...(A) + i] = other.trainings[i];
        return all;
    }(others);
}
} // namespace detail

/// Several operations as one: `fetch("train", group(train_a, train_b, assign_add(steps, 1)))`.
template <class... Operations>
constexpr auto group(const Operations&... operations) {
    static_assert((detail::is_operation<Operations> && ...), "group: operations, such as minimize and assign give");
    return detail::joined_operations(operations...);
}

} // namespace tapegraph
