#pragma once

#include <tapegraph/core/fixed_string.hpp>
#include <tapegraph/expr/operation.hpp>
#include <tapegraph/expr/transforms.hpp>

/// print, check_finite and check observe values while a model runs. In both modes they run in
/// program order, every time the model runs, whether or not anything reads their result; nothing
/// else changes.

namespace tapegraph {

/// Base of operations that run for their side effects.
struct effect_op {
    static constexpr operation_kind kind = operation_kind::effect;
    static constexpr int arity = 1;
    using attributes = no_attributes;
    static constexpr void infer(const attributes&, inference& io) { io.type = dtype::boolean; }
};

/// Identifies the effect. Kernels are selected by it, because nvcc 13 finds no specialisation for a
/// label.
enum class effect_kind : std::uint8_t { print, check_finite, check };
/// An effect whose operation has a text, such as the label that `print` shows.
template <class Op>
concept labelled_effect = requires {
    Op::effect;
    Op::label;
};

template <fixed_string Label>
struct print_op : effect_op {
    static constexpr effect_kind effect = effect_kind::print;
    static constexpr std::string_view name = "print";
    static constexpr std::string_view label = Label.view();
};

template <fixed_string Label>
struct check_finite_op : effect_op {
    static constexpr effect_kind effect = effect_kind::check_finite;
    static constexpr std::string_view name = "check_finite";
    static constexpr std::string_view label = Label.view();
    static constexpr void infer(const attributes& a, inference& io) {
        const dtype type = io.in[0].type;
        effect_op::infer(a, io);
        io.require(type == dtype::f32 || type == dtype::f64, "check_finite: the operand must be f32 or f64");
    }
};

template <fixed_string Message>
struct check_op : effect_op {
    static constexpr effect_kind effect = effect_kind::check;
    static constexpr std::string_view name = "check";
    static constexpr std::string_view label = Message.view();
    static constexpr void infer(const attributes& a, inference& io) {
        const dtype type = io.in[0].type;
        effect_op::infer(a, io);
        io.require(type == dtype::boolean, "check: the condition must be bool");
    }
};

/// Prints label, element type, shape and values (long axes abbreviated) to stderr, or to the sink
/// of set_print_sink, and returns x: `h = tg::print<"hidden">(h)`.
template <fixed_string Label, tensor_like X>
constexpr auto print(const X& x, std::source_location where = std::source_location::current()) {
    const auto value = eval(x, where);
    mode_transforms<mode_of_t<X>>::template effect<print_op<Label>>(value, where);
    return value;
}

/// Throws numeric_error naming the label and the first element that is NaN or infinite; returns x.
template <fixed_string Label, tensor_like X>
constexpr auto check_finite(const X& x, std::source_location where = std::source_location::current()) {
    const auto value = eval(x, where);
    mode_transforms<mode_of_t<X>>::template effect<check_finite_op<Label>>(value, where);
    return value;
}

/// Throws check_error with the message when an element of the condition is false: `tg::check<"rates are positive">(r > 0)`.
template <fixed_string Message, tensor_like X>
constexpr void check(const X& condition, std::source_location where = std::source_location::current()) {
    mode_transforms<mode_of_t<X>>::template effect<check_op<Message>>(eval(condition, where), where);
}

} // namespace tapegraph
