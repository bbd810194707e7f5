#pragma once

#include <tapegraph/cuda/context.hpp>
#include <tapegraph/cuda/runtime.hpp>
#include <tapegraph/eager/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Shares device memory with other libraries without copies: a tensor's elements for them, and
/// their memory as tensors. cuda/thrust.hpp builds on this for Thrust; nothing here depends on
/// Thrust.

namespace tapegraph::cuda {

/// Contiguous elements in a device's memory, in row-major order. The host cannot access them.
template <class T>
class device_elements {
public:
    device_elements() = default;
    device_elements(T* first, std::size_t count) : first_(first), count_(count) {}

    /// The first element, in the device's memory.
    T* data() const { return first_; }
    std::size_t size() const { return count_; }
    bool empty() const { return count_ == 0; }

private:
    T* first_ = nullptr;
    std::size_t count_ = 0;
};

namespace detail {

/// The runtime of a GPU. Throws an error that names `what` where `where` is the CPU.
inline runtime::device_runtime& gpu_of(const char* what, tapegraph::device where) {
    if (where.is_cpu())
        throw device_error(std::string(what) +
                           ": this thread computes on the CPU; name a GPU, or choose one with tg::device_scope");
    return runtime::runtime_of(where);
}

/// Wraps the owner of memory that kernels of `where` may still use when its last tensor is
/// destroyed: the owner is released only after the device has finished them.
template <class Owner>
std::shared_ptr<const void> kept_until_done(Owner owner, int where) {
    return {new Owner(std::move(owner)), [where](const Owner* mine) {
                try {
                    const runtime::device_turn turn(
                        &runtime::runtime_of(tapegraph::device::cuda(where))); // no graph is captured
                    driver::wait(context::of(where).stream());
                } catch (...) { // called by destructors; the error shows at the next call
                }
                delete mine;
            }};
}

} // namespace detail

/// The elements of a tensor in a GPU's memory, for reading by work on `stream_of(where)`. Elements
/// that are elsewhere are copied there first. The pointer is valid as long as the tensor lives and
/// is not written to. Throws device_error where `where` is the CPU.
template <class T>
device_elements<const T> elements_on(const tensor<T>& t, tapegraph::device where = current_device()) {
    runtime::device_runtime& d = detail::gpu_of("elements_on", where);
    return {static_cast<const T*>(t.view_on(&d).data), static_cast<std::size_t>(t.size())};
}
/// As `elements_on`, for writing: tensors that share the buffer keep the old values, and the CPU's
/// copy becomes invalid. The pointer is valid until the tensor is next copied or used. Throws
/// argument_error for a tensor that a live gradient_tape of this thread records.
template <class T>
device_elements<T> mutable_elements_on(tensor<T>& t, tapegraph::device where = current_device()) {
    runtime::device_runtime& d = detail::gpu_of("mutable_elements_on", where);
    return {static_cast<T*>(t.write_on(&d).data), static_cast<std::size_t>(t.size())};
}

/// A tensor over row-major elements in a GPU's memory that belong to another library, without a
/// copy. The elements must have been computed when this is called, or be computed by work already
/// on `stream_of(where)`. `owner` is kept until the last tensor over them is gone and the device
/// has finished the work enqueued by then. Unless `read_only`, writes to the tensor go to this
/// memory while no other tensor shares its buffer; otherwise a write copies first. Throws
/// shape_error for a negative extent, argument_error for an address that is not aligned,
/// device_error where `where` is the CPU.
template <class T, class Owner = std::shared_ptr<const void>>
tensor<std::remove_const_t<T>> borrow_on(tapegraph::device where, T* elements, const shape& dims, Owner owner = {},
                                         bool read_only = std::is_const_v<T>) {
    using element = std::remove_const_t<T>;
    runtime::device_runtime& d = detail::gpu_of("borrow_on", where);
    for (int i = 0; i < dims.rank(); ++i)
        if (dims.data()[i] < 0) throw shape_error("borrow_on: negative extent in shape " + to_string(dims));
    if (reinterpret_cast<std::uintptr_t>(elements) % alignof(element) != 0)
        throw argument_error(std::string("borrow_on: ") + name_of(dtype_of<element>) +
                             " at an address that is not a multiple of " + std::to_string(alignof(element)));
    return tensor<element>(any_tensor::over(dtype_of<element>, dims, const_cast<element*>(elements),
                                            detail::kept_until_done(std::move(owner), where.index()), read_only, &d));
}

/// The stream on which a GPU computes tensors: work enqueued on it runs in order with the library's
/// own kernels. Threads that share the GPU hold a `runtime::device_turn` while they enqueue.
inline driver::stream stream_of(tapegraph::device where = current_device()) {
    detail::gpu_of("stream_of", where);
    return context::of(where.index()).stream();
}
/// Waits for all work that has been given to a GPU; throws the errors that its kernels recorded.
inline void wait_for(tapegraph::device where) { detail::gpu_of("wait_for", where).wait(); }

/// Allocates bytes of a device's pool as temporary memory for work on its stream: released memory
/// is reused only after the work enqueued so far. It counts towards memory_pool's limit and appears
/// in its reports as "memory of another library".
class scratch_memory {
public:
    using value_type = char;

    explicit scratch_memory(int device) : device_(device) {}
    /// Bytes from the device's pool, for Thrust's temporary arrays.
    char* allocate(std::ptrdiff_t bytes) {
        context& c = context::of(device_);
        const runtime::device_turn turn(&runtime::runtime_of(tapegraph::device::cuda(device_)));
        return static_cast<char*>(c.memory().allocate(static_cast<std::size_t>(bytes), "memory of another library"));
    }
    /// Returns bytes to the device's pool.
    void deallocate(char* at, std::size_t) {
        const runtime::device_turn turn(&runtime::runtime_of(tapegraph::device::cuda(device_)));
        context::of(device_).memory().release(at);
    }
    /// As `allocate`, for use on another stream: waits for the work that used the memory before.
    char* allocate_ready(std::ptrdiff_t bytes) {
        char* const at = allocate(bytes);
        const runtime::device_turn turn(&runtime::runtime_of(tapegraph::device::cuda(device_))); // no graph is captured
        driver::wait(context::of(device_).stream());
        return at;
    }
    /// The number of the device.
    int device() const { return device_; }

    /// The scratch memory of a device; it lives until the process ends.
    static scratch_memory& of(int device) {
        static std::mutex guard;
        static auto& all = *new std::vector<std::unique_ptr<scratch_memory>>; // buffers may outlive static objects
        const std::lock_guard lock(guard);
        const auto place = static_cast<std::size_t>(device);
        if (all.size() <= place) all.resize(place + 1);
        if (all[place] == nullptr) all[place] = std::make_unique<scratch_memory>(device);
        return *all[place];
    }

private:
    int device_;
};

} // namespace tapegraph::cuda
