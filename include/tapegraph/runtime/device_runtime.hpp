#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/device.hpp>
#include <tapegraph/core/environment.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>

/// The interface of devices other than the CPU for programs and tensors. A backend implements it;
/// nothing here depends on CUDA.

namespace tapegraph {

namespace runtime {

/// Bytes that a number occupies among others in one transfer: each begins at a multiple of 16.
constexpr std::size_t padded(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

/// One device's memory and its stream, in which all work runs in order. Errors are device_error or
/// out_of_memory; functions that wait throw errors found by kernels (an index outside its axis).
///
/// Threads may share a device: any of them may call each function. Work that must stay together,
/// such as a call's scratch memory and its launch, or the launches captured as one graph, is
/// submitted under a `device_turn`.
class device_runtime {
public:
    virtual device id() const = 0;
    /// Makes this device the thread's current device; called before a thread submits work.
    virtual void enter() = 0;

    /// Allocates device memory; out_of_memory names `what`.
    virtual void* allocate(std::size_t bytes, const char* what) = 0;
    /// Frees memory once the device has finished all work submitted so far.
    virtual void release(void* at) noexcept = 0;
    /// Scratch memory for one call, valid until the next request.
    virtual void* scratch(std::size_t bytes) = 0;

    /// Copies from the CPU's memory, which may change as soon as this returns.
    virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
    /// Uploads a program's input through reserved staging memory, so that the copy overlaps with
    /// work that is still running on the device.
    virtual void feed(void* to, const void* from, std::size_t bytes) = 0;
    struct piece {
        void* to;
        const void* from;
        std::size_t bytes;
    };
    /// Copies to the CPU's memory; waits.
    void download(void* to, const void* from, std::size_t bytes) {
        const piece all{to, from, bytes};
        bring_to_host(&all, 1);
    }
    /// Downloads several pieces, and waits once.
    virtual void bring_to_host(const piece* pieces, int count) = 0;
    virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
    virtual void wait() = 0;

    /// Copies the numbers of an eager call: `bytes` of the CPU's memory, into device memory that
    /// the next submitted work may read.
    virtual void* constant(const void* from, std::size_t bytes) = 0;
    /// The stream and the fault record for a call on this device.
    virtual void* stream() = 0;
    virtual void* fault() = 0;

    /// Sends 8 bytes to the host without waiting. Returns their number (of the last 256), for which
    /// `published` waits.
    virtual std::int64_t publish(const void* from, std::size_t bytes) = 0;
    virtual const void* published(std::int64_t number) = 0;

    /// Captures the launches between the two calls as one graph, which replays as a whole.
    /// end_capture returns null where the device cannot capture; then nothing has been launched.
    virtual void begin_capture() = 0;
    virtual void* end_capture() = 0;
    virtual void replay(void* graph) = 0;
    virtual void drop(void* graph) noexcept = 0;

    /// Held by the thread that is using the device; device_turn locks it.
    std::recursive_mutex& turns() { return turns_; }

protected:
    ~device_runtime() = default;

private:
    std::recursive_mutex turns_;
};

/// While it lives, no other thread submits work to the device; null is the CPU, which needs no
/// locking. Turns nest.
class device_turn {
public:
    explicit device_turn(device_runtime* d) {
        if (d != nullptr) lock_ = std::unique_lock(d->turns());
    }

private:
    std::unique_lock<std::recursive_mutex> lock_;
};

/// Releases this thread's one turn of a device while it lives, so that others may use the device;
/// null is the CPU.
class device_pause {
public:
    explicit device_pause(device_runtime* d) : device_(d) {
        if (device_ != nullptr) device_->turns().unlock();
    }
    device_pause(const device_pause&) = delete;
    device_pause& operator=(const device_pause&) = delete;
    ~device_pause() {
        if (device_ != nullptr) device_->turns().lock();
    }

private:
    device_runtime* device_;
};

/// The runtime of a GPU. Throws device_error with the reason where it cannot be used.
inline device_runtime& runtime_of(device d) {
    check_available(d);
    return *tapegraph::detail::cuda_backend().open(d.index());
}

/// The runtime of the requested device, or null for the CPU. On a machine without a GPU, or without
/// its driver, it falls back to the CPU after one line on stderr, so that one binary runs
/// everywhere. Throws device_error for a GPU number that does not exist, and in a program built
/// without CUDA.
inline device_runtime* runtime_for(device d) {
    const tapegraph::detail::device_backend& gpus = tapegraph::detail::cuda_backend();
    if (d.is_cuda() && gpus.count != nullptr && gpus.count() == 0) d = available_or_cpu(d);
    return d.is_cpu() ? nullptr : &runtime_of(d);
}

/// Whether programs on a device record their steps and replay them as one graph, which is the
/// default. With TAPEGRAPH_CAPTURE=0 in the environment, or with false here, every step is launched
/// kernel by kernel.
inline bool& capture_steps() {
    static bool on = tapegraph::detail::environment_flag("TAPEGRAPH_CAPTURE", true);
    return on;
}

namespace detail {
// The device of this thread; null is the CPU.
inline device_runtime*& thread_runtime() {
    static constinit thread_local device_runtime* current = nullptr;
    return current;
}
} // namespace detail

/// The device that this thread computes on; null is the CPU.
inline device_runtime* current_runtime() { return detail::thread_runtime(); }

/// The value of buffer_view::memory for a device's memory.
inline std::int8_t memory_of(const device_runtime* d) {
    return d == nullptr ? std::int8_t{0} : static_cast<std::int8_t>(d->id().index() + 1);
}

} // namespace runtime

/// The device this thread computes on, as chosen by the innermost device_scope.
inline device current_device() {
    const runtime::device_runtime* const d = runtime::current_runtime();
    return d == nullptr ? device::cpu() : d->id();
}

/// While it lives, this thread creates tensors and programs on the given device. Operands on other
/// devices are copied there once.
///
///     const tg::device_scope on(tg::device::cuda(0));
///
/// On a machine without a GPU it falls back to the CPU, with a line on stderr; a GPU number that
/// does not exist throws device_error.
class device_scope {
public:
    explicit device_scope(device d) : device_scope(runtime::runtime_for(d)) {}
    explicit device_scope(runtime::device_runtime* d) : before_(runtime::current_runtime()) { change(d); }
    device_scope(const device_scope&) = delete;
    device_scope& operator=(const device_scope&) = delete;
    ~device_scope() { change(before_); }

private:
    static void change(runtime::device_runtime* d) {
        runtime::detail::thread_runtime() = d;
        if (d != nullptr) d->enter();
    }

    runtime::device_runtime* before_;
};

} // namespace tapegraph
