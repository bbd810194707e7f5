#pragma once

#include <tapegraph/cuda/device_elements.hpp>

#ifndef __CUDACC__
#error "tapegraph/cuda/thrust.hpp: Thrust's device vectors are compiled by nvcc"
#endif

#include <thrust/copy.h>
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/system/cuda/execution_policy.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

/// Connects Thrust and tensors without copies: algorithms on a tensor's elements, and vectors as
/// tensors, on the library's stream and from its pool. Thrust's headers take nvcc some seconds, so
/// no header of the library includes this.

namespace tapegraph::cuda {

/// An execution policy that runs algorithms in order with the library's own kernels, takes
/// temporary memory from its pool, and does not wait.
///
///     thrust::sort(tg::cuda::policy(), tg::cuda::begin(t), tg::cuda::end(t));
///
/// Algorithms that return a value (reduce, count) or an end (unique, copy_if) wait for it and
/// cannot be captured. Throws device_error where `where` is the CPU.
inline auto policy(tapegraph::device where = current_device()) {
    const driver::stream s = stream_of(where);
    driver::use(where.index());
    return thrust::cuda::par_nosync(scratch_memory::of(where.index())).on(s);
}

/// The elements of a tensor as Thrust's iterators, for `policy()`; copied to the GPU if they are
/// elsewhere. The elements of a non-const tensor may be written to. For errors and validity see
/// elements_on and mutable_elements_on. Two calls return one range: a write through an earlier
/// `begin` is seen through a later `end`.
template <class T>
thrust::device_ptr<const T> cbegin(const tensor<T>& t, tapegraph::device where = current_device()) {
    return thrust::device_pointer_cast(elements_on(t, where).data());
}
/// After the last element, to read: `cbegin(t, where) + t.size()`.
template <class T>
thrust::device_ptr<const T> cend(const tensor<T>& t, tapegraph::device where = current_device()) {
    return cbegin(t, where) + t.size();
}
template <class T>
thrust::device_ptr<const T> begin(const tensor<T>& t, tapegraph::device where = current_device()) {
    return cbegin(t, where);
}
template <class T>
thrust::device_ptr<const T> end(const tensor<T>& t, tapegraph::device where = current_device()) {
    return cend(t, where);
}
template <class T>
thrust::device_ptr<T> begin(tensor<T>& t, tapegraph::device where = current_device()) {
    return thrust::device_pointer_cast(mutable_elements_on(t, where).data());
}
template <class T>
thrust::device_ptr<T> end(tensor<T>& t, tapegraph::device where = current_device()) {
    return begin(t, where) + t.size();
}

/// An allocator for Thrust's vectors from a device's pool: `thrust::device_vector<float,
/// tg::cuda::pool_allocator<float>>`. Vectors compute on a stream of their own choice, so each new
/// buffer waits for the library's stream; Thrust itself waits before it releases one.
template <class T>
class pool_allocator {
public:
    using value_type = T;
    using pointer = thrust::device_ptr<T>;
    using const_pointer = thrust::device_ptr<const T>;
    using reference = thrust::device_reference<T>;
    using const_reference = thrust::device_reference<const T>;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    /// The allocator of another element type.
    template <class U>
    struct rebind {
        using other = pool_allocator<U>;
    };

    pool_allocator() : pool_allocator(current_device().is_cpu() ? tapegraph::device::cuda(0) : current_device()) {}
    explicit pool_allocator(tapegraph::device where) : device_(where.index()) {}
    template <class U>
    pool_allocator(const pool_allocator<U>& other) : device_(other.device()) {}

    /// Memory for `count` elements, which the vector's stream may use at once.
    pointer allocate(size_type count) {
        void* const at = scratch_memory::of(device_).allocate_ready(static_cast<std::ptrdiff_t>(count * sizeof(T)));
        return thrust::device_pointer_cast(static_cast<T*>(at));
    }
    /// Returns memory that `allocate` gave.
    void deallocate(pointer at, size_type count) {
        if (at.get() == nullptr) return;
        scratch_memory::of(device_).deallocate(static_cast<char*>(static_cast<void*>(at.get())), count * sizeof(T));
    }
    /// The number of the device.
    int device() const { return device_; }
    bool operator==(const pool_allocator& other) const { return device_ == other.device_; }

private:
    int device_;
};

namespace detail {
/// The GPU that an address belongs to. Throws argument_error for an address that is no GPU's.
inline tapegraph::device device_of(const void* at) {
    cudaPointerAttributes found{};
    driver::check(cudaPointerGetAttributes(&found, at), "cudaPointerGetAttributes", "a vector of Thrust");
    if (found.type != cudaMemoryTypeDevice && found.type != cudaMemoryTypeManaged)
        throw argument_error("adopt: the vector's elements are not in a GPU's memory");
    return tapegraph::device::cuda(found.device);
}
inline void check_count(const char* what, std::size_t count, const shape& dims) {
    if (dims.elements() != static_cast<std::int64_t>(count))
        throw shape_error(std::string(what) + ": " + std::to_string(count) + " values for shape " + to_string(dims));
}
} // namespace detail

/// Makes a tensor that takes over a Thrust vector and its elements: `adopt(std::move(v), {2, 3})`.
/// Nothing is copied, and the tensor may be written to. The vector's elements must have been
/// computed; Thrust's algorithms have done so when they return, unless they used a nosync policy on
/// another stream than ours. Throws shape_error where the shape has a different number of elements.
template <class T, class Allocator>
tensor<T> adopt(thrust::device_vector<T, Allocator>&& v, const shape& dims) {
    detail::check_count("adopt", v.size(), dims);
    if (v.empty()) return tensor<T>::uninitialized(dims);
    T* const first = thrust::raw_pointer_cast(v.data());
    return borrow_on(detail::device_of(first), first, dims, std::move(v), false);
}
template <class T, class Allocator>
tensor<T> adopt(thrust::device_vector<T, Allocator>&& v) {
    const shape dims{static_cast<std::int64_t>(v.size())};
    return adopt(std::move(v), dims);
}
/// A tensor over a vector that stays with its owner, who must keep it as long as the tensor, or
/// anything that shares its buffer, lives. Writing to the tensor copies the elements first.
template <class T, class Allocator>
tensor<T> borrow(const thrust::device_vector<T, Allocator>& v, const shape& dims) {
    detail::check_count("borrow", v.size(), dims);
    if (v.empty()) return tensor<T>::uninitialized(dims);
    const T* const first = thrust::raw_pointer_cast(v.data());
    return borrow_on(detail::device_of(first), first, dims);
}
/// Copies the elements on the GPU into a new Thrust vector, since a vector only holds memory that
/// it allocated itself. Algorithms do not need this; they take begin(t) and end(t). Waits for the
/// GPU.
template <class T>
thrust::device_vector<T, pool_allocator<T>> to_device_vector(const tensor<T>& t,
                                                             tapegraph::device where = current_device()) {
    const auto first = cbegin(t, where);
    thrust::device_vector<T, pool_allocator<T>> v(static_cast<std::size_t>(t.size()), pool_allocator<T>(where));
    thrust::copy(policy(where), first, first + t.size(), v.begin());
    wait_for(where);
    return v;
}

} // namespace tapegraph::cuda
