#pragma once

#include <tapegraph/eager/seal.hpp>
#include <tapegraph/expr/transforms.hpp>

/// Function transforms in eager mode: records of their own on the tape.

namespace tapegraph {

namespace detail {

/// While one lives, nothing is recorded.
class recording_pause {
public:
    recording_pause() : before_(tape_storage::instance().pause()) {}
    recording_pause(const recording_pause&) = delete;
    recording_pause& operator=(const recording_pause&) = delete;
    ~recording_pause() { tape_storage::instance().unpause(before_); }

private:
    int before_;
};

/// A function with a derivative of the user's own, on the tape.
template <class B, class Y, class... X>
struct custom_record : tape_record {
    B backward_function;
    std::tuple<X...> inputs;
    Y output;

    custom_record(const B& b, const X&... x) : backward_function(b), inputs(x...) {}
    static void destroy(tape_record& base) { static_cast<custom_record&>(base).~custom_record(); }
    static void backward(tape_record& base, sweep& walk, const any_tensor& adjoint) {
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

private:
    template <class Flow, class Input>
    static void flow(sweep& walk, const Flow& value, const Input& input) {
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

} // namespace detail

template <>
struct mode_transforms<eager> {
    template <class F, class B, class... T>
    static auto custom(const F& f, const B& backward, std::source_location where, const tensor<T>&... x) {
        auto value = [&] {
            const detail::recording_pause pause;
            return eval(f(x...), where);
        }();
        value.set_place({}); // forward may have returned an operand
        auto& tape = detail::tape_storage::instance();
        if ((tape.tracks(x) || ...)) {
            tape_place place;
            auto& r = tape.append<detail::custom_record<B, decltype(value), tensor<T>...>>(place, backward, x...);
            value.set_place(place);
            r.output = value;
        }
        return value;
    }

    [[noreturn]] static void refuse(const any_tensor&, const char* what, const shape& first, const shape& second) {
        throw shape_error(std::string(what) + ": " + to_string(first) + ", " + to_string(second));
    }
};

} // namespace tapegraph
