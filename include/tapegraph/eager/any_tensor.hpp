#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/eager/storage.hpp>

namespace tapegraph {

/// Where a tensor stands on this thread's tape. A place is never a pointer: tapes come and go.
struct tape_index {
    std::uint32_t serial = 0; // 0: nowhere
    std::int32_t index = -1;
};

/// An eager tensor whose element type is a value: shape, buffer, place on a tape. `tensor<T>` is the typed handle.
class any_tensor {
public:
    any_tensor() = default;
    any_tensor(dtype type, const tapegraph::shape& dims)
        : storage_(static_cast<std::size_t>(dims.elements()) * size_of(type)), dims_(dims), type_(type) {
        dims_.attach(nullptr);
    }

    const tapegraph::shape& shape() const { return dims_; }
    int rank() const { return dims_.rank(); }
    std::int64_t size() const { return dims_.elements(); }
    dtype type() const { return type_; }
    tapegraph::tape_index tape_index() const { return tape_index_; }
    void set_tape_index(tapegraph::tape_index index) { tape_index_ = index; }
    bool has_storage() const { return !storage_.empty(); }
    /// The elements in the CPU's memory, to write to: a copy on a device is no longer used. Waits for the device.
    void* raw() const { return storage_.data(true); }
    /// The same to read from.
    const void* read() const { return storage_.data(false); }
    /// Whether another tensor is over the same buffer, too.
    bool shared() const { return storage_.shared(); }
    /// Whether two tensors are over the same buffer.
    bool shares_with(const any_tensor& other) const { return storage_.identity() == other.storage_.identity(); }

    /// For the kernels of the device this thread computes on: to read, or to write a new tensor. Elements that are elsewhere
    /// are copied there.
    buffer_view view() const { return view_on(runtime::current_runtime()); }
    buffer_view view_on(runtime::device_runtime* d, bool change = false) const {
        buffer_view v = outline_view();
        v.data = d == nullptr ? storage_.data(change) : storage_.remote(*d, change);
        v.memory = runtime::memory_of(d);
        return v;
    }
    buffer_view outline_view() const {
        buffer_view v;
        v.type = type_;
        v.rank = dims_.rank();
        for (int i = 0; i < v.rank; ++i) v.extents[i] = dims_.data()[i];
        return v;
    }

    /// The same elements under another shape of equal size; off the tape.
    any_tensor viewed(const tapegraph::shape& dims) const {
        any_tensor other = *this;
        other.dims_ = dims;
        other.dims_.attach(nullptr);
        other.tape_index_ = {};
        return other;
    }
    /// Shape and place without the buffer: for records that need only those.
    any_tensor outline() const {
        any_tensor other;
        other.dims_ = dims_;
        other.type_ = type_;
        other.tape_index_ = tape_index_;
        return other;
    }
    /// A shape without a buffer.
    static any_tensor outline_of(dtype type, const tapegraph::shape& dims) {
        any_tensor t;
        t.dims_ = dims;
        t.type_ = type;
        return t;
    }
    void drop_storage() { storage_ = {}; }

protected:
    detail::storage_reference storage_;
    tapegraph::shape dims_;
    tapegraph::tape_index tape_index_;
    dtype type_ = dtype::f32;
};

} // namespace tapegraph
