#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/graph/buffer_placement.hpp>
#include <tapegraph/graph/device_memory.hpp>
#include <tapegraph/graph/formula_numbers.hpp>
#include <tapegraph/graph/input_addresses.hpp>
#include <tapegraph/graph/input_rules.hpp>
#include <tapegraph/graph/kept_variables.hpp>
#include <tapegraph/graph/lifetimes.hpp>
#include <tapegraph/graph/lower.hpp>
#include <tapegraph/graph/numbered_draws.hpp>
#include <tapegraph/graph/view_offsets.hpp>
#include <tapegraph/ir/text.hpp>
#include <tapegraph/runtime/continuation.hpp>
#include <tapegraph/runtime/kept_memory.hpp>
#include <tapegraph/runtime/memory.hpp>
#include <tapegraph/runtime/scalar.hpp>

#include <cstring>
#include <optional>
#include <string>

namespace tapegraph::ir {

/// A graph bound to extents and memory: one arena with known offsets, and a straight line of kernel
/// calls. graph/program.hpp runs it.
///
/// Extents are bound when inputs are set. Memory is allocated only when they have grown
/// (graph/buffer_placement.hpp).
class bound_program {
public:
    /// `device` is where it runs; null for the CPU. With `external_memory` the caller provides that
    /// device's memory, and none is allocated.
    explicit bound_program(const program_view& view, runtime::device_runtime* device, bool external_memory = false);

    // Defined outside the class, because every program that links the component would compile it
    // here.
    ~bound_program();

    const program_view& view() const { return *view_; }
    runtime::device_runtime* device() const { return runs_on_; }
    /// The mode of a GPU's float products if the program was made under a math_mode_scope;
    /// otherwise the mode of the thread that runs it applies.
    std::optional<tapegraph::math_mode> math_mode() const { return math_mode_; }
    std::size_t arena_bytes() const { return arena_.size(); }

    /// Feeds input `index`. The memory must stay valid while the program runs. Throws shape_error or dtype_error.
    void set_input(int index, const buffer_view& value);

    /// Sets a scalar parameter (a learning rate).
    void set_parameter(int index, double value);

    /// Copies the parameters of another program of the same view.
    void copy_parameters(const bound_program& other);

    /// Sets a variable's memory. Its extents are constants of the program. `mark` tells whether the
    /// elements have changed, and lives as long as they do; null: nobody tells.
    void set_variable(int index, void* data, runtime::content_mark* mark = nullptr);

    /// A variable's element type and extents.
    buffer_view variable(int index) const;

    /// Makes kernels write output `index` to the caller's memory instead of the arena, until
    /// recall_outputs(). Returns false where the output is not a whole buffer of the arena, shares
    /// its buffer with another output, or is on a device. Extents must be bound.
    bool place_output(int index, void* to);
    void recall_outputs();

    /// Requires inputs to be fed again before the next run (in sessions, every run names its
    /// feeds).
    void forget_inputs();

    /// Plans for the extents that are set, without running.
    void bind();

    /// The operands and results of a kernel call, with the current extents.
    const kernel_call& call_of(int step) const { return steps_[static_cast<std::size_t>(step)].call; }

    /// The place of a node's value in the plan, for reports, once extents are bound: its offset in
    /// the arena (-1: elsewhere), the steps that compute it and read it last, and the variable it
    /// is written into (-1: none).
    struct arena_slot {
        std::int64_t offset = -1;
        int birth = -1, death = -1, variable = -1;
    };
    arena_slot arena_slot_of(int id) const;
    /// A node's current element type, extents and address.
    const buffer_view& value_of(int id) const { return values_[static_cast<std::size_t>(id)]; }
    /// Bytes that a step will keep of variables between runs (runtime/kept_memory.hpp).
    std::size_t kept_bytes(int step) const {
        const auto& call = call_of(step);
        return call.kept == nullptr ? 0 : call.kept->announced();
    }
    /// Bytes of scratch memory reserved for a step.
    std::size_t scratch_bytes(int step) const { return placement_.scratch_bytes(step); }

protected:
    struct copy {
        void* to;
        const void* from;
        std::size_t bytes;
    };

    int root(int id) const { return view_->alias[id]; }

    void bind_extents();

    void bind_input(int index);

    void place_buffers();

    void build_steps();

    // Says that variables which the program updates have changed.
    void mark_updates() { kept_.mark_updates(*view_); }

    // Writes the current addresses into every call.
    void connect();

    // Finds the elementwise calls that may run inside the call before them.
    void find_continuations();

    const program_view* view_;
    // The device whose memory it has, and the device whose kernels it calls; null: the CPU
    runtime::device_runtime *device_, *runs_on_;
    std::optional<tapegraph::math_mode> math_mode_;
    // Set by the caller that runs this within another program; -1: from the extents of inputs
    numbered<std::int64_t> given_symbols_;
    numbered<std::int64_t> symbols_;
    numbered<buffer_view> values_, operands_, outputs_;
    numbered<void*> given_; // per node: the destination of an output that does not go into the arena
    numbered<kernel_step> steps_;
    numbered<runtime::continuation> continuations_; // per step: what may run inside it
    numbered<copy> copies_;
    input_addresses input_addresses_;
    lifetimes live_;
    view_offsets offsets_of_views_;
    buffer_placement placement_;
    extent_table table_;
    formula_numbers formula_numbers_;
    memory_block numbers_, device_numbers_, arena_;
    numbered<fed_input> fed_;
    captured_steps captured_;
    kept_variables kept_;
    numbered_draws draws_;
    random_state* random_ = nullptr;
    int on_host_ = 0; // number of steps for which a device has no kernel
    const variable_entry* missing_variable_ = nullptr;
    bool bound_ = false, pointers_changed_ = true, moved_ = true;
};

#if TG_DEFINES_FOR_HOST(graph)

TG_DEFINITION bound_program::bound_program(const program_view& view, runtime::device_runtime* device,
                                           bool external_memory)
    : view_(&view),
      device_(external_memory ? nullptr : device),
      runs_on_(device),
      math_mode_(tapegraph::detail::scoped_math_mode()),
      given_symbols_(static_cast<std::size_t>(view.atoms.size()), -1),
      symbols_(given_symbols_),
      values_(static_cast<std::size_t>(view.nodes.size())),
      given_(values_.size(), nullptr),
      fed_(static_cast<std::size_t>(view.inputs.size())),
      captured_(device_),
      kept_(view.variables.size()) {
    for (int i = 0; i < view.nodes.size(); ++i) {
        values_[i].type = view.nodes[i].type;
        values_[i].rank = view.nodes[i].rank;
        values_[i].memory = runtime::memory_of(device);
    }
    // Numbers that change per step: parameters, followed by the state of random kernels.
    const std::size_t bytes = fed_.size() * runtime::alignment + sizeof(random_state);
    numbers_.reserve(nullptr, bytes, "numbers");
    if (device_ != nullptr) device_numbers_.reserve(device_, bytes, "numbers of a program");
    std::byte* const numbers = (device_ == nullptr ? numbers_ : device_numbers_).data();
    for (int i = 0; i < view.inputs.size(); ++i)
        if (view.inputs[i].scalar_parameter)
            values_[view.inputs[i].node].data = numbers + i * static_cast<int>(runtime::alignment);
    random_ = reinterpret_cast<random_state*>(numbers + bytes - sizeof(random_state));
    for (const auto& atom : view.atoms) table_.atoms.push_back(atom);
    for (const auto& monomial : view.monomials) table_.monomials.push_back(monomial);
    for (const auto& polynomial : view.polynomials) table_.polynomials.push_back(polynomial);
    live_ = lifetimes(view);
}

TG_DEFINITION void bound_program::set_input(int index, const buffer_view& value) {
    check_input_kind(*view_, index, value);
    buffer_view& target = values_[view_->inputs[index].node];
    for (int axis = 0; axis < value.rank; ++axis) {
        if (target.extents[axis] != value.extents[axis]) bound_ = false;
        target.extents[axis] = value.extents[axis];
    }
    if (device_ == nullptr) {
        target.data = value.data;
        if (!bound_ || pointers_changed_ || !input_addresses_.move(index, value.data, offsets_of_views_))
            pointers_changed_ = true;
        return;
    }
    fed_input& fed = fed_[index];
    fed.from = value;
    moved_ = fed.memory.reserve(device_, value.bytes() + 1, "input of a program") || moved_;
    pointers_changed_ = pointers_changed_ || target.data != fed.memory.data();
    target.data = fed.memory.data();
}

TG_DEFINITION void bound_program::set_parameter(int index, double value) {
    buffer_view number = values_[view_->inputs[index].node];
    number.data = numbers_.data() + index * static_cast<int>(runtime::alignment);
    runtime::store_scalar(number, value);
}

TG_DEFINITION void bound_program::copy_parameters(const bound_program& other) {
    std::memcpy(numbers_.data(), other.numbers_.data(), numbers_.size());
}

TG_DEFINITION void bound_program::set_variable(int index, void* data, runtime::content_mark* mark) {
    kept_.set_mark(index, mark);
    buffer_view& target = values_[view_->variables[index].node];
    pointers_changed_ = pointers_changed_ || target.data != data;
    moved_ = moved_ || target.data != data;
    target.data = data;
}

TG_DEFINITION buffer_view bound_program::variable(int index) const {
    buffer_view v = values_[view_->variables[index].node];
    const entry& e = view_->nodes[view_->variables[index].node];
    for (int axis = 0; axis < e.rank; ++axis) v.extents[axis] = view_->pool[e.dims + axis];
    return v;
}

TG_DEFINITION bool bound_program::place_output(int index, void* to) {
    const int shown = view_->outputs[index].node, id = root(shown);
    if (runs_on_ != nullptr || placement_.offset(id) < 0 || given_[id] != nullptr || shows_part(*view_, shown))
        return false;
    given_[id] = to;
    return pointers_changed_ = true;
}

TG_DEFINITION void bound_program::recall_outputs() {
    given_.assign(given_.size(), nullptr);
    connect(); // immediately, because the caller's memory may be gone later
}

TG_DEFINITION void bound_program::forget_inputs() {
    for (const input_entry& input : view_->inputs)
        if (!input.scalar_parameter) values_[input.node].data = nullptr;
    for (fed_input& fed : fed_) fed.from.data = nullptr;
    bound_ = false;
}

TG_DEFINITION void bound_program::bind() {
    const runtime::device_turn turn(device_);
    if (!bound_) bind_extents();
    if (pointers_changed_) connect();
}

TG_DEFINITION bound_program::arena_slot bound_program::arena_slot_of(int id) const {
    return {placement_.offset(id), live_.birth[id], live_.death[id], live_.variable_of[id]};
}

TG_DEFINITION void bound_program::bind_extents() {
    symbols_ = given_symbols_;
    for (int i = 0; i < view_->inputs.size(); ++i) bind_input(i);
    const extent_table& table = table_;
    const auto value_of = [&](int atom) {
        if (symbols_[atom] < 0)
            throw shape_error("extent '" + detail::symbol_text(*view_, table, atom) + "' is not given by any input");
        return symbols_[atom];
    };
    check_requirements(*view_, table, [&](int atom) { return symbols_[atom]; });
    for (int i = 0; i < view_->nodes.size(); ++i) {
        const entry& e = view_->nodes[i];
        if (e.is(descriptor_of<input_op>) && values_[i].data == nullptr) continue; // nothing reads it
        for (int axis = 0; axis < e.rank; ++axis) {
            const std::int64_t size = table.evaluate(view_->pool[e.dims + axis], value_of);
            if (e.is(descriptor_of<input_op>) && values_[i].data != nullptr)
                check_input_extent(view_->inputs[static_cast<int>(view_->words[e.words])], axis,
                                   values_[i].extents[axis], size);
            values_[i].extents[axis] = size;
        }
    }
    offsets_of_views_.find(*view_, live_, values_);
    moved_ = formula_numbers_.place(*view_, table, value_of, values_, device_, runs_on_ == nullptr) || moved_;
    place_buffers();
    bound_ = true;
    connect();
}

TG_DEFINITION void bound_program::bind_input(int index) {
    const input_entry& input = view_->inputs[index];
    if (values_[input.node].data == nullptr && live_.death[input.node] < 0) return; // nothing reads it
    if (values_[input.node].data == nullptr)
        throw argument_error("input '" + std::string(input.name) + "' has not been fed");
    bind_input_extents(*view_, table_, index, values_[input.node].extents, symbols_);
}

TG_DEFINITION void bound_program::place_buffers() {
    numbered<std::size_t>& scratch = placement_.needed_scratch();
    scratch.resize(static_cast<std::size_t>(view_->steps.size()));
    build_steps();
    for (int s = 0; s < view_->steps.size(); ++s) {
        const runtime::kernel_pair& kernel = view_->functions[view_->steps[s].kernel];
        scratch[s] = runs_on_ == nullptr        ? kernel.workspace(steps_[s].call)
                     : steps_[s].run != nullptr ? kernel.on_device.workspace(steps_[s].call)
                                                : 0;
    }
    if (placement_.valid(live_, values_)) return;
    arena_.reserve(device_, placement_.plan(*view_, live_, values_), "buffers of a program");
    placement_.take_plan();
    moved_ = true;
}

TG_DEFINITION void bound_program::build_steps() {
    const int steps = view_->steps.size();
    on_host_ = 0;
    if (steps_.empty() && steps > 0) {
        steps_.resize(static_cast<std::size_t>(steps));
        operands_.resize(static_cast<std::size_t>(view_->values.size()));
    }
    draws_.clear();
    for (int s = 0; s < steps; ++s) {
        const step_entry& step = view_->steps[s];
        kernel_step& target = steps_[s];
        for (int k = 0; k < step.inputs + step.outputs; ++k)
            operands_[step.first_value + k] = values_[view_->values[step.first_value + k]];
        const runtime::kernel_pair& kernel = view_->functions[step.kernel];
        target.run = runs_on_ == nullptr ? kernel.run : kernel.on_device.run;
        if (target.run == nullptr) ++on_host_;
        target.call.in = operands_.data() + step.first_value;
        target.call.inputs = step.inputs;
        target.call.out = target.call.in + step.inputs;
        target.call.outputs = step.outputs;
        target.call.attributes = view_->words.begin() + view_->nodes[step.node].words;
        draws_.note(target.call, *view_->nodes[step.node].op, table_, symbols_);
        target.call.domain = values_[step.domain];
        target.call.random = random_;
        target.call.symbols = symbols_.data();
        if (view_->interpreted.size() > 0) target.call.region = view_->interpreted[step.kernel];
        target.call.kept = runs_on_ == nullptr ? kept_.of_step(*view_, s, values_) : nullptr;
        if (runs_on_ == nullptr) continue;
        target.call.stream = runs_on_->stream();
        target.call.fault = runs_on_->fault();
    }
    draws_.number(0, random_);
}

TG_DEFINITION void bound_program::connect() {
    missing_variable_ = nullptr; // a program may be planned before its variables have memory
    for (const variable_entry& v : view_->variables)
        if (values_[v.node].data == nullptr) missing_variable_ = &v;
    for (int i = 0; i < view_->nodes.size(); ++i) {
        if (const std::int64_t offset = placement_.offset(i); offset >= 0)
            values_[i].data = given_[i] != nullptr ? given_[i] : arena_.data() + offset;
        if (live_.variable_of[i] >= 0) values_[i].data = values_[view_->variables[live_.variable_of[i]].node].data;
    }
    for (int i = 0; i < view_->nodes.size(); ++i)
        if (root(i) != i) values_[i].data = offsets_of_views_.address(values_[root(i)].data, i);
    for (int k = 0; k < view_->values.size(); ++k) operands_[k].data = values_[view_->values[k]].data;
    for (int s = 0; s < view_->steps.size(); ++s)
        steps_[s].call.workspace = arena_.data() + placement_.scratch_offset(s);
    copies_.clear();
    for (const assignment_entry& update : view_->assignments) {
        const buffer_view& to = values_[view_->variables[update.variable].node];
        const buffer_view& from = values_[update.node];
        if (to.data != from.data) copies_.push_back({to.data, from.data, from.bytes()});
    }
    outputs_.resize(static_cast<std::size_t>(view_->outputs.size()));
    for (int i = 0; i < view_->outputs.size(); ++i) outputs_[i] = values_[view_->outputs[i].node];
    if (moved_) captured_.clear(); // they contain addresses
    if (input_addresses_.empty() && device_ == nullptr) input_addresses_.find(*view_, values_, operands_, outputs_);
    if (runs_on_ == nullptr) find_continuations();
    pointers_changed_ = moved_ = false;
}

TG_DEFINITION void bound_program::find_continuations() {
    continuations_.assign(steps_.size(), {});
    for (int s = 0; s + 1 < view_->steps.size(); ++s) {
        const auto kind_of = [&](int step) {
            return static_cast<kernel_kind>(view_->kernels[view_->steps[step].kernel].kind);
        };
        if (kind_of(s) != kernel_kind::operation || kind_of(s + 1) != kernel_kind::region) continue;
        if (runtime::continuation::fits(steps_[s].call, placement_.scratch_bytes(s), steps_[s + 1].call))
            continuations_[s] = {steps_[s + 1].run, &steps_[s + 1].call};
    }
}

TG_DEFINITION bound_program::~bound_program() = default;

#endif

} // namespace tapegraph::ir
