#pragma once

#include <tapegraph/graph/model_trace.hpp>
#include <tapegraph/graph/passes/schedule.hpp>

#include <type_traits>

/// Frozen programs: a trace and its schedule as constants of the program. Lists live only inside
/// one constant evaluation, so every stage of compilation ends by freezing them and the next one
/// begins by thawing them. Stages that trace pass on the model's record; those of the passes, which
/// follow, thaw the graph alone.

namespace tapegraph::ir {

// Every list of a graph, of a model's record and of a schedule: element type, list, name, and how
// many elements a stage may produce before it is trimmed. Long lists cost nothing while they are zero.
#define TG_GRAPH_LISTS(X)                                                                                              \
    X(entry, t.nodes, nodes, 32768)                                                                                    \
    X(int, t.arguments, arguments, 65536)                                                                              \
    X(std::int64_t, t.pool, pool, 65536)                                                                               \
    X(std::int64_t, t.words, words, 65536)                                                                             \
    X(scope_entry, t.scopes, scopes, 8192)                                                                             \
    X(source_line, t.lines, lines, 8192)                                                                               \
    X(variable_entry, t.variables, variables, 8192)                                                                    \
    X(input_entry, t.inputs, inputs, 256)                                                                              \
    X(output_entry, t.outputs, outputs, 8192)                                                                          \
    X(assignment_entry, t.assignments, assignments, 8192)                                                              \
    X(pass_entry, t.history, history, 64)                                                                              \
    X(extent_table::atom, t.extents.atoms, atoms, 64)                                                                  \
    X(extent_table::monomial, t.extents.monomials, monomials, 512)                                                     \
    X(extent_table::polynomial, t.extents.polynomials, polynomials, 512)                                               \
    X(extent_table::requirement, t.extents.requirements, requirements, 128)
#define TG_MODEL_LISTS(X)                                                                                              \
    X(variable_definition, t.definitions, definitions, 8192)                                                           \
    X(scope_members, t.members, members, 8192)                                                                         \
    X(weight_rule, t.regularizers, regularizers, 4096)                                                                 \
    X(weight_rule, t.constraints, constraints, 4096)                                                                   \
    X(std::string_view, t.tasks, tasks, 255)                                                                           \
    X(row_use_entry, t.row_uses, row_uses, 1024)                                                                       \
    X(gradient_entry, t.gradients, gradients, 8192)                                                                    \
    X(minimization_entry, t.minimizations, minimizations, 32)                                                          \
    X(layer_entry, t.layers, layers, 2048)
#define TG_SCHEDULE_LISTS(X)                                                                                           \
    X(const operation*, s.ops, ops, 512)                                                                               \
    X(kernel_entry, s.kernels, kernels, 1024)                                                                          \
    X(int, s.kernel_words, kernel_words, 65536)                                                                        \
    X(step_entry, s.steps, steps, 32768)                                                                               \
    X(int, s.values, values, 131072)                                                                                   \
    X(int, s.alias, alias, 32768)
#define TG_FROZEN_LISTS(X)                                                                                             \
    TG_GRAPH_LISTS(X)                                                                                                  \
    TG_MODEL_LISTS(X)                                                                                                  \
    TG_SCHEDULE_LISTS(X)

/// The number of elements of each list.
struct capacity {
#define TG_MEMBER(type, list, name, most) int name;
    TG_FROZEN_LISTS(TG_MEMBER)
#undef TG_MEMBER
};

inline constexpr capacity widest{
#define TG_MEMBER(type, list, name, most) most,
    TG_FROZEN_LISTS(TG_MEMBER)
#undef TG_MEMBER
};

/// A constant array that may be empty.
template <class T, int Count>
struct frozen_list {
    T at[Count > 0 ? Count : 1]{};
    static constexpr int capacity = Count;

    constexpr const T& operator[](int i) const { return at[i]; }
    constexpr const T* begin() const { return at; }
    constexpr const T* end() const { return at + Count; }
    constexpr int size() const { return Count; }
};

/// A model's trace and its schedule as a constant.
template <capacity C>
struct frozen {
#define TG_MEMBER(type, list, name, most) frozen_list<type, C.name> name;
    TG_FROZEN_LISTS(TG_MEMBER)
#undef TG_MEMBER
    capacity used{};
    failure error{};
    int groups = 0;
    std::int64_t ordinals = 0;
    bool training = true, differentiated = false;
    bool message_printed = false; ///< the compiler has printed what is wrong with the trace, or why there is none
};

namespace detail {
template <class T, int Count>
constexpr int freeze_list(frozen_list<T, Count>& to, const list<T>& from) {
    if (from.size() > Count && !(Count == 0 && from.size() == 0))
        throw "a graph is larger than TG_FROZEN_LISTS in graph/freeze.hpp allows";
    const T* const data = from.begin(); // calls for element access would double the cost
    const int count = from.size();
    for (int i = 0; i < count; ++i) to.at[i] = data[i];
    return count;
}
template <class T, int Count>
constexpr void thaw_list(list<T>& to, const frozen_list<T, Count>& from, int count) {
    to.copy(from.at, count);
}
template <class T, int To, int From>
constexpr void trim_list(frozen_list<T, To>& to, const frozen_list<T, From>& from) {
    for (int i = 0; i < To; ++i) to.at[i] = from.at[i];
}
} // namespace detail

/// The numbers of elements of the lists.
constexpr capacity sizes_of(const model_trace& t, const schedule& s) {
    capacity c{};
#define TG_MEMBER(type, list, name, most) c.name = list.size();
    TG_FROZEN_LISTS(TG_MEMBER)
#undef TG_MEMBER
    return c;
}

/// Freezes into lists of a given capacity; the default leaves spare room.
template <capacity C = widest>
constexpr frozen<C> freeze(const model_trace& t, const schedule& s = {}) {
    frozen<C> f{};
#define TG_MEMBER(type, list, name, most) f.used.name = detail::freeze_list(f.name, list);
    TG_FROZEN_LISTS(TG_MEMBER)
#undef TG_MEMBER
    // Copies only extents: the operands' shapes point into the trace, and g++ refuses a constant that
    // has ever held such a pointer.
    const auto operand = [](const operand_info& o) {
        return operand_info{o.type, shape(o.dims.rank(), o.dims.data())};
    };
    const failure& e = t.error;
    f.error = {e.what, e.scope, e.line, e.operands, operand(e.first), operand(e.second), e.operation};
    f.groups = t.groups;
    f.ordinals = t.ordinals;
    f.training = t.training;
    f.differentiated = t.differentiated;
    f.message_printed = e.what != nullptr && std::string_view(e.what) == TG_NO_VALUES_IN_A_MODEL;
    return f;
}

/// Copies a constant into lists of exactly the needed length.
template <capacity C, capacity From>
constexpr frozen<C> trim(const frozen<From>& from) {
    frozen<C> f{};
#define TG_MEMBER(type, list, name, most) detail::trim_list(f.name, from.name);
    TG_FROZEN_LISTS(TG_MEMBER)
#undef TG_MEMBER
    f.used = from.used;
    f.error = from.error;
    f.groups = from.groups;
    f.ordinals = from.ordinals;
    f.training = from.training;
    f.differentiated = from.differentiated;
    f.message_printed = from.message_printed;
    return f;
}

/// Thaws the graph, for passes.
template <capacity C>
constexpr void thaw(const frozen<C>& f, trace& t, schedule& s) {
#define TG_MEMBER(type, list, name, most) detail::thaw_list(list, f.name, f.used.name);
    TG_GRAPH_LISTS(TG_MEMBER)
    TG_SCHEDULE_LISTS(TG_MEMBER)
#undef TG_MEMBER
    t.error = f.error;
    t.groups = f.groups;
    t.ordinals = f.ordinals;
    t.differentiated = f.differentiated;
}
/// Thaws the graph and the model's record, for builders that continue tracing.
template <capacity C>
constexpr void thaw(const frozen<C>& f, model_trace& t, schedule& s) {
    thaw(f, static_cast<trace&>(t), s);
#define TG_MEMBER(type, list, name, most) detail::thaw_list(list, f.name, f.used.name);
    TG_MODEL_LISTS(TG_MEMBER)
#undef TG_MEMBER
    t.training = f.training;
}

namespace detail {
inline constexpr char unevaluated_text[] = "the compiler cannot run this: what it calls must be constexpr, and no "
                                           "tensor or run-time value can be in it; what is large "
#ifdef __clang__
                                           "needs -fconstexpr-steps=50000000 -fbracket-depth=1024";
#else
                                           "needs -fconstexpr-ops-limit=2000000000 -fconstexpr-loop-limit=10000000";
#endif

/// The result of a stage that the compiler could not evaluate. A quiet caller reports it; otherwise
/// the compiler has done so.
constexpr auto unevaluated() {
    constexpr capacity nothing_but_a_line = [] {
        capacity c{};
        c.lines = 1;
        return c;
    }();
    frozen<nothing_but_a_line> f{};
    f.error.what = unevaluated_text;
#if defined(__clang__) || defined(TG_EXPLAIN_EVALUATION)
    f.message_printed = true;
#endif
    return f;
}
} // namespace detail

/// One stage of compilation: Builder::build() fills a model's trace and a schedule, and `value` is the
/// resulting constant.
///
/// The size of the result is known only after it has been computed. g++ and clang compute it once,
/// with spare room, and trim it. nvcc's front end, for which zeros are as expensive as anything
/// else, computes it twice.
template <class Builder>
struct compile_stage {
#ifdef __CUDACC__
private:
    template <class Result>
    static constexpr Result run(Result (*finish)(const model_trace&, const schedule&)) {
        model_trace t;
        schedule s;
        Builder::build(t, s);
        return finish(t, s);
    }
    static constexpr capacity used = run(&sizes_of);

public:
    static constexpr frozen<used> value = run(&freeze<used>);
#else
private:
    static constexpr frozen<widest> run() {
        model_trace t;
        schedule s;
        Builder::build(t, s);
        return freeze(t, s);
    }
    // A local constant of a function that is never run: as a member, g++ -O0 would write its six
    // megabytes into the program. g++ remembers an evaluated call, so asking first whether it can
    // be evaluated costs nothing, and g++'s own explanation, one line for each function on the way,
    // is printed only on request. clang would evaluate twice; it prints the constant's name.
    static constexpr auto trimmed() {
#if !defined(__clang__) && !defined(TG_EXPLAIN_EVALUATION)
        if constexpr (!requires { typename std::bool_constant<(run().groups >= 0)>; })
            return detail::unevaluated();
        else
#endif
        {
            constexpr frozen<widest> try_fconstexpr_steps_50000000 = run();
            if constexpr (requires { typename std::bool_constant<(try_fconstexpr_steps_50000000.groups >= 0)>; })
                return trim<try_fconstexpr_steps_50000000.used>(try_fconstexpr_steps_50000000);
            else
                return detail::unevaluated();
        }
    }
    static constexpr auto evaluated = trimmed();
    static constexpr auto unevaluated = detail::unevaluated();
    // If it could not be evaluated, the compiler has reported that once, and must not report errors that
    // follow from it.
    static constexpr const auto& choose() {
        if constexpr (requires { typename std::bool_constant<(evaluated.groups >= 0)>; })
            return evaluated;
        else
            return unevaluated;
    }

public:
    static constexpr const auto& value = choose();
#endif
};

} // namespace tapegraph::ir
