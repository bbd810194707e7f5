#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/eager/storage.hpp>

#include <cstring>
#include <string>

namespace tapegraph {

/// A tensor's place on this thread's tape. It is never a pointer, because tapes come and go.
struct tape_index {
    std::uint32_t serial = 0; // 0: on no tape
    std::int32_t index = -1;
};

namespace detail {
/// The serial number of this thread's tape. No two tapes of a process share one, so a place on an
/// ended tape, or on another thread's, is never mistaken for one on this tape.
struct tape_serial {
    static constexpr std::uint32_t none = ~std::uint32_t{0}; // where no tape is alive
    static inline thread_local std::uint32_t current = none;

    static std::uint32_t next() {
        static std::atomic<std::uint32_t> last{0};
        std::uint32_t serial = 0;
        while (serial == 0 || serial == none) serial = last.fetch_add(1, std::memory_order_relaxed) + 1;
        return serial;
    }
};
} // namespace detail

/// An eager tensor whose element type is a run-time value: shape, buffer, place on a tape.
/// `tensor<T>` is the typed handle.
class any_tensor {
public:
    any_tensor() = default;
    any_tensor(dtype type, const tapegraph::shape& dims)
        : storage_(static_cast<std::size_t>(dims.elements()) * size_of(type)), dims_(dims), type_(type) {
        dims_.attach(nullptr);
    }

    /// A new tensor of the element type and extents of a buffer. The shape is made where it stays: a copy of one that
    /// has just been written waits for the stores.
    explicit any_tensor(const buffer_view& like)
        : storage_(like.bytes()), dims_(like.rank, like.extents), type_(like.type) {}

    /// A tensor over external elements, row-major, which `owner` keeps alive, in the CPU's memory
    /// or in that of `where`; see eager/borrow.hpp and cuda/device_elements.hpp.
    static any_tensor over(dtype type, const tapegraph::shape& dims, void* elements, std::shared_ptr<const void> owner,
                           bool read_only, runtime::device_runtime* where = nullptr) {
        any_tensor t = outline_of(type, dims);
        const auto bytes = static_cast<std::size_t>(dims.elements()) * size_of(type);
        t.storage_ = detail::storage_reference::over(elements, bytes, static_cast<std::shared_ptr<const void>&&>(owner),
                                                     read_only, where);
        return t;
    }

    /// The extents of its axes.
    const tapegraph::shape& shape() const { return dims_; }
    /// The number of axes; 0 for a scalar.
    int rank() const { return dims_.rank(); }
    std::int64_t size() const { return dims_.elements(); }
    /// The type of its elements.
    dtype type() const { return type_; }
    /// Its place on this thread's tape, if a tape follows it.
    tapegraph::tape_index tape_index() const { return tape_index_; }
    /// Makes it the value at a place of the tape.
    void set_tape_index(tapegraph::tape_index index) { tape_index_ = index; }
    /// Whether it has a buffer; a tensor that was only declared has none.
    bool has_storage() const { return !storage_.empty(); }
    /// The elements in the CPU's memory, for reading. Waits for the device.
    const void* read() const { return storage_.data(false); }
    /// The same for writing: a shared buffer is copied first, and a copy on a device is no longer
    /// used. Throws argument_error for a tensor that a live gradient_tape of this thread follows.
    /// Valid until the tensor is used otherwise. Programs keep nothing that they derive from
    /// elements which have been handed out for writing.
    void* write() {
        void* const elements = overwrite();
        if (runtime::content_mark* const mark = content(); mark != nullptr) mark->escape();
        return elements;
    }
    /// The same for a writer that is done before the tensor is used otherwise: programs see that
    /// the elements have changed.
    void* overwrite() {
        if (tape_index_.serial != 0) leave_tape();
        unshare();
        return storage_.data(true);
    }
    /// The mark that tells whether the elements have changed; null where there are none.
    runtime::content_mark* content() const { return storage_.content(); }
    /// Ensures that no other tensor shares this one's buffer.
    void unshare() {
        if (!storage_.shared()) return;
        const detail::storage_reference old = storage_;
        const auto bytes = static_cast<std::size_t>(size()) * size_of(type_);
        storage_ = detail::storage_reference(bytes);
        if (bytes > 0) std::memcpy(storage_.data(true), old.data(false), bytes);
    }
    /// Whether another tensor shares the buffer.
    bool shared() const { return storage_.shared(); }
    /// Whether two tensors share a buffer.
    bool shares_with(const any_tensor& other) const { return storage_.identity() == other.storage_.identity(); }

    /// A view for the kernels of this thread's current device: to read, or to write a new tensor.
    /// Elements that are elsewhere are copied there.
    buffer_view view() const { return view_on(runtime::current_runtime()); }
    /// Its elements on a device, to read; they are copied there if they are elsewhere.
    buffer_view view_on(runtime::device_runtime* d) const { return seen_from(d, false); }
    /// The same for kernels that overwrite existing elements. Shared buffers and tapes are treated
    /// as in `write`.
    buffer_view write_on(runtime::device_runtime* d) {
        if (tape_index_.serial != 0) leave_tape();
        unshare();
        return seen_from(d, true);
    }
    /// Type and extents without elements, for what asks about shapes alone.
    buffer_view outline_view() const {
        buffer_view v;
        v.type = type_;
        v.rank = dims_.rank();
        // Copies all extents, in the same wide pieces in which views are copied later: narrow
        // stores would delay wide loads.
        std::memcpy(v.extents, dims_.data(), sizeof v.extents);
        return v;
    }

    /// The same elements with another shape of equal size; off the tape.
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
    /// Returns the buffer to the pool; type and shape remain.
    void drop_storage() { storage_ = {}; }

protected:
    buffer_view seen_from(runtime::device_runtime* d, bool change) const {
        buffer_view v = outline_view();
        v.data = d == nullptr ? storage_.data(change) : storage_.remote(*d, change);
        v.memory = runtime::memory_of(d);
        return v;
    }
    // A tensor that a tape follows stands for a value that has been used: with other elements it
    // would be another source, and the gradient by it would silently be zero.
    void leave_tape() {
        if (tape_index_.serial == detail::tape_serial::current)
            throw argument_error("tensor: a gradient_tape follows this tensor of shape " + to_string(dims_) +
                                 "; write to it before watch() or after the tape, or to x.detach()");
        tape_index_ = {};
    }

    detail::storage_reference storage_;
    tapegraph::shape dims_;
    tapegraph::tape_index tape_index_;
    dtype type_ = dtype::f32;
};

} // namespace tapegraph
