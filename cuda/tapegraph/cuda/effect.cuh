#pragma once

#include <tapegraph/cuda/boxes.cuh>
#include <tapegraph/cuda/fault.cuh>
#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/check.cuh>
#include <tapegraph/runtime/effect.hpp>

#include <algorithm>

/// check_finite, check: what they find becomes the call's fault, and is thrown when the host next waits for the device. The step
/// goes on until then.

namespace tapegraph::cuda {

namespace detail {

template <class T>
void look_through(const kernel_call& c, fault_kind kind, std::string_view label) {
    const std::int64_t count = c.in[0].elements();
    constexpr std::int64_t each = 8, most_blocks = 2048; // elements of a thread; enough blocks for a device
    const std::int64_t blocks = std::clamp<std::int64_t>(divide_up(count, 256 * each), 1, most_blocks);
    launch(c, "check", {static_cast<unsigned>(blocks), 256}, kernels::find_fault<T>, c.in[0].as<const T>(), count,
           report_elements(c, kind, label.data()), c.out[0].as<bool>()); // the label is a literal, with its zero
}

} // namespace detail

template <fixed_string Label, class T>
struct kernel<check_finite_op<Label>, T> {
    static void run(const kernel_call& c) {
        detail::look_through<T>(c, fault_kind::not_finite, check_finite_op<Label>::label);
    }
};
template <fixed_string Message, class T>
struct kernel<check_op<Message>, T> {
    static void run(const kernel_call& c) {
        detail::look_through<bool>(c, fault_kind::not_true, check_op<Message>::label);
    }
};

} // namespace tapegraph::cuda
