#pragma once

#include <tapegraph/core/fixed_string.hpp>
#include <tapegraph/graph/passes/epilogue.hpp>
#include <tapegraph/graph/passes/snapshot_variables.hpp>
#include <tapegraph/graph/program.hpp>
#include <tapegraph/ir/eliminate.hpp>
#include <tapegraph/ir/simplify.hpp>
#include <tapegraph/ir/text.hpp>

/// From a builder (a type whose `build(trace&)` traces something) to a program, in stages that each fit a compiler's
/// budget for constant evaluation; and what a shape error looks like.

namespace tapegraph {

/// Shown when a model does not fit together. Its arguments are the facts: what, where, the operands, the scope.
template <fixed_string What, fixed_string Where, fixed_string First, fixed_string Second, fixed_string Scope>
struct ill_formed_model; // never defined: using it is the error

namespace ir {

namespace detail {

template <class Frozen>
constexpr text_builder error_fact(const Frozen& f, int fact) {
    const failure& e = f.error;
    text_builder b;
    if (fact == 0) {
        if (!e.operation.empty()) b.put(e.operation), b.put(": ");
        b.put(e.what);
    }
    if (fact == 1) return line_text(f.lines[e.line]);
    if (fact == 2 && e.operands > 0) return operand_text(e.first);
    if (fact == 3 && e.operands > 1) return operand_text(e.second);
    if (fact == 4) scope_path(b, f.scopes, e.scope);
    return b;
}

template <class Stage, int Fact>
constexpr auto fact_string() {
    constexpr text_builder b = error_fact(Stage::value, Fact);
    fixed_string<static_cast<std::size_t>(b.size) + 1> s;
    // The closing zero is written explicitly, because clang prints an array as text only when the last element that was written
    // is zero.
    for (int i = 0; i <= b.size; ++i) s.text[i] = b.text[i];
    return s;
}

// Runs a builder. One that names another as `previous` goes on with the trace which that one made.
template <class Builder>
struct traced {
    static constexpr void build(trace& t, schedule& s) {
        if constexpr (requires { typename Builder::previous; }) {
            thaw(compile_stage<traced<typename Builder::previous>>::value, t, s);
            t.history.clear();
        }
        if (t.error.what == nullptr) Builder::build(t);
        note_pass(t, "trace");
    }
};
template <class Previous>
struct simplified {
    static constexpr void build(trace& t, schedule& s) {
        thaw(Previous::value, t, s);
        if (t.error.what != nullptr) return;
        simplify(t);
    }
};
template <class Previous>
struct reduced {
    static constexpr void build(trace& t, schedule& s) {
        thaw(Previous::value, t, s);
        if (t.error.what != nullptr) return;
        eliminate_common_subexpressions(t);
        eliminate_dead_nodes(t);
    }
};
template <class Previous>
struct fused {
    static constexpr void build(trace& t, schedule& s) {
        thaw(Previous::value, t, s);
        if (t.error.what != nullptr) return;
        fuse_epilogues(t);
        eliminate_dead_nodes(t);
    }
};
template <class Previous>
struct scheduled {
    static constexpr void build(trace& t, schedule& s) {
        thaw(Previous::value, t, s);
        if (t.error.what != nullptr) return;
        snapshot_variables(t);
        s = make_schedule(t);
        t.history.push_back({"kernel calls", s.steps.size()});
    }
};

template <class> // of a builder, so that nothing is lowered where every program compiles
struct nothing {
    static constexpr void build(trace&, schedule&) {}
};

} // namespace detail

/// Whether a stage's trace fits together.
template <class Stage>
inline constexpr bool well_formed = Stage::value.error.what == nullptr;

/// Stops compilation and shows what does not fit. Leave out whatever depends on the stage, and this is all that the compiler
/// prints: `if constexpr (!well_formed<S>) refuse<S>(); else ...`
template <class Stage>
constexpr void refuse() {
    static_cast<void>(sizeof(ill_formed_model<detail::fact_string<Stage, 0>(), detail::fact_string<Stage, 1>(),
                                              detail::fact_string<Stage, 2>(), detail::fact_string<Stage, 3>(),
                                              detail::fact_string<Stage, 4>()>));
}

/// The trace of a builder as a constant, not yet simplified: variables, layers, shapes.
template <class Builder>
using traced_stage = compile_stage<detail::traced<Builder>>;

/// The program of a builder. A model that does not fit together stops compilation here.
template <class Builder>
constexpr const program_view& compile_program() {
    using traced = traced_stage<Builder>;
    if constexpr (!well_formed<traced>) {
        refuse<traced>();
        return lowered<compile_stage<detail::nothing<Builder>>>::view;
    } else {
        using reduced = compile_stage<detail::reduced<compile_stage<detail::simplified<traced>>>>;
        using scheduled = compile_stage<detail::scheduled<compile_stage<detail::fused<reduced>>>>;
        if constexpr (!well_formed<scheduled>) { // the compiler gave up between
            refuse<scheduled>();
            return lowered<compile_stage<detail::nothing<Builder>>>::view;
        } else {
            return lowered<scheduled>::view;
        }
    }
}

} // namespace ir
} // namespace tapegraph
