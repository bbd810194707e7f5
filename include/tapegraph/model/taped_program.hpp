#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/function_reference.hpp>
#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/eager/jvp.hpp>
#include <tapegraph/eager/tape.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/passes/effects.hpp>
#include <tapegraph/ir/gradient.hpp>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

/// A compiled program under a gradient_tape: one record, whose derivative is a compiled program,
/// too.

namespace tapegraph {

namespace ir {

/// Continues `Forward`. Its outputs are the derivatives by Forward's floating-point inputs, in
/// their order; Forward's inputs are followed by the adjoints of Forward's floating-point outputs.
/// The forward pass is recomputed.
template <class Forward>
struct input_gradient_trace {
    using previous = Forward;
    static constexpr void build(trace& t) {
        list<int> sources, results, adjoints;
        for (const input_entry& input : t.inputs)
            if (is_floating(t.nodes[input.node].type)) sources.push_back(input.node);
        for (const output_entry& output : t.outputs)
            if (is_floating(t.nodes[output.node].type)) results.push_back(output.node);
        for (const int y : results) adjoints.push_back(t.input("adjoint", t.nodes[y].type, t.dims(y)));
        const list<int> found = pullback(t, results, adjoints, sources);
        t.outputs.clear();
        for (int k = 0; k < sources.size(); ++k)
            t.outputs.push_back({"gradient", found[k] >= 0 ? found[k] : detail::zeros_like(t, sources[k])});
        drop_effects(t); // the forward program has run them
    }
};

/// The derivative's program. If there is none, `view` is null and `refusal` gives the reason.
struct input_gradient {
    const program_view* view = nullptr;
    const char* refusal = nullptr;
};

/// No derivative is compiled for larger programs: it might exceed the compiler's limits for a
/// constant evaluation, where the program itself does not.
inline constexpr int most_nodes_differentiated = 2000;

template <class Forward>
constexpr input_gradient input_gradient_of() {
    using forward = traced_stage<Forward>;
    if constexpr (forward::value.differentiated) {
        return {nullptr, "it takes derivatives itself"};
    } else if constexpr (forward::value.used.nodes > most_nodes_differentiated) {
        return {nullptr, "it has more than 2000 nodes"};
    } else {
        using backward = traced_stage<input_gradient_trace<Forward>>;
        if constexpr (!well_formed<backward>)
            return {nullptr, backward::value.error.what};
        else
            return {&compile_program<input_gradient_trace<Forward>>(), nullptr};
    }
}

} // namespace ir

namespace detail {

/// A pool of idle programs of one kind. Every call takes one of its own, so that calls may overlap.
class program_pool {
public:
    /// Calls `f(program)` with a program that no other call is running. One that has thrown is not
    /// used again.
    void with(const ir::program_view& view, function_reference<void(ir::program&)> f);

    static std::shared_ptr<program_pool> make();
    program_pool();
    program_pool(const program_pool&) = delete;
    program_pool& operator=(const program_pool&) = delete;
    ~program_pool();

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<ir::program>> idle_;
};

/// The tape record of a call of a compiled program: all that its derivative reads.
struct taped_call {
    ir::input_gradient gradient;
    std::shared_ptr<program_pool> programs; ///< of the derivative
    runtime::device_runtime* device = nullptr;
    math_mode mode = current_math_mode();
    random_state random{};
    std::vector<any_tensor> inputs, variables, outputs; ///< outputs hold only shapes

    /// Called after `p` has run on `arguments`.
    template <class Program>
    taped_call(const Program& p, const random_state& numbers, std::vector<any_tensor> arguments)
        : device(p.device()), random(numbers), inputs(std::move(arguments)) {
        for (int k = 0; k < p.view().outputs.size(); ++k) {
            const buffer_view& y = p.device_output(k);
            outputs.push_back(any_tensor::outline_of(y.type, shape(y.rank, y.extents)));
        }
    }
};

/// Placeholder for a missing derivative; requesting it throws the reason.
struct refusing_record : tape_record {
    std::string what;
    std::vector<any_tensor> operands;

    static void destroy(tape_record& base) { static_cast<refusing_record&>(base).~refusing_record(); }
    static void backward(tape_record& base, backward_pass& walk, const any_tensor&);
    static bool jvp(tape_record& base, const jvp_pass& walk, any_tensor&);

private:
    template <class Walk, class Predicate>
    void throw_if_any(const Walk& walk, Predicate needs_derivative) const {
        for (const any_tensor& t : operands)
            if ((walk.*needs_derivative)(t)) throw argument_error(what);
    }
};

/// Puts a result on the tape whose derivative by `operands` would have to pass through an operation
/// without one.
void refuse_derivative(any_tensor& result, const std::vector<const any_tensor*>& operands, std::string what);

/// The tape record of the program and its first output.
struct program_record : tape_record {
    taped_call call;
    tape_index place;

    explicit program_record(const taped_call& c) : call(c) {}
    static void destroy(tape_record& base) { static_cast<program_record&>(base).~program_record(); }

    static void backward(tape_record& base, backward_pass& walk, const any_tensor& adjoint);

    static bool jvp(tape_record& base, const jvp_pass& walk, any_tensor&);

private:
    // The adjoints of the floating-point outputs; zeros where there are none.
    std::vector<any_tensor> adjoints(const backward_pass& walk, const any_tensor& first) const;
    static any_tensor copy_of(const buffer_view& from, runtime::device_runtime* device);
};

/// The tape record of a further output: keeps its adjoint for the program's record, which comes
/// later in the walk.
struct output_record : tape_record {
    tape_index program, own;

    static void destroy(tape_record&) {}
    static void backward(tape_record& base, backward_pass& walk, const any_tensor& adjoint);
    static bool jvp(tape_record&, const jvp_pass&, any_tensor&) { return false; } // the program's record handles it
};

/// Puts a call on the tape. Output k is k places after the returned one.
tape_index record_program(const taped_call& call);

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION std::shared_ptr<program_pool> program_pool::make() { return std::make_shared<program_pool>(); }
TG_DEFINITION program_pool::program_pool() = default;
TG_DEFINITION program_pool::~program_pool() = default;
TG_DEFINITION void program_pool::with(const ir::program_view& view, function_reference<void(ir::program&)> f) {
    std::unique_ptr<ir::program> p;
    {
        const std::lock_guard lock(mutex_);
        for (auto& each : idle_)
            if (each->device() == runtime::current_runtime()) {
                p = std::move(each);
                std::swap(each, idle_.back());
                idle_.pop_back();
                break;
            }
    }
    if (!p) p = std::make_unique<ir::program>(view);
    f(*p);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(p));
}

TG_DEFINITION void refusing_record::backward(tape_record& base, backward_pass& walk, const any_tensor&) {
    static_cast<refusing_record&>(base).throw_if_any(walk, &backward_pass::wants);
}

TG_DEFINITION bool refusing_record::jvp(tape_record& base, const jvp_pass& walk, any_tensor&) {
    static_cast<refusing_record&>(base).throw_if_any(walk, &jvp_pass::find);
    return false;
}

TG_DEFINITION void refuse_derivative(any_tensor& result, const std::vector<const any_tensor*>& operands,
                                     std::string what) {
    tape_storage& tape = tape_storage::instance();
    std::vector<any_tensor> tracked;
    for (const any_tensor* t : operands)
        if (tape.tracks(*t)) tracked.push_back(t->outline());
    if (tracked.empty()) return;
    tape_index place;
    auto& r = tape.append<refusing_record>(place);
    r.what = std::move(what);
    r.operands = std::move(tracked);
    result.set_tape_index(place);
}

TG_DEFINITION void program_record::backward(tape_record& base, backward_pass& walk, const any_tensor& adjoint) {
    auto& self = static_cast<program_record&>(base);
    taped_call& call = self.call;
    if (!adjoint.has_storage()) walk.visit(self.place, false); // called by another output; this one has no adjoint
    bool wanted = false;
    for (const any_tensor& x : call.inputs) wanted = wanted || (is_floating(x.type()) && walk.wants(x));
    if (!wanted) return;
    if (call.gradient.view == nullptr)
        throw argument_error(std::string("gradient_tape: a compiled program has no gradient on the tape: ") +
                             call.gradient.refusal + "; call it in eager mode");
    std::vector<any_tensor> flows;
    std::vector<any_tensor> arrived = self.adjoints(walk, adjoint);
    {
        const device_scope on(call.device);
        const math_mode_scope in(call.mode);
        call.programs->with(*call.gradient.view, [&](ir::program& p) {
            for (std::size_t i = 0; i < call.variables.size(); ++i)
                p.set_variable(static_cast<int>(i), call.variables[i].view().data, call.variables[i].content());
            int index = 0;
            for (const any_tensor& x : call.inputs) p.set_input(index++, x.view());
            for (const any_tensor& dy : arrived) p.set_input(index++, dy.view());
            p.run(call.random);
            int output = 0;
            for (const any_tensor& x : call.inputs) {
                flows.emplace_back();
                if (!is_floating(x.type())) continue;
                if (walk.wants(x)) flows.back() = copy_of(p.device_output(output), call.device);
                ++output;
            }
        });
    }
    std::vector<const any_tensor*> operands; // operands of this derivative, in case it is being recorded
    for (const auto* all : {&call.inputs, &arrived})
        for (const any_tensor& t : *all) operands.push_back(&t);
    for (std::size_t i = 0; i < flows.size(); ++i) {
        if (!flows[i].has_storage()) continue;
        refuse_derivative(flows[i], operands,
                          "gradient_tape: the gradient of a compiled program has no derivative on the tape; take both "
                          "inside the program, or call it in eager mode");
        walk.hand(call.inputs[i], std::move(flows[i]));
    }
}

TG_DEFINITION bool program_record::jvp(tape_record& base, const jvp_pass& walk, any_tensor&) {
    for (const any_tensor& x : static_cast<program_record&>(base).call.inputs)
        if (walk.find(x) != nullptr)
            throw argument_error(
                "jvp: a compiled program on the tape has no forward mode; compile its jvp, or call it in "
                "eager mode");
    return false;
}

TG_DEFINITION std::vector<any_tensor> program_record::adjoints(const backward_pass& walk,
                                                               const any_tensor& first) const {
    std::vector<any_tensor> all;
    for (std::size_t k = 0; k < call.outputs.size(); ++k) {
        const any_tensor& like = call.outputs[k];
        if (!is_floating(like.type())) continue;
        const any_tensor* const found = k == 0 ? &first : walk.find({place.serial, place.index + static_cast<int>(k)});
        if (found != nullptr && found->has_storage()) {
            all.push_back(*found);
            continue;
        }
        any_tensor& zero = all.emplace_back(like.type(), like.shape());
        std::memset(zero.write(), 0, zero.outline_view().bytes());
    }
    return all;
}

TG_DEFINITION any_tensor program_record::copy_of(const buffer_view& from, runtime::device_runtime* device) {
    any_tensor result(from.type, shape(from.rank, from.extents));
    const buffer_view to = result.view();
    if (device == nullptr)
        std::memcpy(to.data, from.data, from.bytes());
    else
        device->copy(to.data, from.data, from.bytes());
    return result;
}

TG_DEFINITION void output_record::backward(tape_record& base, backward_pass& walk, const any_tensor& adjoint) {
    auto& self = static_cast<output_record&>(base);
    walk.keep(self.own, adjoint);
    walk.visit(self.program, true);
}

TG_DEFINITION tape_index record_program(const taped_call& call) {
    tape_storage& tape = tape_storage::instance();
    tape_index first;
    tape.append<program_record>(first, call).place = first;
    for (std::size_t k = 1; k < call.outputs.size(); ++k) {
        tape_index own;
        auto& output = tape.append<output_record>(own);
        output.program = first;
        output.own = own;
    }
    return first;
}

#endif

} // namespace detail

} // namespace tapegraph
