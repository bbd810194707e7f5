#pragma once

#include <nn/models.hpp>

#include <tapegraph/traced.hpp>

#include <string>

/// Whether a graph made at run time is the compiler's, word for word: nodes, extents, schedule, code of fused kernels.

namespace words_test {

using namespace nn_test;

template <class T>
std::string difference_of(const char* name, const tg::ir::constant_span<T>& a, const tg::ir::constant_span<T>& b) {
    if (a.size() != b.size())
        return std::string(name) + ": " + std::to_string(a.size()) + " and " + std::to_string(b.size());
    for (int i = 0; i < a.size(); ++i)
        if (!(a[i] == b[i])) return std::string(name) + " at " + std::to_string(i);
    return {};
}

inline std::string difference_of_nodes(const tg::ir::program_view& a, const tg::ir::program_view& b) {
    if (a.nodes.size() != b.nodes.size())
        return "nodes: " + std::to_string(a.nodes.size()) + " and " + std::to_string(b.nodes.size());
    for (int i = 0; i < a.nodes.size(); ++i) {
        const tg::ir::entry &x = a.nodes[i], &y = b.nodes[i];
        if (x.op != y.op)
            return "node " + std::to_string(i) + ": " + std::string(x.op->name) + " and " + std::string(y.op->name);
        const std::pair<const char*, bool> fields[]{
            {"arguments", x.first_argument == y.first_argument && x.arguments == y.arguments},
            {"shape", x.dims == y.dims && x.rank == y.rank},
            {"words", x.words == y.words},
            {"group", x.group == y.group && x.sealed == y.sealed},
            {"scope", x.scope == y.scope},
            {"type", x.type == y.type},
            {"line", a.lines[x.line].line == b.lines[y.line].line}};
        for (const auto& [name, same] : fields)
            if (!same) return "node " + std::to_string(i) + ", " + std::string(x.op->name) + ": " + name;
    }
    return {};
}

inline std::string difference_of_steps(const tg::ir::program_view& a, const tg::ir::program_view& b) {
    if (a.steps.size() != b.steps.size() || a.kernels.size() != b.kernels.size()) return "steps or kernels";
    for (int i = 0; i < a.steps.size(); ++i) {
        const tg::ir::step_entry &x = a.steps[i], &y = b.steps[i];
        if (x.kernel != y.kernel || x.node != y.node || x.domain != y.domain || x.first_value != y.first_value ||
            x.inputs != y.inputs || x.outputs != y.outputs)
            return "step " + std::to_string(i);
    }
    for (int i = 0; i < a.kernels.size(); ++i) {
        const tg::ir::kernel_entry &x = a.kernels[i], &y = b.kernels[i];
        if (x.kind != y.kind || x.op != y.op || x.type != y.type || x.first_word != y.first_word || x.words != y.words)
            return "kernel " + std::to_string(i);
    }
    return {};
}

/// What differs first between two programs, or nothing.
inline std::string difference(const tg::ir::program_view& a, const tg::ir::program_view& b) {
    for (const std::string& found :
         {difference_of_nodes(a, b), difference_of("arguments", a.arguments, b.arguments),
          difference_of("pool", a.pool, b.pool), difference_of("words", a.words, b.words),
          difference_of("ops", a.ops, b.ops), difference_of_steps(a, b),
          difference_of("kernel words", a.kernel_words, b.kernel_words), difference_of("values", a.values, b.values),
          difference_of("alias", a.alias, b.alias)})
        if (!found.empty()) return found;
    return {};
}

/// A builder's schedule by the compiler, without kernels.
template <class Builder>
const tg::ir::program_view& scheduled_view() {
    using namespace tg::ir;
    using reduced =
        compile_stage<tg::ir::detail::reduced<compile_stage<tg::ir::detail::simplified<traced_stage<Builder>>>>>;
    using scheduled = compile_stage<tg::ir::detail::scheduled<compile_stage<tg::ir::detail::fused<reduced>>>>;
    static constexpr program_view view = stage_view<scheduled>();
    return view;
}
/// A builder's trace, before any pass, and its schedule: the compiler's and those of the moment.
template <class Builder>
void check_words() {
    if constexpr (!tg::ir::well_formed<tg::ir::traced_stage<Builder>>)
        tg::ir::refuse<tg::ir::traced_stage<Builder>>(); // in the words of the compiler
    static constexpr tg::ir::program_view traced = tg::ir::stage_view<tg::ir::traced_stage<Builder>>();
    const auto trace = tg::ir::traced_program::of<Builder>(false);
    REQUIRE(difference(traced, trace->view()) == "");
    const auto lowered = tg::ir::traced_program::of<Builder>();
    CHECK(difference(scheduled_view<Builder>(), lowered->view()) == "");
    CHECK(lowered->view().steps.size() > 0);
}

/// Adds up results of layers and the like, so that a derivative reaches all of them.
class total_of {
public:
    constexpr explicit total_of(const tg::graph_node& first) : total_(eval(sum(first))) {}
    constexpr void add(const auto& result) {
        const auto value = tg::detail::without_mask(tg::detail::sealed_output(result));
        const auto term = eval(sum(value * value));
        total_ = eval(total_ + term);
    }
    constexpr const tg::graph_node& total() const { return total_; }

private:
    tg::graph_node total_;
};

/// The first output of a builder, and its derivative by all variables.
template <class Builder>
struct with_derivative {
    using previous = Builder;
    static constexpr void build(tg::ir::trace& t) {
        tg::list<int> nodes;
        for (const tg::ir::variable_entry& v : t.variables)
            if (v.trainable) nodes.push_back(v.node);
        for (const int slope : tg::ir::gradient(t, t.outputs[0].node, nodes))
            if (slope >= 0) t.outputs.push_back({"slope", slope});
    }
};

/// Both modes' training programs, and what they make of a few batches.
template <class Spec, class Model, class Loss, class Optimizer, class Batch>
void check(const Model& model, const Loss& loss, const Optimizer& optimizer, const Batch& batch) {
    auto compiled = tg::compile<tg::graph>(model, Spec{}, loss, optimizer, {.seed = 3});
    auto traced = tg::compile<tg::traced>(model, Spec{}, loss, optimizer, {.seed = 3});
    CHECK(difference(compiled.training_view(), traced.training_view()) == "");
    CHECK(compiled.summary() == traced.summary());
    REQUIRE(first_difference(compiled, traced) == "");
    train_alike(compiled, traced, {3, 1, 4}, batch);
    CHECK(compiled.arena_bytes() == traced.arena_bytes());
}

} // namespace words_test
