#pragma once

#include <tapegraph/cuda/ops/movement/boxes.cuh>
#include <tapegraph/cuda/fault.cuh>
#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/check.cuh>
#include <tapegraph/ops/effect/kernel.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

/// Kernels of operations with side effects. Findings of check_finite and check become the call's
/// fault, which is thrown when the host next waits for the device; the step continues until then.
/// For print, the values are copied to the host and printed, in order with the step, by one of
/// CUDA's threads while the program continues; everything has been printed once the host has waited
/// for the device.

namespace tapegraph::cuda {

namespace detail {

template <class T>
void look_through(const kernel_call& c, fault_kind kind, std::string_view label) {
    const std::int64_t count = c.in[0].elements();
    constexpr std::int64_t each = 8, most_blocks = 2048; // elements per thread; enough blocks for a device
    const std::int64_t blocks = std::clamp<std::int64_t>(divide_up(count, 256 * each), 1, most_blocks);
    launch(c, "check", {static_cast<unsigned>(blocks), 256}, kernels::find_fault<T>, c.in[0].as<const T>(), count,
           report_elements(c, kind, label.data()), c.out[0].as<bool>()); // the label is a literal, null-terminated
}

/// The text of a print and the host memory that it copies to.
struct printing {
    std::string_view label;
    buffer_view value; ///< its data is in pinned memory

    static void say(void* self) {
        const auto& p = *static_cast<const printing*>(self);
        try {
            runtime::detail::print(p.label, p.value);
        } catch (...) { // thrown by a sink; nobody could catch it here
        }
    }
};

/// The printing of a call, identified by stream, result, label and shape. It lives as long as the
/// program, because a captured graph prints with every replay. Calls with the same key follow one
/// another on their stream, so none overwrites what another has not printed yet.
template <class = void>
printing& printing_of(const kernel_call& c, std::string_view label) {
    static std::mutex guard;
    static std::map<std::vector<std::uint64_t>, std::unique_ptr<printing>> all;
    const buffer_view& x = c.in[0];
    std::vector<std::uint64_t> key{reinterpret_cast<std::uintptr_t>(c.stream),
                                   reinterpret_cast<std::uintptr_t>(c.out[0].data),
                                   reinterpret_cast<std::uintptr_t>(label.data()), static_cast<std::uint64_t>(x.type)};
    for (int i = 0; i < x.rank; ++i) key.push_back(static_cast<std::uint64_t>(x.extents[i]));
    const std::lock_guard lock(guard);
    auto& found = all[key];
    if (found == nullptr) {
        auto made = std::make_unique<printing>(printing{label, x});
        made->value.data = driver::allocate_pinned(std::max<std::size_t>(1, x.bytes()));
        found = std::move(made);
    }
    return *found;
}

template <class = void>
void print(const kernel_call& c, std::string_view label) {
    const auto stream = static_cast<driver::stream>(c.stream);
    printing& p = printing_of(c, label);
    driver::copy(p.value.data, c.in[0].data, c.in[0].bytes(), stream);
    driver::call_host(stream, &printing::say, &p);
    driver::fill(c.out[0].data, 1, sizeof(bool), stream);
}

} // namespace detail

template <labelled_effect Op, class T>
struct kernel<Op, T> {
    static void run(const kernel_call& c) {
        if constexpr (Op::effect == effect_kind::print)
            detail::print(c, Op::label);
        else if constexpr (Op::effect == effect_kind::check)
            detail::look_through<bool>(c, fault_kind::not_true, Op::label);
        else if constexpr (std::is_floating_point_v<T>) // others are refused when the call is made
            detail::look_through<T>(c, fault_kind::not_finite, Op::label);
    }
};

} // namespace tapegraph::cuda
