#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/callers.hpp>
#include <tapegraph/runtime/call_observer.hpp>
#include <tapegraph/runtime/device_runtime.hpp>
#include <tapegraph/runtime/kernel.hpp>
#include <tapegraph/runtime/memory.hpp>
#include <tapegraph/runtime/placement_log.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

/// Runs one kernel call on the thread's current device.

namespace tapegraph::runtime {

using cpu::at_work; // for programs

/// Scratch memory of this thread, valid until the next call requests it.
inline void* thread_scratch(std::size_t bytes) {
    static thread_local arena memory;
    if (memory.size() < bytes) memory = arena(bytes);
    return memory.data();
}

/// Runs a GPU's call on the CPU, for kernels that exist only there: copies operands to the host and
/// results back.
void run_on_host(device_runtime& d, const kernel_functions& kernel, const kernel_call& call,
                 const random_state* random);

/// A call whose numbers in the CPU's memory (scalar operands, the random state) are sent to the
/// device in one copy.
class call_on_device {
public:
    call_on_device(device_runtime& d, const kernel_call& c) : call(c) {
        call.stream = d.stream();
        call.fault = d.fault();
        std::size_t all = c.random != nullptr ? padded(sizeof(random_state)) : 0;
        for (int i = 0; i < c.inputs; ++i)
            if (is_number(c.in[i])) all += padded(c.in[i].bytes());
        if (all == 0) return;
        views_.assign(c.in, c.in + c.inputs);
        call.in = views_.data();
        std::byte few[256];
        std::vector<std::byte> many(all > sizeof few ? all : 0);
        std::byte *const numbers = many.empty() ? few : many.data(), *at = numbers;
        std::memset(numbers, 0, all); // including the gaps, so that equal numbers need not be sent twice
        each_number([&](const void* from, std::size_t bytes, const auto&) {
            std::memcpy(at, from, bytes);
            at += padded(bytes);
        });
        auto* there = static_cast<std::byte*>(d.constant(numbers, all));
        each_number([&](const void*, std::size_t bytes, const auto& moved) {
            moved(there, memory_of(&d));
            there += padded(bytes);
        });
    }
    call_on_device(const call_on_device&) = delete; // the call points into it
    call_on_device& operator=(const call_on_device&) = delete;

    kernel_call call;

private:
    static bool is_number(const buffer_view& v) { return v.memory == 0 && v.data != nullptr; }
    // f(number, its bytes, a callback that receives its new address)
    template <class F>
    void each_number(const F& f) {
        for (buffer_view& v : views_)
            if (is_number(v))
                f(v.data, v.bytes(), [&](void* to, std::int8_t memory) { v.data = to, v.memory = memory; });
        if (call.random != nullptr)
            f(call.random, sizeof(random_state),
              [&](void* to, std::int8_t) { call.random = static_cast<const random_state*>(to); });
    }

    std::vector<buffer_view> views_;
};

void perform_on(device_runtime& d, const kernel_pair& kernel, const kernel_call& call);

/// Runs a kernel on the thread's current device; the call's views are in that device's memory, or
/// are small numbers on the CPU. `label` is reported where placement is logged or calls are
/// observed; an empty label means that the caller has reported the call.
inline void perform(const kernel_pair& kernel, kernel_call& call, const call_label& label = {}) {
    if (!label.operation.empty()) {
        if (placement_is_logged())
            write_placement(std::string(label.operation), call.out[0], current_runtime(),
                            current_runtime() == nullptr || kernel.on_device.run != nullptr);
        if (observer() != nullptr)
            return observed(
                [&] {
                    return observed_call{call_part::operation, &call, nullptr, 0, label};
                },
                [&] { perform(kernel, call); });
    }
    if constexpr (has_backend)
        if (device_runtime* const d = current_runtime(); d != nullptr) return perform_on(*d, kernel, call);
    call.workspace = thread_scratch(kernel.workspace(call));
    kernel.run(call);
}

#if TG_DEFINES(runtime)

TG_DEFINITION void run_on_host(device_runtime& d, const kernel_functions& kernel, const kernel_call& call,
                               const random_state* random) {
    std::vector<buffer_view> views;
    std::vector<arena> memory;
    const auto host_copies = [&](const buffer_view& from) {
        buffer_view v = from;
        v.memory = 0;
        if (from.data != nullptr && from.memory != 0) {
            memory.emplace_back(from.bytes() + 1);
            v.data = memory.back().data();
        }
        views.push_back(v);
    };
    for (int i = 0; i < call.inputs; ++i) {
        host_copies(call.in[i]);
        if (call.in[i].memory != 0) d.download(views.back().data, call.in[i].data, call.in[i].bytes());
    }
    for (int k = 0; k < call.outputs; ++k) host_copies(call.out[k]);
    kernel_call host = call;
    host.in = views.data();
    host.out = views.data() + call.inputs;
    host.random = random;
    host.fault = host.stream = nullptr;
    host.workspace = thread_scratch(kernel.workspace(host));
    kernel.run(host);
    for (int k = 0; k < call.outputs; ++k)
        if (call.out[k].data != nullptr && call.out[k].memory != 0)
            d.upload(call.out[k].data, host.out[k].data, call.out[k].bytes());
}

TG_DEFINITION void perform_on(device_runtime& d, const kernel_pair& kernel, const kernel_call& call) {
    const device_turn turn(&d);
    if (kernel.on_device.run == nullptr) return run_on_host(d, kernel, call, call.random);
    call_on_device there(d, call);
    there.call.workspace = d.scratch(kernel.on_device.workspace(there.call));
    kernel.on_device.run(there.call);
}

#endif

} // namespace tapegraph::runtime
