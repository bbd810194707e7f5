#pragma once

#include <tapegraph/eager/any_tensor.hpp>
#include <tapegraph/io/onnx/wire.hpp>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

/// Initializers of an ONNX graph: variables in memory, possibly viewed in another order, and small
/// constants.

namespace tapegraph::onnx {

/// The elements of a tensor in some order of its axes.
struct strided_view {
    const any_tensor* source = nullptr;
    std::vector<std::int64_t> dims, strides; ///< in elements

    std::int64_t size() const {
        std::int64_t product = 1;
        for (const std::int64_t d : dims) product *= d;
        return product;
    }
    /// All elements of a tensor in their order.
    static strided_view whole(const any_tensor& t) {
        strided_view v{&t, {t.shape().data(), t.shape().data() + t.rank()}, {}};
        v.strides = contiguous(v.dims);
        return v;
    }
    /// The strides of elements row by row.
    static std::vector<std::int64_t> contiguous(const std::vector<std::int64_t>& dims) {
        std::vector<std::int64_t> strides(dims.size());
        std::int64_t stride = 1;
        for (std::size_t i = dims.size(); i-- > 0; stride *= dims[i]) strides[i] = stride;
        return strides;
    }
    /// Whether the elements lie row by row without gaps.
    bool is_contiguous() const { return strides == contiguous(dims); }
    /// The same elements with other extents; the view must be contiguous.
    strided_view reshaped(std::vector<std::int64_t> to) const {
        strided_view v{source, std::move(to), {}};
        v.strides = contiguous(v.dims);
        return v;
    }
    /// Axis i of the result is axis order[i].
    strided_view permuted(const std::vector<int>& order) const {
        strided_view v{source, {}, {}};
        for (const int axis : order) {
            v.dims.push_back(dims[static_cast<std::size_t>(axis)]);
            v.strides.push_back(strides[static_cast<std::size_t>(axis)]);
        }
        return v;
    }
    /// Prepends axes of extent 1, up to a rank.
    strided_view widened(int rank) const {
        strided_view v = *this;
        while (static_cast<int>(v.dims.size()) < rank) {
            v.dims.insert(v.dims.begin(), 1);
            v.strides.insert(v.strides.begin(), 0);
        }
        return v;
    }
};

/// An initializer: `dims` in the file, the view's elements in row-major order, with parts of its
/// first axis in the order of `parts` if that is not empty, followed by zeros; or `constant`, the
/// bytes themselves.
struct weight {
    std::string name;
    dtype type{};
    std::vector<std::int64_t> dims;
    strided_view view;
    std::vector<int> parts;
    std::string constant;

    /// Bytes of the elements in the file.
    std::uint64_t bytes() const {
        std::uint64_t product = size_of(type);
        for (const std::int64_t d : dims) product *= static_cast<std::uint64_t>(d);
        return product;
    }
    /// The elements, little endian.
    std::string data() const {
        if (view.source == nullptr) return constant;
        std::string all(bytes(), '\0');
        if (all.empty() || view.size() == 0) return all;
        const auto* from = static_cast<const char*>(view.source->read());
        char* to = all.data();
        if (parts.empty()) {
            copy(from, to, 0);
            return all;
        }
        for (const int part : parts) {
            const char* at = from + view.strides[0] * part * static_cast<std::int64_t>(size_of(type));
            copy(at, to, 1);
        }
        return all;
    }

private:
    void copy(const char* from, char*& to, std::size_t axis) const {
        const std::size_t element = size_of(type);
        if (axis == 0 && view.is_contiguous()) {
            const std::size_t count = static_cast<std::size_t>(view.size()) * element;
            std::memcpy(to, from, count);
            to += count;
            return;
        }
        if (axis == view.dims.size()) {
            std::memcpy(to, from, element);
            to += element;
            return;
        }
        for (std::int64_t i = 0; i < view.dims[axis]; ++i)
            copy(from + i * view.strides[axis] * static_cast<std::int64_t>(element), to, axis + 1);
    }
};

} // namespace tapegraph::onnx
