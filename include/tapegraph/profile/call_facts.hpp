#pragma once

#include <tapegraph/eager/numeric_check.hpp>
#include <tapegraph/eager/run_region.hpp>
#include <tapegraph/eager/tape.hpp>
#include <tapegraph/graph/cost.hpp>
#include <tapegraph/graph/live_bytes.hpp>
#include <tapegraph/graph/names.hpp>
#include <tapegraph/profile/result.hpp>
#include <tapegraph/runtime/call_observer.hpp>

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

/// Name, place and cost of a kernel call.

namespace tapegraph::profiling {

/// Identifies a call: equal for the same call in two steps.
struct call_key {
    const void* source = nullptr;
    const char* name = nullptr;
    int part = -1, number = -1;
    std::uint64_t shapes = 0;

    friend bool operator==(const call_key&, const call_key&) = default;
};

/// What makes two calls of a step the same row of a table.
inline call_key key_of(const runtime::observed_call& c) {
    call_key key{c.source, c.label.operation.data(), static_cast<int>(c.part), c.number, 14695981039346656037u};
    if (c.part == runtime::call_part::program) return key;
    const auto mix = [&](const buffer_view& v) {
        key.shapes = (key.shapes ^ static_cast<std::uint64_t>(v.rank)) * 1099511628211u;
        for (int axis = 0; axis < v.rank; ++axis)
            key.shapes = (key.shapes ^ static_cast<std::uint64_t>(v.extents[axis])) * 1099511628211u;
    };
    mix(c.call->domain);
    for (int i = 0; i < c.call->inputs; ++i) mix(c.call->in[i]);
    for (int i = 0; i < c.call->outputs; ++i) mix(c.call->out[i]);
    return key;
}

/// "f32[32,784] f32[784,10] -> f32[32,10]", without numbers.
inline std::string shapes_of(const kernel_call& c) {
    std::string s;
    for (int i = 0; i < c.inputs; ++i)
        if (c.in[i].rank > 0) s += ir::detail::shape_text(c.in[i]) + " ";
    s += "->";
    for (int i = 0; i < c.outputs; ++i)
        if (c.out[i].data != nullptr) s += " " + ir::detail::shape_text(c.out[i]);
    return s;
}

/// Whether a call computes in doubles, at half of the rate of floats.
inline bool half_rate(const kernel_call& c) { return c.outputs > 0 && c.out[0].type == dtype::f64; }

/// Facts about a whole program: the phases of its calls, and the memory use of its arena.
struct program_facts {
    const ir::program* program;
    std::vector<phase> phases;
    std::vector<double> live;

    // Forward calls compute the results, and values that lead to no update; update calls read the
    // numbers of an optimizer, or follow from them; backward are the rest: values that only updates
    // use.
    explicit program_facts(const ir::program& p) : program(&p), live(ir::live_bytes(p)) {
        const ir::program_view& view = p.view();
        const int steps = view.steps.size();
        const auto count = static_cast<std::size_t>(view.nodes.size());
        std::vector<char> updated(count), result(count), of_update(count);
        for (const ir::input_entry& input : view.inputs)
            updated[at(view, input.node)] = input.scalar_parameter && input.name == "optimizer";
        std::vector<char> updates(static_cast<std::size_t>(steps));
        for (int s = 0; s < steps; ++s) {
            bool reads = false;
            each(view, s, true, [&](std::size_t node) { reads = reads || updated[node]; });
            updates[static_cast<std::size_t>(s)] = reads;
            if (reads) each(view, s, false, [&](std::size_t node) { updated[node] = 1; });
        }
        for (const ir::output_entry& output : view.outputs) result[at(view, output.node)] = 1;
        phases.assign(static_cast<std::size_t>(steps), phase::forward);
        for (int s = steps - 1; s >= 0; --s) {
            const bool update = updates[static_cast<std::size_t>(s)] != 0;
            bool wanted = false, leads = update;
            each(view, s, false, [&](std::size_t node) {
                wanted = wanted || result[node];
                leads = leads || of_update[node];
            });
            each(view, s, true, [&](std::size_t node) {
                if (wanted) result[node] = 1;
                if (leads) of_update[node] = 1;
            });
            if (!wanted && leads) phases[static_cast<std::size_t>(s)] = update ? phase::update : phase::backward;
        }
    }

private:
    static std::size_t at(const ir::program_view& view, int node) { return static_cast<std::size_t>(view.alias[node]); }
    template <class F>
    static void each(const ir::program_view& view, int s, bool inputs, const F& f) {
        const ir::step_entry& step = view.steps[s];
        const int first = inputs ? 0 : step.inputs, last = inputs ? step.inputs : step.inputs + step.outputs;
        for (int k = first; k < last; ++k) f(at(view, view.values[step.first_value + k]));
    }
};

/// Name, layer and costs of a call of a compiled program.
inline void describe_program_call(const ir::program& p, int number, const program_facts& facts, call& to,
                                  bool& is_half_rate) {
    const ir::program_view& view = p.view();
    if (number == view.steps.size()) {
        to.phase = phase::update;
        to.operation = "copies of updates";
        to.bytes = ir::cost_of_copies(p);
        return;
    }
    const ir::step_entry& step = view.steps[number];
    const ir::entry& e = view.nodes[step.node];
    const kernel_call& c = p.call_of(number);
    to.phase = facts.phases[static_cast<std::size_t>(number)];
    to.number = number;
    to.layer = ir::detail::layer_of(view, number);
    if (view.lines[e.line].line > 0) to.line = std::string(ir::detail::line_text(view.lines[e.line]).view());
    to.operation = ir::detail::kernel_operations(view, step.kernel) + ir::detail::method_of_step(p, number);
    to.shape = shapes_of(c);
    const ir::cost cost = ir::cost_of(p, number);
    to.flops = cost.flops;
    to.bytes = cost.bytes;
    to.arena_bytes = p.scratch_bytes(number);
    for (int k = step.inputs; k < step.inputs + step.outputs; ++k)
        if (const int id = view.values[step.first_value + k]; p.arena_slot_of(id).offset >= 0)
            to.arena_bytes += p.value_of(id).bytes();
    to.live_bytes = static_cast<std::size_t>(facts.live[static_cast<std::size_t>(number)]);
    is_half_rate = half_rate(c);
}

/// Name and costs of a call in eager mode.
inline void describe_eager_call(const runtime::observed_call& c, call& to, bool& is_half_rate) {
    using runtime::call_part;
    const kernel_call& k = *c.call;
    to.shape = shapes_of(k);
    is_half_rate = half_rate(k);
    for (int i = 0; i < k.inputs; ++i) to.bytes += static_cast<double>(k.in[i].bytes());
    for (int i = 0; i < k.outputs; ++i)
        if (k.out[i].data != nullptr) to.bytes += static_cast<double>(k.out[i].bytes());
    if (c.part == call_part::operation || c.part == call_part::exchange) {
        to.operation = std::string(c.label.operation);
        if (c.label.method != nullptr) to.operation += ir::detail::by_method(c.label.method(k));
        if (c.label.flops != nullptr) to.flops = c.label.flops(k);
        if (c.label.bytes != nullptr) to.bytes = c.label.bytes(k);
        if (to.operation == "add") to.flops = static_cast<double>(k.domain.elements());
        return;
    }
    const auto& f = *static_cast<const tapegraph::detail::formula_view*>(c.source);
    const bool value = c.part == call_part::value;
    double each = value ? f.code->value_region().instructions() : f.code->adjoint_region().instructions();
    if (value ? f.reduction != nullptr : c.part == call_part::summed_adjoints) each += 1;
    to.flops = each * static_cast<double>(k.domain.elements());
    to.operation = (value                           ? ""
                    : c.part == call_part::adjoints ? "gradient of "
                                                    : "gradient, summed, of ") +
                   tapegraph::detail::formula_name(f);
}

/// Assigns eager calls to layers: those of a walk over the tape belong to the layer that made the
/// record.
class eager_place {
public:
    /// A step begins, with its forward pass.
    void begin_step() {
        ++turn_;
        walked_ = false;
    }
    /// The number of the step, from 1.
    int turn() const { return turn_; }
    /// Notes whether the backward pass has begun.
    void begin_call() { walked_ = walked_ || tapegraph::detail::tape_storage::instance().visited() >= 0; }
    /// Finds layer and phase of a call.
    void place(const runtime::observed_call& c, call& to) {
        begin_call();
        if (c.part == runtime::call_part::exchange) {
            to.phase = phase::update;
            return;
        }
        const tapegraph::detail::tape_storage& tape = tapegraph::detail::tape_storage::instance();
        if (const int from = tape.visited(); from >= 0) {
            to.phase = phase::backward;
            if (static_cast<std::size_t>(from) < layers_.size())
                std::tie(to.layer, to.line) = layers_[static_cast<std::size_t>(from)];
            return;
        }
        to.phase = walked_ ? phase::update : phase::forward;
        if (!walked_) to.layer = tapegraph::detail::numeric_check::scope();
        if (c.label.where.line() > 0) {
            const std::string_view file = c.label.where.file_name();
            to.line = std::string(file.substr(file.rfind('/') + 1)) + ":" + std::to_string(c.label.where.line());
        }
        if (!tape.recording()) return;
        const auto next = static_cast<std::size_t>(tape.length()); // the place of its record
        if (layers_.size() <= next) layers_.resize(next + 1);
        layers_[next] = {to.layer, to.line};
    }

private:
    std::vector<std::pair<std::string, std::string>> layers_; // and lines, by place on the tape
    int turn_ = 0;
    bool walked_ = false;
};

/// While it lives, eager layers report which of them runs.
class scoped_layer_names {
public:
    scoped_layer_names() : before_(std::exchange(tapegraph::detail::numeric_check::layers_wanted(), true)) {
        tapegraph::detail::numeric_check::scope().clear();
    }
    scoped_layer_names(const scoped_layer_names&) = delete;
    scoped_layer_names& operator=(const scoped_layer_names&) = delete;
    ~scoped_layer_names() { tapegraph::detail::numeric_check::layers_wanted() = before_; }

private:
    bool before_;
};

} // namespace tapegraph::profiling
