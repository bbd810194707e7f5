#pragma once

#include <tapegraph/eager/tensor.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>

/// Zero-copy exchange of memory with other libraries, in both directions. None of their headers is
/// included: std::span and other contiguous ranges, mdspan and Kokkos views, matrices, maps and
/// tensors of Eigen, xtensor's containers and cv::Mat are recognized by their member functions.

namespace tapegraph {

/// Strided elements: element (i, j, ...) is data[i * strides[0] + j * strides[1] + ...]. Has the
/// member functions of std::mdspan.
template <class T>
struct strided_memory {
    using element_type = T;

    T* data = nullptr;
    int axes = 0;
    std::int64_t extents[max_rank]{}, strides[max_rank]{}; ///< strides in elements

    /// The element at index 0 of every axis.
    T* data_handle() const { return data; }
    /// The number of axes.
    int rank() const { return axes; }
    /// The extent of an axis, from 0.
    std::int64_t extent(int axis) const { return extents[axis]; }
    /// The distance between neighbours along an axis, in elements.
    std::int64_t stride(int axis) const { return strides[axis]; }
    /// The element at an index for each axis, unchecked.
    template <std::integral... Index>
    T& operator()(Index... index) const {
        std::int64_t at = 0;
        int axis = 0;
        ((at += static_cast<std::int64_t>(index) * strides[axis++]), ...);
        return data[at];
    }

    /// The extents of all axes.
    tapegraph::shape shape() const { return {axes, extents}; }
    std::int64_t size() const {
        std::int64_t count = 1;
        for (int i = 0; i < axes; ++i) count *= extents[i];
        return count;
    }
    /// Whether the elements are contiguous, the last axis varying fastest.
    bool is_row_major() const {
        std::int64_t expected = 1;
        for (int i = axes - 1; i >= 0; --i) {
            if (extents[i] > 1 && strides[i] != expected) return size() == 0;
            expected *= extents[i];
        }
        return true;
    }
    /// The same elements with the axes in reverse order.
    strided_memory transposed() const {
        strided_memory t{data, axes};
        for (int i = 0; i < axes; ++i) {
            t.extents[i] = extents[axes - 1 - i];
            t.strides[i] = strides[axes - 1 - i];
        }
        return t;
    }
};

namespace detail {

inline void check_axes(std::int64_t axes) {
    if (axes > max_rank)
        throw shape_error("borrow: memory of " + std::to_string(axes) + " axes, tensors have at most " +
                          std::to_string(max_rank));
}
/// Describes memory with this many axes by two functions of the axis.
template <class T, class Extent, class Stride>
strided_memory<T> strided_by(T* data, std::int64_t axes, const Extent& extent, const Stride& stride) {
    check_axes(axes);
    strided_memory<T> m{data, static_cast<int>(axes)};
    for (int i = 0; i < m.axes; ++i) {
        m.extents[i] = static_cast<std::int64_t>(extent(i));
        m.strides[i] = static_cast<std::int64_t>(stride(i));
    }
    return m;
}

template <class X>
concept mdspan_like = requires(X& x) {
    x.data_handle();
    x.rank();
    x.extent(0);
    x.stride(0);
};
template <class X>
concept kokkos_like = requires(X& x) {
    x.data();
    x.extent(0);
    x.stride(0);
    X::rank;
};
template <class X>
concept eigen_matrix = requires(X& x) {
    x.data();
    x.rows();
    x.cols();
    x.innerStride();
    x.outerStride();
    X::IsRowMajor;
    X::IsVectorAtCompileTime;
};
template <class X>
concept eigen_tensor = requires(X& x) {
    x.data();
    x.dimension(0);
    X::NumDimensions;
    X::Layout;
};
template <class X>
concept xtensor_like = requires(X& x) {
    x.data();
    x.shape().size();
    x.strides().size();
};
template <class X>
concept mat_like = requires(X& x) {
    x.data;
    x.rows;
    x.cols;
    x.step;
    x.channels();
    x.depth();
};
template <class X>
concept contiguous_values = std::ranges::contiguous_range<X> && std::ranges::sized_range<X>;

/// Whether a temporary only refers to its elements.
template <class X>
concept looks_at = mdspan_like<X> || std::ranges::borrowed_range<X>;

/// Maps OpenCV's numbers of element types.
constexpr dtype dtype_of_depth(int depth) {
    constexpr dtype known[] = {dtype::u8,  dtype::i8,  dtype::u16, dtype::i16,
                               dtype::i32, dtype::f32, dtype::f64, dtype::f16};
    return depth >= 0 && depth < 8 ? known[depth] : dtype::boolean;
}

template <class T, class X>
strided_memory<T> memory_of_mat(X& x) {
    if (dtype_of_depth(x.depth()) != dtype_of<T>)
        throw dtype_error(std::string("borrow: the matrix is of depth ") + std::to_string(x.depth()) + " (" +
                          name_of(dtype_of_depth(x.depth())) + "), not of " + name_of(dtype_of<T>));
    if (x.rows < 0 || x.cols < 0) throw shape_error("borrow: a matrix of more than two axes");
    const auto channels = static_cast<std::int64_t>(x.channels());
    const auto step = static_cast<std::int64_t>(static_cast<std::size_t>(x.step)); // bytes of a row
    constexpr auto size = static_cast<std::int64_t>(sizeof(T));
    if (step % size != 0)
        throw shape_error("borrow: rows of " + std::to_string(step) + " bytes are not whole " + name_of(dtype_of<T>));
    strided_memory<T> m{reinterpret_cast<T*>(x.data), 3};
    m.extents[0] = x.rows;
    m.extents[1] = x.cols;
    m.extents[2] = channels;
    m.strides[0] = step / size;
    m.strides[1] = channels;
    m.strides[2] = 1;
    return m;
}

} // namespace detail

/// The memory layout of another library's object. For an OpenCV matrix, [rows, cols, channels], the
/// element type is given explicitly: `memory_of<std::uint8_t>(mat)`.
template <class T = void, class X>
auto memory_of(X& x) {
    if constexpr (detail::mdspan_like<X>) {
        return detail::strided_by(
            x.data_handle(), static_cast<std::int64_t>(x.rank()), [&](auto i) { return x.extent(i); },
            [&](auto i) { return x.stride(i); });
    } else if constexpr (detail::kokkos_like<X>) {
        return detail::strided_by(
            x.data(), static_cast<std::int64_t>(X::rank), [&](auto i) { return x.extent(i); },
            [&](auto i) { return x.stride(i); });
    } else if constexpr (detail::eigen_matrix<X>) {
        const std::int64_t extents[] = {x.rows(), x.cols()};
        const std::int64_t inner = x.innerStride(), outer = x.outerStride();
        if constexpr (X::IsVectorAtCompileTime)
            return detail::strided_by(
                x.data(), 1, [&](int) { return extents[0] * extents[1]; }, [&](int) { return inner; });
        else
            return detail::strided_by(
                x.data(), 2, [&](int i) { return extents[i]; },
                [&](int i) { return (i == 1) == static_cast<bool>(X::IsRowMajor) ? inner : outer; });
    } else if constexpr (detail::eigen_tensor<X>) {
        constexpr int axes = X::NumDimensions;
        constexpr bool row_major = static_cast<int>(X::Layout) == 1;
        std::int64_t strides[axes > 0 ? axes : 1]{};
        std::int64_t next = 1;
        for (int n = 0; n < axes; ++n) {
            const int i = row_major ? axes - 1 - n : n;
            strides[i] = next;
            next *= static_cast<std::int64_t>(x.dimension(static_cast<std::size_t>(i)));
        }
        return detail::strided_by(
            x.data(), axes, [&](int i) { return x.dimension(static_cast<std::size_t>(i)); },
            [&](int i) { return strides[i]; });
    } else if constexpr (detail::xtensor_like<X>) {
        auto* data = x.data();
        if constexpr (requires { x.data_offset(); }) data += x.data_offset();
        return detail::strided_by(
            data, static_cast<std::int64_t>(x.shape().size()),
            [&](int i) { return x.shape()[static_cast<std::size_t>(i)]; },
            [&](int i) { return x.strides()[static_cast<std::size_t>(i)]; });
    } else if constexpr (detail::mat_like<X>) {
        static_assert(!std::is_void_v<T>, "borrow: of a matrix of OpenCV name the type: borrow<std::uint8_t>(mat)");
        return detail::memory_of_mat<T>(x);
    } else {
        static_assert(detail::contiguous_values<X>,
                      "borrow: neither a contiguous range nor memory of a known kind; borrow(pointer, shape, owner)");
        return detail::strided_by(
            std::ranges::data(x), 1, [&](int) { return std::ranges::size(x); }, [](int) { return 1; });
    }
}

namespace detail {

template <class T>
tensor<std::remove_const_t<T>> tensor_over(const strided_memory<T>& m,
                                           std::shared_ptr<const void> owner, // NOLINT: it is moved
                                           bool read_only) {
    using element = std::remove_const_t<T>;
    for (int i = 0; i < m.axes; ++i)
        if (m.extents[i] < 0) throw shape_error("borrow: negative extent in shape " + to_string(m.shape()));
    if (!m.is_row_major())
        throw shape_error("borrow: elements of shape " + to_string(m.shape()) + " are not row-major" +
                          (m.transposed().is_row_major()
                               ? " but column-major; borrow_transposed(x), or copy_of(x)"
                               : ", strides are " + to_string(shape(m.axes, m.strides)) + "; copy_of(x)"));
    if (reinterpret_cast<std::uintptr_t>(m.data) % alignof(element) != 0)
        throw argument_error(std::string("borrow: ") + name_of(dtype_of<element>) +
                             " at an address that is not a multiple of " + std::to_string(alignof(element)));
    return tensor<element>(
        any_tensor::over(dtype_of<element>, m.shape(), const_cast<element*>(m.data), std::move(owner), read_only));
}

template <class T>
void copy_strided(const strided_memory<T>& m, int axis, const T* from, std::remove_const_t<T>*& to) {
    if (axis == m.axes) {
        *to++ = *from;
        return;
    }
    for (std::int64_t i = 0; i < m.extents[axis]; ++i) copy_strided<T>(m, axis + 1, from + i * m.strides[axis], to);
}

template <class X>
constexpr void refuse_temporary() {
    static_assert(std::is_lvalue_reference_v<X> || looks_at<std::remove_cvref_t<X>>,
                  "borrow: a temporary that owns its elements; give it a name, or adopt() it");
}

} // namespace detail

/// A tensor over external elements, row-major, without copying them. They must stay in place and
/// unchanged while the tensor or anything that shares its buffer lives; `owner`, if given, is held
/// as long. Writing to the tensor copies them first. Throws shape_error for a negative extent,
/// argument_error for a misaligned address.
template <class T>
tensor<std::remove_const_t<T>> borrow(T* elements, const shape& dims, std::shared_ptr<const void> owner = {}) {
    strided_memory<T> m{elements, dims.rank()};
    std::int64_t stride = 1;
    for (int i = dims.rank() - 1; i >= 0; --i) {
        m.extents[i] = dims.data()[i];
        m.strides[i] = stride;
        stride *= m.extents[i];
    }
    return detail::tensor_over(m, std::move(owner), true);
}
/// The same for another library's object that knows its shape: `borrow(matrix)`. For an OpenCV
/// matrix the element type is given explicitly: `borrow<std::uint8_t>(image)`. Throws shape_error
/// where the elements are not row-major; Eigen's are column-major by default.
template <class T = void, class X>
    requires(!std::is_pointer_v<std::remove_cvref_t<X>>)
auto borrow(X&& x, std::shared_ptr<const void> owner = {}) {
    detail::refuse_temporary<X>();
    return detail::tensor_over(memory_of<T>(x), std::move(owner), true);
}
/// The same, but writing to the tensor writes to the external elements, unless another tensor
/// shares its buffer.
template <class T = void, class X>
    requires(!std::is_pointer_v<std::remove_cvref_t<X>>)
auto borrow_mutable(X&& x, std::shared_ptr<const void> owner = {}) {
    detail::refuse_temporary<X>();
    const auto m = memory_of<T>(x);
    static_assert(!std::is_const_v<typename decltype(m)::element_type>, "borrow_mutable: the elements are constant");
    return detail::tensor_over(m, std::move(owner), false);
}
/// Borrows column-major elements as a tensor with the axes in reverse order: Eigen's matrix [rows,
/// cols] as [cols, rows].
template <class X>
auto borrow_transposed(X&& x, std::shared_ptr<const void> owner = {}) {
    detail::refuse_temporary<X>();
    return detail::tensor_over(memory_of(x).transposed(), std::move(owner), true);
}
/// A tensor that takes ownership of a container with its elements: `adopt(std::move(vector), {2,
/// 3})`. It may be written to. Throws shape_error where the shape has another number of elements.
template <detail::contiguous_values X>
    requires(!std::is_reference_v<X>)
auto adopt(X&& x, const shape& dims) {
    if (dims.elements() != static_cast<std::int64_t>(std::ranges::size(x)))
        throw shape_error("adopt: " + std::to_string(std::ranges::size(x)) + " values for shape " + to_string(dims));
    auto kept = std::make_shared<X>(std::move(x));
    using element = std::remove_reference_t<decltype(*std::ranges::data(*kept))>;
    strided_memory<element> m{std::ranges::data(*kept), dims.rank()};
    std::int64_t stride = 1;
    for (int i = dims.rank() - 1; i >= 0; stride *= m.extents[i--]) {
        m.extents[i] = dims.data()[i];
        m.strides[i] = stride;
    }
    return detail::tensor_over(m, kept, std::is_const_v<element>);
}
/// The same with the container's own shape.
template <class X>
    requires(!std::is_reference_v<X>)
auto adopt(X&& x) {
    auto kept = std::make_shared<X>(std::move(x));
    const auto m = memory_of(*kept);
    return detail::tensor_over(m, kept, std::is_const_v<typename decltype(m)::element_type>);
}
/// A copy of elements in any order, for example column-major.
template <class T = void, class X>
auto copy_of(X&& x) {
    const auto m = memory_of<T>(x);
    using element = std::remove_const_t<typename decltype(m)::element_type>;
    auto result = tensor<element>::uninitialized(m.shape());
    element* to = static_cast<element*>(result.overwrite());
    if (m.is_row_major())
        std::copy_n(m.data, m.size(), to);
    else
        detail::copy_strided<typename decltype(m)::element_type>(m, 0, m.data, to);
    return result;
}

/// A tensor's elements, for reading, with the member functions of std::mdspan. Valid as long as
/// tensor::data.
template <class T>
strided_memory<const T> view_of(const tensor<T>& t) {
    strided_memory<const T> m{t.data(), t.rank()};
    std::int64_t stride = 1;
    for (int i = t.rank() - 1; i >= 0; stride *= m.extents[i--]) {
        m.extents[i] = t.shape().data()[i];
        m.strides[i] = stride;
    }
    return m;
}
/// The same as a type that is constructed from a pointer and extents: `view_as<std::mdspan<const
/// float, std::dextents<int, 2>>>(t)`. Elements that are not const make the tensor writable, with
/// the errors of mutable_data. Throws shape_error for another rank.
template <class View, class Tensor>
View view_as(Tensor& t) {
    constexpr auto axes = static_cast<std::size_t>(View::rank());
    if (t.rank() != static_cast<int>(axes))
        throw shape_error("view_as: a view of " + std::to_string(axes) + " axes of shape " + to_string(t.shape()));
    std::array<std::int64_t, axes> extents{};
    for (std::size_t i = 0; i < axes; ++i) extents[i] = t.shape().data()[i];
    if constexpr (std::is_const_v<typename View::element_type>)
        return View(t.data(), extents);
    else
        return View(t.mutable_data(), extents);
}

} // namespace tapegraph
