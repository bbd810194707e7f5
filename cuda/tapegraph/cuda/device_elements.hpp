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

/// Tensors' elements in a GPU's memory for other libraries, and other libraries' device memory as tensors, without copies. What
/// Thrust wants of this is in cuda/thrust.hpp; nothing here knows it.

namespace tapegraph::cuda {

/// Elements that lie together in a device's memory, row by row. The host cannot look at them.
template <class T>
class device_elements {
public:
    device_elements() = default;
    device_elements(T* first, std::size_t count) : first_(first), count_(count) {}

    T* data() const { return first_; }
    std::size_t size() const { return count_; }
    bool empty() const { return count_ == 0; }

private:
    T* first_ = nullptr;
    std::size_t count_ = 0;
};

namespace detail {

/// The runtime of a GPU; says what is missing where a thread computes on the CPU.
inline runtime::device_runtime& gpu_of(const char* what, tapegraph::device where) {
    if (where.is_cpu())
        throw device_error(std::string(what) +
                           ": this thread computes on the CPU; name a GPU, or choose one with tg::device_scope");
    return runtime::runtime_of(where);
}

/// The owner of memory that kernels of `where` may still be using when its last tensor goes: it is kept until they are done.
template <class Owner>
std::shared_ptr<const void> kept_until_done(Owner owner, int where) {
    return {new Owner(std::move(owner)), [where](const Owner* mine) {
                try {
                    const runtime::device_turn turn(
                        &runtime::runtime_of(tapegraph::device::cuda(where))); // nobody captures
                    driver::wait(context::of(where).stream());
                } catch (...) { // destructors call this; what goes wrong here shows at the next call
                }
                delete mine;
            }};
}

} // namespace detail

/// A tensor's elements in a GPU's memory, to be read by what is given to `stream_of(where)`. Elements that are elsewhere are copied
/// there. Good as long as the tensor lives and is not written to. Throws device_error where `where` is the CPU.
template <class T>
device_elements<const T> elements_on(const tensor<T>& t, tapegraph::device where = current_device()) {
    runtime::device_runtime& d = detail::gpu_of("elements_on", where);
    return {static_cast<const T*>(t.view_on(&d).data), static_cast<std::size_t>(t.size())};
}
/// The same to write to; what shares the tensor's buffer keeps the old values, and the CPU's copy is no longer used. Throws
/// argument_error for a tensor that a live gradient_tape of this thread follows. Good until the tensor is next copied or used.
template <class T>
device_elements<T> mutable_elements_on(tensor<T>& t, tapegraph::device where = current_device()) {
    runtime::device_runtime& d = detail::gpu_of("mutable_elements_on", where);
    return {static_cast<T*>(t.write_on(&d).data), static_cast<std::size_t>(t.size())};
}

/// A tensor over elements in a GPU's memory that are somebody else's, row by row, without copying them. They must have been
/// computed when this is called, or be computed by what has been given to `stream_of(where)`. `owner` is kept until the last tensor over
/// them is gone and the device has finished what it was given so far. Unless `read_only`, what is written to the tensor is written
/// there while no other tensor shares its buffer; otherwise writing copies first. Throws shape_error for a negative extent,
/// argument_error for an address that is not aligned, device_error where `where` is the CPU.
template <class T, class Owner = std::shared_ptr<const void>>
tensor<std::remove_const_t<T>> borrow_on(tapegraph::device where, T* elements, const shape& dims, Owner owner = {},
                                         bool read_only = std::is_const_v<T>) {
    using element = std::remove_const_t<T>;
    runtime::device_runtime& d = detail::gpu_of("borrow_on", where);
    for (int i = 0; i < dims.rank(); ++i)
        if (dims.data()[i] < 0) throw shape_error("borrow_on: negative extent in shape " + to_string(dims));
    if (reinterpret_cast<std::uintptr_t>(elements) % alignof(element) != 0)
        throw argument_error(std::string("borrow_on: ") + name_of(dtype_of<element>) +
                             " at an address that is no multiple of " + std::to_string(alignof(element)));
    return tensor<element>(any_tensor::over(dtype_of<element>, dims, const_cast<element*>(elements),
                                            detail::kept_until_done(std::move(owner), where.index()), read_only, &d));
}

/// The stream on which tensors of a GPU are computed: what is given to it comes in order with the library's own kernels. Threads that
/// share the GPU hold a `runtime::device_turn` meanwhile.
inline driver::stream stream_of(tapegraph::device where = current_device()) {
    detail::gpu_of("stream_of", where);
    return context::of(where.index()).stream();
}
/// Waits for everything that has been given to a GPU; throws what its kernels found wrong.
inline void wait_for(tapegraph::device where) { detail::gpu_of("wait_for", where).wait(); }

/// Bytes of a device's pool, as temporary memory of work on its stream: what is given back is used again only behind it. Counts towards
/// memory_pool's limit and stands in its reports as "memory of another library".
class scratch_memory {
public:
    using value_type = char;

    explicit scratch_memory(int device) : device_(device) {}
    char* allocate(std::ptrdiff_t bytes) {
        context& c = context::of(device_);
        const runtime::device_turn turn(&runtime::runtime_of(tapegraph::device::cuda(device_)));
        return static_cast<char*>(c.memory().allocate(static_cast<std::size_t>(bytes), "memory of another library"));
    }
    void deallocate(char* at, std::size_t) {
        const runtime::device_turn turn(&runtime::runtime_of(tapegraph::device::cuda(device_)));
        context::of(device_).memory().release(at);
    }
    /// The same for whoever uses it on another stream: it waits for those that had the memory before.
    char* allocate_ready(std::ptrdiff_t bytes) {
        char* const at = allocate(bytes);
        const runtime::device_turn turn(&runtime::runtime_of(tapegraph::device::cuda(device_))); // nobody captures
        driver::wait(context::of(device_).stream());
        return at;
    }
    int device() const { return device_; }

    /// Of a device; lives until the process ends.
    static scratch_memory& of(int device) {
        static std::mutex guard;
        static auto& all = *new std::vector<std::unique_ptr<scratch_memory>>; // buffers may outlive what is static
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
