#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/eager/storage.hpp>

namespace tapegraph {

/// Where a tensor stands on this thread's tape. A place is never a pointer: tapes come and go.
struct tape_place {
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
    tape_place place() const { return place_; }
    void set_place(tape_place place) { place_ = place; }
    bool has_storage() const { return !storage_.empty(); }
    void* raw() const { return storage_.data(); }

    buffer_view view() const {
        buffer_view v;
        v.data = storage_.data();
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
        other.place_ = {};
        return other;
    }
    /// Shape and place without the buffer: for records that need only those.
    any_tensor outline() const {
        any_tensor other;
        other.dims_ = dims_;
        other.type_ = type_;
        other.place_ = place_;
        return other;
    }
    void drop_storage() { storage_ = {}; }

protected:
    detail::storage_reference storage_;
    tapegraph::shape dims_;
    tape_place place_;
    dtype type_ = dtype::f32;
};

} // namespace tapegraph
