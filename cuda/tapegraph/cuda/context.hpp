#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/cuda/devices.hpp>
#include <tapegraph/cuda/memory.hpp>
#include <tapegraph/cuda/ops/product/blas_context.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>

/// The state that a process keeps for each device: stream, copy stream, pool, random state, fault.

namespace tapegraph::cuda {

/// A context is created when its device is first used and is never destroyed: at exit the driver
/// may already be gone.
class context {
public:
    /// Returns the context of a device and makes the device current for this thread. Throws
    /// device_error with the reason when the device cannot be used.
    static context& of(int device) {
        context* const known = made(device);
        context& c = known != nullptr ? *known : open(device);
        driver::use(device);
        return c;
    }
    /// The context of this thread's device. Kernels ask for it at every call, so it takes no lock.
    static context& current() {
        const int device = driver::current_device();
        context* const known = made(device);
        return known != nullptr ? *known : of(device);
    }

    int device() const { return device_; }
    const driver::device_properties& properties() const { return properties_; }

    /// The stream on which kernels run in order; memory() orders its buffers on it, too.
    driver::stream stream() const { return stream_; }
    /// The stream for copies from and to the host that overlap with kernels.
    driver::stream copy_stream() const { return copy_stream_; }
    memory_pool& memory() const { return memory_; }
    blas_context& blas() { return blas_; }

    /// The random state in the device's memory, in the form that kernel_call::random expects.
    random_state* random() const { return random_; }
    void set_random(const random_state& state) {
        driver::copy(random_, &state, sizeof state, stream());
        driver::wait(stream()); // `state` need not live any longer
    }

    /// Where kernels record errors that they cannot throw (kernel_call::fault); zeros mean no
    /// fault.
    void* fault() const { return fault_; }
    static constexpr std::size_t fault_bytes = 512;
    /// Enqueues a copy of the fault recorded so far to `to`, fault_bytes of host memory, and clears
    /// it.
    void send_fault(void* to) {
        driver::copy(to, fault_, fault_bytes, stream());
        driver::fill(fault_, 0, fault_bytes, stream());
    }

private:
    static constexpr int most_devices = 127; // as many as buffer_view::memory can distinguish
    static std::atomic<context*>& place(int device) {
        static std::array<std::atomic<context*>, most_devices> places{};
        return places[static_cast<std::size_t>(device)];
    }
    static context* made(int device) {
        return device < 0 || device >= most_devices ? nullptr : place(device).load(std::memory_order_acquire);
    }
    static context& open(int device) {
        check_available(tapegraph::device::cuda(device));
        static std::mutex guard;
        const std::lock_guard lock(guard);
        if (context* const known = made(device)) return *known;
        if (device >= most_devices)
            throw device_error("cuda:" + std::to_string(device) + " cannot be used: tensors tell " +
                               std::to_string(most_devices) + " devices apart");
        memory_pool& memory = memory_pool::of(device);
        driver::use(device);
        auto* const opened = new context(device, memory);
        place(device).store(opened, std::memory_order_release);
        return *opened;
    }

    context(int device, memory_pool& memory)
        : device_(device),
          memory_(memory),
          properties_(driver::properties(device)),
          stream_(memory.stream()),
          copy_stream_(driver::make_stream()),
          blas_(memory, properties_.major),
          random_(static_cast<random_state*>(memory.allocate(sizeof(random_state), "random state"))),
          fault_(memory.allocate(fault_bytes, "fault record")) {
        set_random({});
        driver::fill(fault_, 0, fault_bytes, stream());
    }

    int device_;
    memory_pool& memory_;
    driver::device_properties properties_;
    driver::stream stream_, copy_stream_;
    blas_context blas_;
    random_state* random_;
    void* fault_;
};

} // namespace tapegraph::cuda
