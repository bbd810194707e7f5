#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/npy_format.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/formats/tensor_of_array.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Reads and writes NumPy's .npy files, one array each. For several arrays in one archive see
/// formats/npz.hpp.

namespace tapegraph::io {

/// The bytes of an .npy, like numpy.save. Throws dtype_error for a type that NumPy lacks.
std::vector<std::byte> npy_to_bytes(const host_array& array);

/// Reads an .npy of versions 1 to 3, of either byte order, row-major or column-major
/// (fortran_order); the result is row-major. Throws data_error naming the file if it is missing,
/// truncated, longer than its shape says or not an .npy, dtype_error for elements that are not
/// numbers (texts, objects, records). The size in a header is checked against the file's before any
/// allocation.
host_array read_npy_array(const files::path& path);

/// Reads an .npy as a tensor: `const tg::tensor<float> x(tg::io::read_npy("x.npy"))`. Throws like
/// read_npy_array, and shape_error for more than 8 axes.
inline any_tensor read_npy(const files::path& path) {
    return tensor_of_array(read_npy_array(path), detail::quoted(path));
}

/// Writes the same bytes as numpy.save; the file replaces an older one only when complete. Throws
/// dtype_error for a type that NumPy lacks, data_error on failure.
inline void write_npy_array(const files::path& path, const host_array& array) {
    const std::string begin = detail::npy_begin(array.type, array.shape, "write_npy(" + detail::quoted(path) + ")");
    atomic_file out(path);
    out.write(begin);
    out.write(array.bytes.data(), array.bytes.size());
    out.commit();
}

/// The same for a tensor; a `tensor<T>` converts.
inline void write_npy(const files::path& path, const any_tensor& value) {
    write_npy_array(path, array_of_tensor(value));
}

#if TG_DEFINES(formats)

TG_DEFINITION std::vector<std::byte> npy_to_bytes(const host_array& array) {
    const std::string begin = detail::npy_begin(array.type, array.shape, "write_npy");
    const auto head = std::as_bytes(std::span(begin.data(), begin.size()));
    std::vector<std::byte> bytes(head.begin(), head.end());
    bytes.insert(bytes.end(), array.bytes.begin(), array.bytes.end());
    return bytes;
}

TG_DEFINITION host_array read_npy_array(const files::path& path) {
    const std::string what = detail::quoted(path);
    const input_file in(path);
    const std::uint64_t bytes = in.size();
    constexpr std::uint64_t longest = 1 << 20; // bytes of a header; numpy itself stops at 10,000
    std::vector<std::byte> begin(static_cast<std::size_t>(std::min(bytes, longest)));
    in.read(begin.data(), begin.size(), 0);
    auto header = detail::parse_npy_header(begin, bytes, what);
    std::vector<std::byte> values(static_cast<std::size_t>(bytes - header.bytes));
    in.read(values.data(), values.size(), header.bytes);
    return detail::npy_array(std::move(header), std::move(values), what);
}

#endif

} // namespace tapegraph::io
