#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/print.hpp>
#include <tapegraph/ops/effect/effect.hpp>
#include <tapegraph/runtime/finite.hpp>
#include <tapegraph/runtime/kernel.hpp>

#include <atomic>
#include <cstdio>

namespace tapegraph {

/// Receives the output of tg::print, one complete text with its line end per call.
using print_sink = void (*)(std::string_view text);

namespace detail {
inline std::atomic<print_sink>& current_print_sink() {
    static std::atomic<print_sink> sink{nullptr};
    return sink;
}
} // namespace detail

/// Redirects tg::print, in every thread; null means stderr. Returns the previous sink.
inline print_sink set_print_sink(print_sink sink) { return detail::current_print_sink().exchange(sink); }

namespace runtime {

namespace detail {

inline std::string described(const buffer_view& v) { return name_of(v.type) + to_string(shape(v.rank, v.extents)); }

/// "[1, 0]": the index of element `at`.
std::string index_text(const buffer_view& v, std::int64_t at);

void print(std::string_view label, const buffer_view& v);

/// Fails for element `at`, whose value is `value`.
[[noreturn]] void throw_not_finite(std::string_view label, const buffer_view& v, std::int64_t at, double value);
[[noreturn]] void throw_not_true(std::string_view message, const buffer_view& v, std::int64_t at);

void check_finite(std::string_view label, const buffer_view& v);

void check(std::string_view message, const buffer_view& v);

#if TG_DEFINES(runtime)

TG_DEFINITION void print(std::string_view label, const buffer_view& v) {
    std::string text = std::string(label) + ": " + described(v);
    text += v.rank > 1 ? '\n' : ' ';
    const auto values = [&]<class T>(T) {
        text += tapegraph::detail::array_text(v.as<const T>(), shape(v.rank, v.extents));
    };
    switch (v.type) {
    case dtype::f32: values(0.0f); break;
    case dtype::f64: values(0.0); break;
    case dtype::boolean: values(false); break;
    case dtype::i32: values(std::int32_t{}); break;
    case dtype::i64: values(std::int64_t{}); break;
    case dtype::u8: values(std::uint8_t{}); break;
    default: text += "(not printable)"; break;
    }
    text += '\n';
    if (const print_sink sink = tapegraph::detail::current_print_sink().load(); sink != nullptr)
        sink(text);
    else
        std::fwrite(text.data(), 1, text.size(), stderr);
}

TG_DEFINITION void check_finite(std::string_view label, const buffer_view& v) {
    const std::int64_t at = first_not_finite(v);
    if (at >= 0)
        throw_not_finite(label, v, at, v.type == dtype::f64 ? v.as<const double>()[at] : v.as<const float>()[at]);
}

TG_DEFINITION void check(std::string_view message, const buffer_view& v) {
    const std::int64_t count = v.elements();
    const bool* const holds = v.as<const bool>();
    for (std::int64_t i = 0; i < count; ++i)
        if (!holds[i]) throw_not_true(message, v, i);
}

#endif

} // namespace detail

template <labelled_effect Op, class T>
struct kernel<Op, T> {
    static void run(const kernel_call& c) {
        if constexpr (Op::effect == effect_kind::print)
            detail::print(Op::label, c.in[0]);
        else if constexpr (Op::effect == effect_kind::check_finite)
            detail::check_finite(Op::label, c.in[0]);
        else
            detail::check(Op::label, c.in[0]);
        *c.out[0].as<bool>() = true;
    }
};

} // namespace runtime

#if TG_DEFINES(runtime)

[[noreturn]] TG_DEFINITION void runtime::detail::throw_not_finite(std::string_view label, const buffer_view& v,
                                                                  std::int64_t at, double value) {
    std::string text;
    if (v.type == dtype::f64)
        tapegraph::detail::print_value(text, value);
    else
        tapegraph::detail::print_value(text, static_cast<float>(value));
    throw numeric_error(std::string(label) + ": element " + index_text(v, at) + " of " + described(v) + " is " + text);
}

[[noreturn]] TG_DEFINITION void runtime::detail::throw_not_true(std::string_view message, const buffer_view& v,
                                                                std::int64_t at) {
    throw check_error(std::string(message) + ": false at element " + index_text(v, at) + " of " + described(v));
}

TG_DEFINITION std::string runtime::detail::index_text(const buffer_view& v, std::int64_t at) {
    shape index(v.rank, v.extents);
    for (int axis = v.rank - 1; axis >= 0; --axis) {
        index.set(axis, at % v.extents[axis]);
        at /= v.extents[axis];
    }
    return to_string(index);
}

#endif

} // namespace tapegraph
