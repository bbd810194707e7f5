#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/graph/bound_program.hpp>
#include <tapegraph/graph/placement_log.hpp>
#include <tapegraph/runtime/call_observer.hpp>
#include <tapegraph/runtime/finite.hpp>
#include <tapegraph/runtime/perform.hpp>

#include <memory>
#include <vector>

namespace tapegraph::ir {

/// A planned graph, ready to run on the CPU or a GPU. On a GPU the second run with the same extents
/// captures the steps, and later runs replay them as one device graph.
class program : public bound_program {
    using base = bound_program;
    using base::continuations_;
    using base::missing_variable_;
    using base::symbols_, base::fed_, base::numbers_, base::device_numbers_, base::captured_, base::on_host_;
    using base::view_, base::device_, base::values_, base::operands_, base::outputs_, base::steps_, base::copies_;
    using typename base::copy;

public:
    /// `device` is where it runs; null for the CPU.
    explicit program(const program_view& view, runtime::device_runtime* device = runtime::current_runtime());
    ~program();

    /// With `check`, throws numeric_error naming the first operation whose result is not finite;
    /// variables that were not updated by then keep their values.
    void run(const random_state& random, bool check = false);

    /// Like run, with `f(step, run_step)` around every kernel call: what profilers use.
    template <class F>
    void run_each(const random_state& random, const F& f) {
        const runtime::device_turn turn(device_);
        const math_mode_scope in(this->math_mode());
        begin(random);
        for (std::size_t s = 0; s < steps_.size(); ++s) f(static_cast<int>(s), [&] { run_step(s); });
        finish();
    }
    /// Sends a scalar output to the host without waiting for it. Each of the last 256 sent from a
    /// device can be read by its number.
    std::int64_t publish_output(int index);
    double published_output(int index, std::int64_t number);

    /// A scalar output as a number; waits for a device.
    double scalar_output(int index) const;
    /// The first `count` scalar outputs (at most eight) as numbers; waits for a device once.
    void scalar_outputs(int count, double* values) const;

    /// The value of output `index`, in the CPU's memory, valid until the next run. Waits for a
    /// device.
    const buffer_view& output(int index) const;
    /// The value of output `index`, in the memory of the device that the program runs on.
    const buffer_view& device_output(int index) const { return outputs_[static_cast<std::size_t>(index)]; }

private:
    struct host_output {
        memory_block memory;
        buffer_view view;
    };

    void begin(const random_state& random);
    void run_step(std::size_t s);
    // Runs step s and, if that can be done inside it, the next one. Returns the last step that ran.
    std::size_t run_with_next(std::size_t s);
    // Runs step by step, also on a device that has captured the steps.
    void run_observed(runtime::call_observer& who, bool check);
    void finish();

    void check_step(int s) const;

    std::int64_t first_not_finite(const buffer_view& v) const;

    mutable std::vector<std::unique_ptr<host_output>> host_outputs_;
    bool placement_logged_ = false;
};

#if TG_DEFINES_FOR_HOST(graph)

TG_DEFINITION program::program(const program_view& view, runtime::device_runtime* device) : base(view, device) {}
TG_DEFINITION program::~program() = default;

TG_DEFINITION void program::run(const random_state& random, bool check) {
    const runtime::device_turn turn(device_);
    const runtime::at_work here(device_ == nullptr); // also between its kernels
    const math_mode_scope in(this->math_mode());
    begin(random);
    if (runtime::call_observer* const who = runtime::observer(); who != nullptr) return run_observed(*who, check);
    const auto launch = [&] {
        for (std::size_t s = 0; s < steps_.size(); ++s)
            if (check) {
                run_step(s);
                check_step(static_cast<int>(s));
            } else {
                s = run_with_next(s);
            }
        finish();
    };
    if (device_ == nullptr || check || on_host_ > 0 || !runtime::capture_steps())
        launch();
    else
        captured_.run(symbols_, launch);
}

TG_DEFINITION std::int64_t program::publish_output(int index) {
    return device_->publish(outputs_[static_cast<std::size_t>(index)].data,
                            outputs_[static_cast<std::size_t>(index)].bytes());
}

TG_DEFINITION double program::published_output(int index, std::int64_t number) {
    buffer_view v = outputs_[static_cast<std::size_t>(index)];
    v.data = const_cast<void*>(device_->published(number));
    return runtime::load_scalar(v);
}

TG_DEFINITION double program::scalar_output(int index) const {
    double value = 0;
    runtime::load_scalars(device_, &outputs_[static_cast<std::size_t>(index)], 1, &value);
    return value;
}

TG_DEFINITION void program::scalar_outputs(int count, double* values) const {
    runtime::load_scalars(device_, outputs_.data(), count, values);
}

TG_DEFINITION const buffer_view& program::output(int index) const {
    const auto i = static_cast<std::size_t>(index);
    if (device_ == nullptr) return outputs_[i];
    host_outputs_.resize(outputs_.size());
    if (host_outputs_[i] == nullptr) host_outputs_[i] = std::make_unique<host_output>();
    host_output& host = *host_outputs_[i];
    host.memory.reserve(nullptr, outputs_[i].bytes() + 1, "output");
    host.view = outputs_[i];
    host.view.memory = 0;
    host.view.data = host.memory.data();
    device_->download(host.view.data, outputs_[i].data, outputs_[i].bytes());
    return host.view;
}

TG_DEFINITION void program::begin(const random_state& random) {
    this->bind();
    if (!placement_logged_ && runtime::placement_is_logged()) {
        detail::log_placement_of(*this);
        placement_logged_ = true;
    }
    if (missing_variable_ != nullptr)
        throw argument_error("variable '" + std::string(missing_variable_->name) + "' has no memory");
    this->mark_updates();
    auto* const numbers = reinterpret_cast<random_state*>(numbers_.data() + numbers_.size() - sizeof(random_state));
    *numbers = random;
    if (device_ == nullptr) return;
    device_->enter();
    device_->upload(device_numbers_.data(), numbers_.data(), numbers_.size());
    for (std::size_t i = 0; i < fed_.size(); ++i) {
        const buffer_view& from = fed_[i].from;
        if (from.data == nullptr || from.bytes() == 0) continue;
        if (from.memory == 0)
            device_->feed(fed_[i].memory.data(), from.data, from.bytes());
        else
            device_->copy(fed_[i].memory.data(), from.data, from.bytes());
    }
}

TG_DEFINITION void program::run_step(std::size_t s) {
    if (steps_[s].run != nullptr) return steps_[s].run(steps_[s].call);
    const auto* const random =
        reinterpret_cast<const random_state*>(numbers_.data() + numbers_.size() - sizeof(random_state));
    runtime::run_on_host(*device_, view_->functions[view_->steps[static_cast<int>(s)].kernel], steps_[s].call, random);
}

TG_DEFINITION std::size_t program::run_with_next(std::size_t s) {
    if (s >= continuations_.size() || continuations_[s].run == nullptr) return run_step(s), s;
    runtime::continuation next = continuations_[s];
    kernel_call& call = steps_[s].call;
    call.next = &next;
    try {
        run_step(s);
    } catch (...) {
        call.next = nullptr;
        throw;
    }
    call.next = nullptr;
    return next.done ? s + 1 : s;
}

TG_DEFINITION void program::run_observed(runtime::call_observer& who, bool check) {
    const int steps = static_cast<int>(steps_.size());
    for (int s = 0; s < steps; ++s) {
        who.begin({runtime::call_part::program, &this->call_of(s), this, s});
        run_step(static_cast<std::size_t>(s));
        who.end();
        if (check) check_step(s);
    }
    if (copies_.empty()) return this->mark_updates();
    const kernel_call none;
    who.begin({runtime::call_part::program, &none, this, steps});
    finish();
    who.end();
}

TG_DEFINITION void program::finish() {
    for (const copy& c : copies_) {
        if (device_ == nullptr)
            std::memcpy(c.to, c.from, c.bytes);
        else
            device_->copy(c.to, c.from, c.bytes);
    }
    this->mark_updates(); // again: a host function in the step may have predicted meanwhile
}

TG_DEFINITION void program::check_step(int s) const {
    const step_entry& step = view_->steps[s];
    const bool fused = view_->kernels[step.kernel].kind != static_cast<int>(kernel_kind::operation);
    int culprit = -1, result = -1; // of several results of a fused kernel, the one that the model computes first
    std::int64_t at = -1;
    for (int k = step.inputs; k < step.inputs + step.outputs; ++k) {
        const std::int64_t found = first_not_finite(operands_[step.first_value + k]);
        const int written = fused ? view_->values[step.first_value + k] : step.node;
        if (found < 0 || (culprit >= 0 && culprit <= written)) continue;
        culprit = written, result = k, at = found;
    }
    if (culprit < 0) return;
    const buffer_view& v = operands_[step.first_value + result];
    const entry& e = view_->nodes[culprit];
    detail::text_builder where = detail::line_text(view_->lines[e.line]), scope;
    detail::scope_path(scope, view_->scopes, e.scope);
    throw numeric_error(std::string(e.op->name) + ": element " + std::to_string(at) + " of a result of shape " +
                        to_string(shape(v.rank, v.extents)) + " is not finite, in scope '" + std::string(scope.view()) +
                        "' at " + std::string(where.view()));
}

TG_DEFINITION std::int64_t program::first_not_finite(const buffer_view& v) const {
    if (device_ == nullptr) return runtime::first_not_finite(v);
    const runtime::arena host(v.bytes() + 1);
    device_->download(host.data(), v.data, v.bytes());
    buffer_view there = v;
    there.data = host.data();
    return runtime::first_not_finite(there);
}

#endif

} // namespace tapegraph::ir
