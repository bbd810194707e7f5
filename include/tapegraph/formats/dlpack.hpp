#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/borrow.hpp>
#include <tapegraph/eager/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// DLPack: exchange of arrays between libraries and languages without copies (NumPy, PyTorch, JAX,
/// CuPy, ...). The structures of its ABI 1.x, and of earlier versions, are defined here;
/// https://dmlc.github.io/dlpack/latest/c_api.html

namespace tapegraph {

namespace dlpack {

/// DLDevice: where the elements are.
struct device {
    std::int32_t type = 1; ///< kDLCPU; 2: CUDA, 3: the CPU's memory that CUDA pinned
    std::int32_t id = 0;
};
/// DLDataType: what the elements are.
struct data_type {
    std::uint8_t code = 2; ///< 0: signed, 1: unsigned, 2: floating, 4: bfloat, 5: complex, 6: bool
    std::uint8_t bits = 32;
    std::uint16_t lanes = 1;
};
/// DLTensor
struct array {
    void* data = nullptr;
    dlpack::device device{};
    std::int32_t ndim = 0;
    data_type dtype{};
    std::int64_t* shape = nullptr;
    std::int64_t* strides = nullptr; ///< in elements; null: row-major, until 1.1
    std::uint64_t byte_offset = 0;
};
/// DLManagedTensor, from before 1.0: in a capsule "dltensor".
struct managed_tensor {
    array tensor{};
    void* context = nullptr;
    void (*deleter)(managed_tensor*) = nullptr;
};
/// DLManagedTensorVersioned: in a capsule "dltensor_versioned".
struct managed_tensor_versioned {
    std::uint32_t major = 1, minor = 1;
    void* context = nullptr;
    void (*deleter)(managed_tensor_versioned*) = nullptr;
    std::uint64_t flags = 0; ///< 1: read-only, 2: a copy
    array tensor{};
};
static_assert(sizeof(array) == 48 && offsetof(array, byte_offset) == 40 && sizeof(managed_tensor) == 64);
static_assert(sizeof(managed_tensor_versioned) == 80 && offsetof(managed_tensor_versioned, tensor) == 32);

inline constexpr std::uint64_t read_only_flag = 1, copied_flag = 2;

} // namespace dlpack

namespace detail {

constexpr dlpack::data_type dlpack_type_of(dtype type) {
    std::uint8_t code = 2;
    switch (type) {
    case dtype::i8:
    case dtype::i16:
    case dtype::i32:
    case dtype::i64: code = 0; break;
    case dtype::u8:
    case dtype::u16:
    case dtype::u32:
    case dtype::u64: code = 1; break;
    case dtype::bf16: code = 4; break;
    case dtype::boolean: code = 6; break;
    default: break;
    }
    return {code, static_cast<std::uint8_t>(8 * size_of(type)), 1};
}
/// Throws dtype_error for types that tensors do not support.
dtype dtype_of_dlpack(dlpack::data_type given);

/// The exported structure, and the owner of its memory.
template <class Managed>
struct dlpack_export {
    Managed managed{};
    any_tensor kept;
    std::int64_t extents[max_rank + 1]{}, strides[max_rank + 1]{};
};

template <class Managed>
Managed* export_dlpack(const any_tensor& kept, void* data) {
    auto whole = std::make_unique<dlpack_export<Managed>>();
    whole->kept = kept;
    whole->kept.set_tape_index({});
    dlpack::array& a = whole->managed.tensor;
    a.data = data;
    a.ndim = kept.rank();
    a.dtype = dlpack_type_of(kept.type());
    a.shape = whole->extents;
    a.strides = whole->strides; // never null, which is forbidden from 1.2 on
    std::int64_t stride = 1;
    for (int i = kept.rank() - 1; i >= 0; --i) {
        whole->extents[i] = kept.shape().data()[i];
        whole->strides[i] = stride;
        stride *= whole->extents[i] > 0 ? whole->extents[i] : 1;
    }
    whole->managed.context = whole.get();
    whole->managed.deleter = [](Managed* m) { delete static_cast<dlpack_export<Managed>*>(m->context); };
    return &whole.release()->managed;
}

} // namespace detail

/// Exports a tensor for reading by another library, in the CPU's memory, without a copy: the buffer
/// lives until the deleter is called, which the receiver does once, on any thread. It is marked
/// read-only; later writes to the tensor do not change the exported elements. Waits for a device.
inline dlpack::managed_tensor_versioned* to_dlpack(const any_tensor& t) {
    auto* const m = detail::export_dlpack<dlpack::managed_tensor_versioned>(
        t, const_cast<void*>(t.size() == 0 ? nullptr : t.read()));
    m->flags = dlpack::read_only_flag;
    return m;
}
/// The same for writing: the tensor sees what is written, until it is itself written to or used on
/// a device. Tensors that share its buffer now keep their elements. Throws argument_error like
/// any_tensor::write. `Managed`: dlpack::managed_tensor for libraries from before DLPack 1.0, which
/// cannot mark elements as read-only.
template <class Managed = dlpack::managed_tensor_versioned>
Managed* to_dlpack_mutable(any_tensor& t) {
    void* const data = t.write();
    return detail::export_dlpack<Managed>(t, t.size() == 0 ? nullptr : data);
}

/// How from_dlpack treats elements that are not row-major, or not aligned.
enum class dlpack_copies {
    never,    ///< an error
    if_needed ///< they are copied
};

namespace detail {

/// Gathers elements of any strides, byte by byte.
inline void gather_bytes(const dlpack::array& a, int axis, const std::byte* from, std::size_t size, std::byte*& to) {
    if (axis == a.ndim) {
        std::memcpy(to, from, size);
        to += size;
        return;
    }
    for (std::int64_t i = 0; i < a.shape[axis]; ++i)
        gather_bytes(a, axis + 1, from + i * a.strides[axis] * static_cast<std::int64_t>(size), size, to);
}

any_tensor import_dlpack(const dlpack::array& a, std::shared_ptr<const void> owner, bool read_only,
                         dlpack_copies copies);

} // namespace detail

/// A tensor over another library's exported elements, without copying them; `tg::tensor<float>
/// x(tg::from_dlpack(m))`. The function takes ownership of the structure: its deleter is called
/// once, when the last tensor over it is destroyed, or at once if the elements are refused or
/// copied. Elements marked read-only are copied before writing; others are written in place. Null
/// strides mean row-major. Throws argument_error for elements on a device, another major version,
/// and elements that would have to be copied; dtype_error and shape_error for unsupported types and
/// shapes.
any_tensor from_dlpack(dlpack::managed_tensor_versioned* given, dlpack_copies copies = dlpack_copies::never);
/// The same for a library from before DLPack 1.0.
inline any_tensor from_dlpack(dlpack::managed_tensor* given, dlpack_copies copies = dlpack_copies::never) {
    if (given == nullptr) throw argument_error("from_dlpack: a null pointer");
    std::shared_ptr<const void> owner(given, [](dlpack::managed_tensor* m) {
        if (m->deleter != nullptr) m->deleter(m);
    });
    return detail::import_dlpack(given->tensor, owner, false, copies);
}

#if TG_DEFINES_FOR_HOST(formats)

namespace detail {

TG_DEFINITION dtype dtype_of_dlpack(dlpack::data_type given) {
    for (int i = 0; i <= static_cast<int>(dtype::boolean); ++i) {
        const dlpack::data_type known = dlpack_type_of(static_cast<dtype>(i));
        if (known.code == given.code && known.bits == given.bits && given.lanes == 1) return static_cast<dtype>(i);
    }
    throw dtype_error("from_dlpack: elements of code " + std::to_string(given.code) + ", " +
                      std::to_string(given.bits) + " bits and " + std::to_string(given.lanes) +
                      " lanes are not those of a tensor");
}

TG_DEFINITION any_tensor import_dlpack(const dlpack::array& a, std::shared_ptr<const void> owner, bool read_only,
                                       dlpack_copies copies) {
    if (a.device.type != 1 && a.device.type != 3)
        throw argument_error("from_dlpack: elements on a device of type " + std::to_string(a.device.type) +
                             "; only the CPU's memory (1, or 3, pinned) is supported");
    if (a.ndim < 0 || a.ndim > max_rank)
        throw shape_error("from_dlpack: " + std::to_string(a.ndim) + " axes, tensors have at most " +
                          std::to_string(max_rank));
    const dtype type = dtype_of_dlpack(a.dtype);
    if (a.ndim > 0 && a.shape == nullptr) throw argument_error("from_dlpack: no shape");
    std::int64_t elements = 1;
    for (int i = 0; i < a.ndim; ++i)
        if (a.shape[i] < 0 || __builtin_mul_overflow(elements, a.shape[i], &elements))
            throw shape_error("from_dlpack: impossible shape " + to_string(shape(a.ndim, a.shape)));
    const shape dims(a.ndim, a.shape);
    if (elements == 0) return any_tensor(type, dims);
    if (a.data == nullptr) throw argument_error("from_dlpack: no elements for shape " + to_string(dims));
    auto* const first = static_cast<std::byte*>(a.data) + a.byte_offset;
    bool row_major = true;
    if (a.strides != nullptr)
        row_major = strided_by(
                        first, a.ndim, [&](int i) { return a.shape[i]; }, [&](int i) { return a.strides[i]; })
                        .is_row_major();
    const bool aligned = reinterpret_cast<std::uintptr_t>(first) % size_of(type) == 0;
    if (row_major && aligned) return any_tensor::over(type, dims, first, std::move(owner), read_only);
    if (copies == dlpack_copies::never)
        throw argument_error("from_dlpack: elements of shape " + to_string(dims) +
                             (row_major ? " are not aligned" : " are not row-major") +
                             "; dlpack_copies::if_needed copies them");
    any_tensor copy(type, dims);
    auto* to = static_cast<std::byte*>(copy.overwrite());
    if (row_major)
        std::memcpy(to, first, static_cast<std::size_t>(elements) * size_of(type));
    else
        gather_bytes(a, 0, first, size_of(type), to);
    return copy;
}

} // namespace detail

TG_DEFINITION any_tensor from_dlpack(dlpack::managed_tensor_versioned* given, dlpack_copies copies) {
    if (given == nullptr) throw argument_error("from_dlpack: a null pointer");
    // In another major version only the version, the context and the deleter have known positions.
    std::shared_ptr<const void> owner(given, [](dlpack::managed_tensor_versioned* m) {
        if (m->deleter != nullptr) m->deleter(m);
    });
    if (given->major != 1)
        throw argument_error("from_dlpack: version " + std::to_string(given->major) + "." +
                             std::to_string(given->minor) + ", known is 1");
    return detail::import_dlpack(given->tensor, owner, (given->flags & dlpack::read_only_flag) != 0, copies);
}

#endif

} // namespace tapegraph
