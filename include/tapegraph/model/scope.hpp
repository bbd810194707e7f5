#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/kept_text.hpp>
#include <tapegraph/graph/model_trace.hpp>
#include <tapegraph/ir/gradient.hpp>
#include <tapegraph/model/graph_placement.hpp>
#include <tapegraph/model/initializer.hpp>
#include <tapegraph/model/scope_path.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/random/random.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

#include <bit>
#include <string>
#include <string_view>

/// Scopes of graph mode: a path of names that owns variables. `scope / "conv1"` and `scope / 3` go
/// one level down; `scope / "a/3"` is `scope / "a" / 3`, and a name of digits is an index.

namespace tapegraph {

class graph_scope;
/// `graph_scope::variable` while the program runs.
graph_node variable_at_run_time(const graph_scope& scope, dtype type, std::string_view name, const shape& dims,
                                const variable_options& options);
/// `graph_scope::operator/` while the program runs.
graph_scope scope_at_run_time(const graph_scope& scope, std::string_view name);

/// A path of names that owns variables. Errors are recorded in the trace, and become the
/// compiler's.
class graph_scope {
public:
    constexpr graph_scope(ir::model_trace* owner, int index, bool reuses = false)
        : t_(owner), index_(index), reuses_(reuses) {}

    /// The same scope with sharing: in it and in the scopes below it a variable that exists may be
    /// requested again, so layers called twice with it share their weights.
    constexpr graph_scope reuse() const { return {t_, index_, true}; }
    /// Whether variables that exist are returned.
    constexpr bool reuses() const { return reuses_; }

    constexpr graph_scope operator/(std::string_view name) const {
        return TG_RUNS_HERE ? below(name) : scope_at_run_time(*this, name);
    }
    constexpr graph_scope operator/(const char* name) const { return *this / std::string_view(name); }
    /// For graphs that are made at run time. It is an error while the compiler traces, because a
    /// constant outlives the string.
    constexpr graph_scope operator/(const std::string& name) const {
        if (!std::is_constant_evaluated()) return *this / std::string_view(name);
        fail("a trace keeps the name: write scope / \"a literal\" or scope / 3");
        return child({}, t_->scopes.size());
    }
    constexpr graph_scope operator/(int index) const {
        if (index < 0) fail("scope: an index must not be negative");
        return child({}, index);
    }

    /// The scope `name` the first time, then name_1, name_2, ...: each call has its own scope.
    constexpr graph_scope unique(std::string_view name) const {
        if (const std::size_t slash = name.rfind('/'); slash != name.npos)
            return (*this / name.substr(0, slash)).unique(name.substr(slash + 1));
        for (ir::unique_entry& known : t_->unique_scopes)
            if (known.parent == index_ && known.name == name) return child(name, known.count++);
        t_->unique_scopes.push_back({index_, kept_text(name), 1});
        return *this / name;
    }

    /// A variable of this scope; its extents must be numbers. Requesting a path twice in a trace is
    /// an error.
    template <class T>
    constexpr graph_node variable(std::string_view name, const shape& dims,
                                  const variable_options& options = {}) const {
        static_assert(std::is_floating_point_v<T>, "variables are float or double");
        return TG_RUNS_HERE ? made_variable(dtype_of<T>, name, dims, options)
                            : variable_at_run_time(*this, dtype_of<T>, name, dims, options);
    }
    /// The same with TensorFlow's rules: outside of reuse() it makes a variable, which must not
    /// exist, and inside it returns one, which must. (`reuse().variable` returns it or makes it,
    /// like AUTO_REUSE.) Errors name it.
    template <class T>
    constexpr graph_node get_variable(std::string_view name, const shape& dims, const initializer& how = {},
                                      bool trainable = true) const {
        if (const std::size_t slash = name.rfind('/'); slash != name.npos)
            return (*this / name.substr(0, slash))
                .template get_variable<T>(name.substr(slash + 1), dims, how, trainable);
        bool known = false;
        for (int v = t_->members[index_].last_variable; v > 0; v = t_->definitions[v - 1].previous)
            known = known || t_->variables[v - 1].name == name;
        if (known != reuses_) {
            if (t_->error.what == nullptr) t_->error.operation = name;
            fail(known ? "get_variable: it exists, and the scope is not one of reuse()"
                       : "get_variable: it does not exist, and reuse() makes none");
        }
        return graph_scope(t_, index_, true).template variable<T>(name, dims, {how, trainable, {}});
    }
    /// A variable of the element type of `like`.
    constexpr graph_node variable_like(const graph_node& like, std::string_view name, const shape& dims,
                                       const variable_options& options = {}) const {
        return like.type() == dtype::f64 ? variable<double>(name, dims, options) : variable<float>(name, dims, options);
    }

    /// Records an update: reads see the value at the start of the step, the update applies at its end.
    template <tensor_like E>
    constexpr void assign(const graph_node& variable, const E& value,
                          std::source_location where = std::source_location::current()) const {
        assign_node(variable, eval(value, where));
    }
    /// Gives the variable the node's value when the step ends; an error of the trace if the target is no variable.
    constexpr void assign_node(const graph_node& variable, const graph_node& node) const {
        if (!t_->is(variable.id(), ir::descriptor_of<ir::variable_op>)) {
            t_->fail("assign: the target is not a variable");
            return;
        }
        if (!t_->same_shape(node.id(), variable.id()) || node.type() != variable.type()) {
            const operand_info in[2]{t_->info(variable.id()), t_->info(node.id())};
            t_->fail("assign: shape or type of the value differs", in, 2);
            return;
        }
        const int target = static_cast<int>(t_->words_of(variable.id())[0]);
        for (ir::assignment_entry& known : t_->assignments)
            if (known.variable == target) { // the last one holds
                known.node = node.id();
                return;
            }
        t_->assignments.push_back({target, node.id()});
    }

    /// Adds a scalar to the loss in training and evaluation: a penalty, a term of a variational
    /// model. Predictions leave it out.
    template <tensor_like E>
    constexpr void add_loss(const E& value, std::source_location where = std::source_location::current()) const {
        const graph_node node = eval(value, where);
        const operand_info given = t_->info(node.id());
        for (int i = 0; i < given.dims.rank(); ++i)
            if (given.dims[i].value != 1) {
                t_->scope = index_;
                t_->fail("add_loss: a loss must be a scalar (reduce it, say with mean)", &given, 1);
                return;
            }
        t_->added_losses.push_back(given.dims.rank() == 0 ? node.id() : graph_node(eval(sum(node), where)).id());
    }

    /// A loss plus everything that models have added by add_loss so far and that no loss has taken
    /// yet: for custom steps and sessions, which may have several losses.
    template <tensor_like E>
    constexpr graph_node with_added_losses(const E& loss,
                                           std::source_location where = std::source_location::current()) const {
        graph_node total = eval(loss, where);
        for (const int each : t_->added_losses) total = eval(total + graph_node(t_, each), where);
        t_->added_losses.clear();
        return total;
    }

    /// `value`, a formula of the batch; in steps in which the variable is frozen
    /// (variable_list::set_trainable) the variable in its place, and `value` receives no
    /// derivative. For values that a moving average stands for, in a layer whose `training()` is
    /// true.
    template <tensor_like E>
    constexpr graph_node unless_frozen(const graph_node& variable, const E& value,
                                       std::source_location where = std::source_location::current()) const {
        if (!t_->is(variable.id(), ir::descriptor_of<ir::variable_op>)) {
            t_->fail("unless_frozen: what may be frozen is not a variable");
            return variable;
        }
        // A number that the program refreshes every step, so that freezing requires no compilation.
        int& input = t_->variables[static_cast<int>(t_->words_of(variable.id())[0])].frozen_input;
        if (input == 0) {
            t_->input("frozen", dtype::boolean, {}, true);
            input = t_->inputs.size();
        }
        return eval(tapegraph::where(graph_node(t_, t_->inputs[input - 1].node), variable, value), where);
    }

    /// Rows of a variable [n, ...]: gather(table, indices, 0). In training the gradient of the
    /// variable consists of these rows alone, and an optimizer updates no others. Any other use of
    /// the variable is then an error.
    template <handle I>
    constexpr graph_node gather_rows(const graph_node& table, const I& indices,
                                     std::source_location where = std::source_location::current()) const {
        const graph_node rows = eval(gather(table, indices, 0, 0, where), where);
        if (!t_->is(table.id(), ir::descriptor_of<ir::variable_op>))
            t_->fail("gather_rows: the table is not a variable");
        else if (const auto v = static_cast<int>(t_->words_of(table.id())[0]);
                 t_->training && t_->variables[v].trainable)
            t_->row_uses.push_back({v, rows.id()});
        return rows;
    }

    /// Checks a requirement of a layer on its options; the error names the scope.
    constexpr bool require(bool holds, const char* what) const {
        if (!holds) fail(what);
        return holds;
    }

    /// While the result lives, computations belong to a device:
    /// `const auto on = scope.with_device("/gpu:0");`. Sessions, compiled models and steps compute
    /// them there; "/cpu:1" and so on are the CPU. Functions stay on one device. In a model with
    /// `.tasks = server.tasks()` the task "/job:worker/task:1" computes what follows and holds its
    /// variables. In one with tg::parameter_servers "/job:ps/task:0" holds only variables.
    /// Elsewhere everything is here.
    [[nodiscard]] constexpr graph_placement with_device(std::string_view name) const {
        const auto place = detail::place_name::read(name);
        if (!place.valid) fail(detail::place_name::refusal);
        return {t_, place};
    }

    /// Constant while tracing: training, evaluation and prediction are separate traces.
    constexpr bool training() const { return t_->training; }

    /// A value fed by name at run time; each extent of -1 is a symbol of its own.
    template <class T>
    constexpr graph_node placeholder(std::string_view name, const shape& dims = {}) const {
        shape s;
        s.attach(&t_->extents);
        for (int i = 0; i < dims.rank(); ++i)
            s.push_back(dims[i].value == -1 ? extent(t_->extents.symbol({}), &t_->extents) : dims[i]);
        return {t_, t_->input(kept_text(name), dtype_of<T>, s)};
    }

    /// A value fed by name at run time, by default this number in every element; the extents must
    /// then be numbers.
    template <class T>
    constexpr graph_node placeholder_with_default(std::string_view name, double value, const shape& dims = {}) const {
        const graph_node made = placeholder<T>(name, dims);
        t_->inputs.back().has_default = true;
        t_->inputs.back().fallback = value;
        require(dims.known(), "placeholder_with_default: extents must be numbers");
        return made;
    }

    /// Names a value that a session can fetch, `run<"block/h">()`, or replace by a fed one,
    /// `given<"block/h">(t)`, and that tg::features finds.
    template <tensor_like E>
    constexpr graph_node named(std::string_view name, const E& value,
                               std::source_location where = std::source_location::current()) const {
        const graph_node node = eval(value, where);
        for (const ir::named_entry& known : t_->named)
            if (known.scope == index_ && known.name == name) fail("named: this path is already taken");
        const std::string_view kept = kept_text(name);
        t_->named.push_back({index_, kept, node.id()});
        t_->results.push_back({index_, kept, node.id(), t_->results.size()});
        return node;
    }

    /// Uniform numbers in [0, 1) of the shape of `like`, new in every step. They have its type, or
    /// float if that has 16 bits.
    template <handle H> // compiled where it is used
    constexpr auto uniform_like(const H& like) const {
        return random::detail::wide_uniform(like, shape_of(like), std::source_location::current());
    }
    /// Runs f(), whose random operations (random::normal_like and the like) draw the model's
    /// numbers.
    template <class F>
    constexpr auto with_draws(const F& f) const {
        return f();
    }

    /// Seals a layer's operand in the layer's scope, but before the layer's nodes.
    template <tensor_like X>
    constexpr graph_node operand(const X& x, std::source_location where) const {
        t_->scope = index_;
        t_->line = t_->intern(where); // the layer's errors name its line, even if nothing is sealed before
        return eval(x, where);
    }

    /// The start of a layer: its nodes carry its scope, and `leave` adds its row to the layer
    /// table. A layer made of layers is one row.
    struct layer_mark {
        int node, variable, layer, result;
    };
    /// Begins a layer: nodes traced from here on are its.
    constexpr layer_mark enter() const {
        t_->scope = index_;
        return {t_->nodes.size(), t_->variables.size(), t_->layers.size(), t_->results.size()};
    }
    /// Ends a layer of the type, which gives `result`.
    constexpr graph_node leave(std::string_view type, layer_mark mark, const graph_node& result) const {
        t_->layers.resize(mark.layer);
        t_->layers.push_back({type, index_, mark.node, result.id(), mark.variable, t_->variables.size()});
        t_->results.push_back({index_, {}, result.id(), mark.result});
        return result;
    }

    /// The trace that its variables and nodes belong to.
    constexpr ir::model_trace& owner() const { return *t_; }
    /// Its number among the scopes of the trace.
    constexpr int index() const { return index_; }

private:
    friend graph_node variable_at_run_time(const graph_scope& scope, dtype type, std::string_view name,
                                           const shape& dims, const variable_options& options);
    friend graph_scope scope_at_run_time(const graph_scope& scope, std::string_view name);

    constexpr void fail(const char* what) const {
        t_->scope = index_;
        t_->fail(what);
    }
    constexpr graph_node made_variable(dtype type, std::string_view name, const shape& dims,
                                       const variable_options& options) const {
        if (const std::size_t slash = name.rfind('/'); slash != name.npos)
            return (*this / name.substr(0, slash)).made_variable(type, name.substr(slash + 1), dims, options);
        t_->scope = index_;
        int& newest = t_->members[index_].last_variable;
        for (int v = newest; v > 0; v = t_->definitions[v - 1].previous)
            if (t_->variables[v - 1].name == name) {
                const graph_node known(t_, t_->variables[v - 1].node);
                if (!reuses_) {
                    t_->fail("variable: this path is already taken (scope.reuse() shares it)");
                } else if (known.type() != type || !(known.shape() == dims)) {
                    const operand_info in[2]{t_->info(known.id()), {type, dims}};
                    t_->fail("variable: it is shared, and has another shape or type", in, 2);
                }
                return known;
            }
        if (!dims.known()) t_->fail("variable: extents must be numbers");
        if (const char* const refused = detail::refused_rule(options, dims)) t_->fail(refused);
        if (options.regularizer)
            t_->regularizers.push_back({t_->variables.size(), static_cast<int>(options.regularizer.kind),
                                        options.regularizer.a, options.regularizer.b, 0, 0});
        if (const constraint& c = options.constraint)
            t_->constraints.push_back({t_->variables.size(), static_cast<int>(c.kind), c.a, c.b, c.c, c.along});
        const initializer how = placed(options.initializer, dims, type);
        const int word = t_->words.push_back(t_->variables.size());
        const int node =
            t_->append(ir::descriptor_of<ir::variable_op>, type, dims.rank(), t_->store(dims), nullptr, 0, word);
        newest = t_->define({index_, kept_text(name), node, options.trainable},
                            {static_cast<int>(how.kind), how.a, how.b, newest, 0, 0, options.collection, t_->task}) +
                 1;
        return {t_, node};
    }
    // Stores initial values that are given in the trace, and checks them.
    constexpr initializer placed(initializer how, const shape& dims, dtype type) const {
        if (how.kind == initializer_kind::values) {
            how.a = t_->words.size();
            if (dims.known() && dims.elements() != how.count)
                t_->fail("variable: init::values has another number of elements");
            for (int i = 0; i < how.count; ++i) t_->words.push_back(std::bit_cast<std::int64_t>(how.list[i]));
        }
        if (how.kind == initializer_kind::value_of) {
            const int other = how.a < 0 ? -1 : t_->variables[static_cast<int>(how.a)].node;
            if (other < 0)
                t_->fail("init::value_of: not of a variable");
            else if (!(t_->dims(other) == dims) || t_->nodes[other].type != type)
                t_->fail("variable: init::value_of is of another shape or type");
        }
        return how;
    }
    constexpr graph_scope below(std::string_view name) const {
        std::size_t slash = 0; // a loop, because find() compares an address, which g++ cannot with -fsanitize=undefined
        while (slash < name.size() && name[slash] != '/') ++slash;
        const graph_scope first = child(name.substr(0, slash));
        return slash == name.size() ? first : first / name.substr(slash + 1);
    }
    // One name of a path. Users and files see paths as text, so names that read alike are one
    // scope.
    constexpr graph_scope child(std::string_view name) const {
        if (name.empty()) fail("scope: a name must not be empty");
        if (const int index = detail::index_of_name(name); index >= 0) return child({}, index);
        const std::size_t last = name.rfind('_');
        if (last == name.npos || last == 0) return child(name, -1);
        const int number = detail::index_of_name(name.substr(last + 1));
        return number > 0 ? child(name.substr(0, last), number) : child(name, -1);
    }
    constexpr graph_scope child(std::string_view name, int index) const {
        return {t_, detail::child_scope(*t_, index_, name, index), reuses_};
    }

    ir::model_trace* t_;
    int index_;
    bool reuses_;
};

#if TG_DEFINES(nn)
TG_DEFINITION graph_node variable_at_run_time(const graph_scope& scope, dtype type, std::string_view name,
                                              const shape& dims, const variable_options& options) {
    return scope.made_variable(type, name, dims, options);
}
TG_DEFINITION graph_scope scope_at_run_time(const graph_scope& scope, std::string_view name) {
    return scope.below(name);
}
#endif

namespace init {
/// The initial values of another variable, whatever its current value is.
constexpr initializer value_of(const graph_node& variable) {
    const ir::trace& t = variable.owner();
    const bool known = t.is(variable.id(), ir::descriptor_of<ir::variable_op>);
    return {initializer_kind::value_of, known ? static_cast<double>(t.words_of(variable.id())[0]) : -1, 0};
}
} // namespace init

} // namespace tapegraph
