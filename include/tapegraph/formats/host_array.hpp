#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/dtype.hpp>
#include <tapegraph/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

/// An array as stored in files: element type known at run time, values contiguous and row-major.

namespace tapegraph::io {

/// "[2,3]"; a scalar is "[]".
inline std::string shape_text(std::span<const std::int64_t> shape) {
    std::string text = "[";
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
        text.append(axis == 0 ? "" : ",").append(std::to_string(shape[axis]));
    return text += ']';
}

/// Computes the number of elements of a shape (1 for a scalar). Returns false if an extent is
/// negative or the product, times `element_bytes`, does not fit 63 bits: a corrupt header must not
/// wrap around to a small allocation.
bool checked_size(std::span<const std::int64_t> shape, std::size_t element_bytes, std::int64_t& size);

/// An array in memory with a type that the program need not know.
struct host_array {
    dtype type = dtype::f32;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;

    /// Number of elements.
    std::int64_t size() const { return static_cast<std::int64_t>(bytes.size() / size_of(type)); }

    /// The values as T. Throws dtype_error if the array holds another type.
    template <class T>
    std::span<const T> values() const {
        check<T>();
        return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
    }
    template <class T>
    std::span<T> values() {
        check<T>();
        return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
    }

    /// An array of zeros. Throws shape_error if the shape is negative or too large.
    static host_array zeros(dtype type, std::vector<std::int64_t> shape);

    /// Copies values. Throws shape_error if their number does not fit the shape.
    template <class T>
    static host_array of(std::vector<std::int64_t> shape, std::span<const T> values) {
        std::int64_t size = 0;
        if (!checked_size(shape, sizeof(T), size) || size != static_cast<std::int64_t>(values.size()))
            throw shape_error("host_array: " + std::to_string(values.size()) + " values do not fill shape " +
                              shape_text(shape));
        host_array array{dtype_of<T>, std::move(shape), {}};
        const auto raw = std::as_bytes(values);
        array.bytes.assign(raw.begin(), raw.end());
        return array;
    }
    template <class T>
    static host_array of(std::vector<std::int64_t> shape, const std::vector<T>& values) {
        return of<T>(std::move(shape), std::span<const T>(values));
    }

private:
    template <class T>
    void check() const {
        if (dtype_of<T> != type)
            throw dtype_error(std::string("host_array ") + shape_text(shape) + ": holds " + name_of(type) + ", not " +
                              name_of(dtype_of<T>));
    }
};

/// An array of a file, and its name in the file: "encoder.0.weight".
struct named_array {
    std::string name;
    host_array array;
};

/// An entry of a file of arrays that is not read.
struct unread_value {
    std::string name, reason;
    bool tensor = false; ///< an array of an unknown type
};

/// A read-only view of an array in external memory.
struct array_view {
    dtype type = dtype::f32;
    std::vector<std::int64_t> shape;
    std::span<const std::byte> bytes;

    /// Number of elements.
    std::int64_t size() const { return static_cast<std::int64_t>(bytes.size() / size_of(type)); }

    /// Whether the CPU may read the values as their type in place; in files without alignment it
    /// may not.
    bool is_aligned() const { return reinterpret_cast<std::uintptr_t>(bytes.data()) % size_of(type) == 0; }

    /// The values as T. Throws dtype_error if the array holds another type, argument_error if they
    /// are not aligned.
    template <class T>
    std::span<const T> values() const {
        if (dtype_of<T> != type)
            throw dtype_error(std::string("array_view ") + shape_text(shape) + ": holds " + name_of(type) + ", not " +
                              name_of(dtype_of<T>));
        if (!is_aligned())
            throw argument_error(std::string("array_view ") + shape_text(shape) + ": " + name_of(type) +
                                 " at an address that is not a multiple of " + std::to_string(size_of(type)) +
                                 "; copy() them");
        return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
    }

    /// An owned copy of the values.
    host_array copy() const { return {type, shape, {bytes.begin(), bytes.end()}}; }
};

#if TG_DEFINES(formats)

TG_DEFINITION bool checked_size(std::span<const std::int64_t> shape, std::size_t element_bytes, std::int64_t& size) {
    constexpr std::int64_t limit = INT64_MAX;
    bool valid = true;
    bool empty = false;
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) {
        if (extent < 0) return false;
        if (extent == 0)
            empty = true;
        else if (product > limit / extent)
            valid = false;
        else
            product *= extent;
    }
    size = empty ? 0 : product;
    return empty || (valid && product <= limit / static_cast<std::int64_t>(element_bytes));
}

TG_DEFINITION host_array host_array::zeros(dtype type, std::vector<std::int64_t> shape) {
    std::int64_t size = 0;
    if (!checked_size(shape, size_of(type), size))
        throw shape_error("host_array: impossible shape " + shape_text(shape));
    host_array array{type, std::move(shape), {}};
    array.bytes.resize(static_cast<std::size_t>(size) * size_of(type));
    return array;
}

#endif

} // namespace tapegraph::io
