#pragma once

#include <tapegraph/eager/checkpointed_run.hpp>
#include <tapegraph/eager/seal.hpp>
#include <tapegraph/expr/transforms.hpp>

/// Function transforms in eager mode. Each transform has its own kind of tape record.

namespace tapegraph {

namespace detail {

/// Pauses recording on this thread while it lives.
class recording_pause {
public:
    recording_pause() : before_(tape_storage::instance().pause()) {}
    recording_pause(const recording_pause&) = delete;
    recording_pause& operator=(const recording_pause&) = delete;
    ~recording_pause() { tape_storage::instance().unpause(before_); }

private:
    int before_;
};

/// The tape record of a function with a custom derivative.
template <class B, class Y, class... X>
struct custom_record : tape_record {
    B backward_function;
    std::tuple<X...> inputs;
    Y output;

    custom_record(const B& b, const X&... x) : backward_function(b), inputs(x...) {}
    static void destroy(tape_record& base) { static_cast<custom_record&>(base).~custom_record(); }
    static void backward(tape_record& base, backward_pass& walk, const any_tensor& adjoint) {
        auto& self = static_cast<custom_record&>(base);
        std::apply(
            [&](const auto&... x) {
                if (!(walk.wants(x) || ...)) return;
                const auto flows = call_backward(self.backward_function, Y(adjoint), self.output, x...);
                [&]<std::size_t... I>(std::index_sequence<I...>) {
                    (self.flow(walk, flow_at<I, sizeof...(X)>(flows), x), ...);
                }(std::index_sequence_for<X...>{});
            },
            self.inputs);
    }
    static bool jvp(tape_record& base, const jvp_pass& walk, any_tensor& tangent) {
        return tangent_by_going_back(static_cast<custom_record&>(base), walk, tangent);
    }

private:
    template <class Flow, class Input>
    static void flow(backward_pass& walk, const Flow& value, const Input& input) {
        if constexpr (!std::is_same_v<Flow, no_gradient_t>) {
            if (!walk.wants(input)) return;
            const auto sealed = eval(value);
            if (!(sealed.shape() == input.shape()) || sealed.type() != input.type())
                throw shape_error(std::string(wrong_flow) + ": " + name_of(sealed.type()) + to_string(sealed.shape()) +
                                  ", " + name_of(input.type()) + to_string(input.shape()));
            walk.add(input, sealed);
        }
    }
};

/// The tape record of a checkpointed function: its operands, and the function, which is run again
/// for the derivative.
template <class F, class... X>
struct checkpoint_record : tape_record {
    F f;
    std::tuple<X...> inputs;
    std::vector<std::int64_t> ordinals; // numbers of the random nodes of the first run

    checkpoint_record(const F& function, const std::vector<std::int64_t>& drawn, const X&... x)
        : f(function), inputs(x...), ordinals(drawn) {}
    static void destroy(tape_record& base) { static_cast<checkpoint_record&>(base).~checkpoint_record(); }
    static void backward(tape_record& base, backward_pass& walk, const any_tensor& adjoint) {
        auto& self = static_cast<checkpoint_record&>(base);
        tape_storage& tape = tape_storage::instance();
        const tape_storage::mark end = tape.end();
        const bool kept = tape.recording(); // this derivative is itself recorded, and reads the current records
        {
            const any_tensor value = self.run_again(kept);
            if (tape.knows(value.tape_index())) walk.run_within(value, adjoint, end.length);
        }
        if (!kept) tape.rewind(end);
    }

private:
    any_tensor run_again(bool recording) {
        struct recorded {
            explicit recorded(bool on) : started(on) {
                if (started) tape_storage::instance().resume();
            }
            ~recorded() {
                if (started) tape_storage::instance().stop();
            }
            bool started;
        };
        const recorded record(!recording);
        const checkpointed_run second(ordinals, true);
        return std::apply([&](const auto&... x) { return any_tensor(eval(f(x...))); }, inputs);
    }
};

} // namespace detail

template <>
struct mode_transforms<eager> {
    template <class F, class B, class... T>
    static auto custom(const F& f, const B& backward, std::source_location where, const tensor<T>&... x) {
        auto value = [&] {
            const detail::recording_pause pause;
            return eval(f(x...), where);
        }();
        value.set_tape_index({}); // forward may have returned an operand
        auto& tape = detail::tape_storage::instance();
        if ((tape.tracks(x) || ...)) {
            tape_index at;
            auto& r = tape.append<detail::custom_record<B, decltype(value), tensor<T>...>>(at, backward, x...);
            value.set_tape_index(at);
            r.output = value;
        }
        return value;
    }

    template <class F, class... T>
    static auto checkpoint(const F& f, std::source_location where, const tensor<T>&... x) {
        auto& tape = detail::tape_storage::instance();
        // Forward mode needs the operations inside.
        if (!tape.recording() || tape.forward_wanted()) return eval(f(x...), where);
        std::vector<std::int64_t> ordinals;
        auto value = [&] {
            const detail::recording_pause pause;
            const detail::checkpointed_run first(ordinals, false);
            return eval(f(x...), where);
        }();
        tape_index at; // f may read variables, so it is recorded whatever its operands are
        tape.append<detail::checkpoint_record<F, tensor<T>...>>(at, f, ordinals, x...);
        value.set_tape_index(at);
        return value;
    }

    template <class Op, class T>
    static void effect(const tensor<T>& x, std::source_location) {
        const operand_info operand{x.type(), x.shape()};
        inference io{&operand, 1, nullptr, x.type(), {}, nullptr};
        Op::infer({}, io);
        if (io.error != nullptr) throw dtype_error(std::string(io.error) + ", given " + name_of(x.type()));
        if (detail::checkpointed_run::repeats()) return; // the first run has done it
        const buffer_view in = x.view();
        bool done = false;
        const buffer_view out{&done, dtype::boolean};
        kernel_call call;
        call.in = &in;
        call.inputs = 1;
        call.out = &out;
        call.outputs = 1;
        constexpr runtime::kernel_pair kernel = runtime::kernel_for<Op, T>();
        runtime::perform(kernel, call, Op::name);
    }

    [[noreturn]] static void refuse(const any_tensor&, const char* what, const shape& first, const shape& second) {
        throw shape_error(std::string(what) + ": " + to_string(first) + ", " + to_string(second));
    }
};

} // namespace tapegraph
