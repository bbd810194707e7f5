#pragma once

#include <tapegraph/runtime/device_runtime.hpp>
#include <tapegraph/runtime/kernel.hpp>
#include <tapegraph/runtime/memory.hpp>
#include <tapegraph/runtime/placement_log.hpp>

#include <string_view>
#include <vector>

/// One call of a kernel where the thread computes.

namespace tapegraph::runtime {

/// Scratch memory of this thread, until the next call asks.
inline void* thread_scratch(std::size_t bytes) {
    static thread_local arena memory;
    if (memory.size() < bytes) memory = arena(bytes);
    return memory.data();
}

/// Runs a call of a GPU on the CPU, for kernels that exist there alone: operands are brought home, results sent back.
template <class = void>
void run_at_home(device_runtime& d, const kernel_functions& kernel, const kernel_call& call,
                 const random_state* random) {
    std::vector<buffer_view> views;
    std::vector<arena> memory;
    const auto at_home = [&](const buffer_view& from) {
        buffer_view v = from;
        v.place = 0;
        if (from.data != nullptr && from.place != 0) {
            memory.emplace_back(from.bytes() + 1);
            v.data = memory.back().data();
        }
        views.push_back(v);
    };
    for (int i = 0; i < call.inputs; ++i) {
        at_home(call.in[i]);
        if (call.in[i].place != 0) d.download(views.back().data, call.in[i].data, call.in[i].bytes());
    }
    for (int k = 0; k < call.outputs; ++k) at_home(call.out[k]);
    kernel_call home = call;
    home.in = views.data();
    home.out = views.data() + call.inputs;
    home.random = random;
    home.fault = home.stream = nullptr;
    home.workspace = thread_scratch(kernel.workspace(home));
    kernel.run(home);
    for (int k = 0; k < call.outputs; ++k)
        if (call.out[k].data != nullptr && call.out[k].place != 0)
            d.upload(call.out[k].data, home.out[k].data, call.out[k].bytes());
}

/// The same call with numbers that stand in the CPU's memory sent along.
class call_on_device {
public:
    call_on_device(device_runtime& d, const kernel_call& c) : call(c), views_(static_cast<std::size_t>(c.inputs)) {
        for (int i = 0; i < c.inputs; ++i) {
            buffer_view& v = views_[static_cast<std::size_t>(i)];
            v = c.in[i];
            if (v.place != 0 || v.data == nullptr) continue;
            v.data = d.constant(v.data, v.bytes());
            v.place = place_of(&d);
        }
        call.in = views_.data();
        call.stream = d.stream();
        call.fault = d.fault();
        if (c.random != nullptr)
            call.random = static_cast<const random_state*>(d.constant(c.random, sizeof(random_state)));
    }
    call_on_device(const call_on_device&) = delete; // the call points into it
    call_on_device& operator=(const call_on_device&) = delete;

    kernel_call call;

private:
    std::vector<buffer_view> views_;
};

template <class = void>
void perform_on(device_runtime& d, const kernel_pair& kernel, const kernel_call& call) {
    const device_turn turn(&d);
    if (kernel.on_device.run == nullptr) return run_at_home(d, kernel, call, call.random);
    call_on_device there(d, call);
    there.call.workspace = d.scratch(kernel.on_device.workspace(there.call));
    kernel.on_device.run(there.call);
}

/// Runs a kernel where the thread computes; the call's views are of that device, or of small numbers on the CPU. `operation`
/// is its name where placement is logged; empty: the caller has told.
inline void perform(const kernel_pair& kernel, kernel_call& call, std::string_view operation = {}) {
    if (placement_is_logged() && !operation.empty())
        write_placement(std::string(operation), call.out[0], current_runtime(),
                        current_runtime() == nullptr || kernel.on_device.run != nullptr);
    if constexpr (has_backend)
        if (device_runtime* const d = current_runtime(); d != nullptr) return perform_on(*d, kernel, call);
    call.workspace = thread_scratch(kernel.workspace(call));
    kernel.run(call);
}

} // namespace tapegraph::runtime
