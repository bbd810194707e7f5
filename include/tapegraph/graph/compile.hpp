#pragma once

#include <tapegraph/graph/passes/epilogue.hpp>
#include <tapegraph/graph/passes/messages.hpp>
#include <tapegraph/graph/passes/slices.hpp>
#include <tapegraph/graph/passes/snapshot_variables.hpp>
#include <tapegraph/graph/program.hpp>
#include <tapegraph/graph/refusal.hpp>
#include <tapegraph/graph/transforms.hpp>
#include <tapegraph/ir/eliminate.hpp>
#include <tapegraph/ir/fold_numbers.hpp>
#include <tapegraph/ir/simplify.hpp>

/// Compiles a builder (a type whose `build(model_trace&)` traces something) to a program, in stages that
/// each fit a compiler's budget for constant evaluation.

namespace tapegraph {

namespace ir {

namespace detail {

// Runs a builder. One that names another as `previous` continues the trace of that one.
template <class Builder>
struct traced {
    static constexpr void build(model_trace& t, schedule& s) {
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
        fold_numbers(t);
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
        fuse_messages(t);
        join_pads(t);
        eliminate_dead_nodes(t);
    }
};
template <class Previous>
struct scheduled {
    static constexpr void build(trace& t, schedule& s) {
        thaw(Previous::value, t, s);
        if (t.error.what != nullptr) return;
        view_slices(t);
        snapshot_variables(t);
        s = make_schedule(t);
        t.history.push_back({"kernel calls", s.steps.size()});
    }
};

template <class> // a builder; a template, so that code which every program compiles lowers nothing
struct nothing {
    static constexpr void build(trace&, schedule&) {}
};

} // namespace detail

/// The trace of a builder as a constant, before simplification: variables, layers, shapes.
template <class Builder>
using traced_stage = compile_stage<detail::traced<Builder>>;

/// The program of a builder. A model whose parts do not fit stops compilation here.
template <class Builder>
constexpr const program_view& compile_program() {
    using traced = traced_stage<Builder>;
    if constexpr (!well_formed<traced>) {
        refuse<traced>();
        return lowered<compile_stage<detail::nothing<Builder>>>::view;
    } else {
        using reduced = compile_stage<detail::reduced<compile_stage<detail::simplified<traced>>>>;
        using scheduled = compile_stage<detail::scheduled<compile_stage<detail::fused<reduced>>>>;
        if constexpr (!well_formed<scheduled>) { // the compiler gave up at a stage in between
            refuse<scheduled>();
            return lowered<compile_stage<detail::nothing<Builder>>>::view;
        } else {
            return lowered<scheduled>::view;
        }
    }
}

} // namespace ir
} // namespace tapegraph
