#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/print.hpp>
#include <tapegraph/eager/any_tensor.hpp>
#include <tapegraph/eager/nested_list.hpp>
#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/indexable.hpp>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tapegraph {

struct eager;

namespace detail {
[[noreturn]] void throw_index(std::int64_t index, int axis, const shape& dims);

#if TG_DEFINES_FOR_HOST(eager)

[[noreturn]] TG_DEFINITION void throw_index(std::int64_t index, int axis, const shape& dims) {
    throw range_error("tensor: index " + std::to_string(index) + " on axis " + std::to_string(axis) +
                      " is outside shape " + to_string(dims));
}

#endif

} // namespace detail

template <class T>
class tensor;

template <class T>
struct handle_traits<tensor<T>> {
    using mode = eager;
};

/// Throws shape_error: what was asked, and type and shape of x.
template <class T>
[[noreturn]] void refuse(const tensor<T>& x, const char* what) {
    throw shape_error(std::string(what) + ": " + name_of(x.type()) + to_string(x.shape()));
}

template <class T>
void refuse_index(const tensor<T>& x, std::int64_t index, int axis) {
    const std::int64_t extent = x.shape()[axis].value;
    if (index < -extent || index >= extent) detail::throw_index(index, axis, x.shape());
}

namespace detail {
/// A reference to an object that is a number, or converts to one.
template <class Reference>
concept number_in = std::is_convertible_v<Reference, double> || storage_type<std::remove_cvref_t<Reference>>;
template <class R>
concept range_of_numbers = !std::is_base_of_v<any_tensor, std::remove_cvref_t<R>> && requires(R & values) {
    { *std::begin(values) } -> number_in;
    std::end(values);
};
} // namespace detail

/// An array of values with a run-time shape. Copies share the buffer; writing to a shared one
/// copies it first. The values exist as soon as the statement that creates them has run.
template <class T>
class tensor : public any_tensor, public indexable<tensor<T>> {
public:
    using element_type = T;
    using number_type = arithmetic_type_t<T>;

    /// A tensor without elements, shape [0].
    tensor() : any_tensor(dtype_of<T>, tapegraph::shape{0}) {}
    // NOLINTNEXTLINE: a number is a tensor of rank 0
    tensor(T value) : any_tensor(dtype_of<T>, tapegraph::shape{}) { *fill_from() = value; }
    /// A tensor with uninitialized elements.
    static tensor uninitialized(const tapegraph::shape& dims) { return tensor(any_tensor(dtype_of<T>, checked(dims))); }

    /// Numbers in braces, nested as deep as the rank: {1, 2}, {{1}, {2}}. Numbers for the 16-bit
    /// types are rounded. Throws shape_error, naming the row, where sibling lists differ in length.
    tensor(std::initializer_list<detail::nested_list<number_type>> values)
        : any_tensor(dtype_of<T>, detail::nested_shape(detail::nested_list<number_type>(values))) {
        detail::copy_nested(detail::nested_list<number_type>(values), fill_from());
    }
    /// The same for numbers of one type, faster to compile.
    template <detail::listed_as<number_type> U>
    tensor(std::initializer_list<U> values)
        : any_tensor(dtype_of<T>, tapegraph::shape{static_cast<std::int64_t>(values.size())}) {
        T* to = fill_from();
        for (const U value : values) *to++ = static_cast<T>(detail::list_element<number_type>(value));
    }
    /// [n]: copied from a std::vector, std::array, std::span or any other range of numbers, converted to T.
    template <detail::range_of_numbers R>
    explicit tensor(R&& values) : tensor() {
        if constexpr (requires { std::size(values); })
            *this = tensor(values, tapegraph::shape{static_cast<std::int64_t>(std::size(values))});
        else
            *this = tensor(std::begin(values), std::end(values));
    }
    /// The same with a shape, in row-major order. Throws shape_error where the number of values is
    /// not the product of the extents.
    template <detail::range_of_numbers R>
    tensor(R&& values, const tapegraph::shape& dims) : any_tensor(dtype_of<T>, checked(dims)) {
        const auto count = static_cast<std::int64_t>(std::distance(std::begin(values), std::end(values)));
        if (count != size())
            throw shape_error("tensor: " + std::to_string(count) + " values for shape " + to_string(dims));
        copy(std::begin(values), fill_from());
    }
    /// Copies as many numbers from a pointer as the shape has elements.
    template <class U>
        requires(std::is_arithmetic_v<U> || storage_type<U>)
    tensor(const U* values, const tapegraph::shape& dims) : any_tensor(dtype_of<T>, checked(dims)) {
        copy(values, fill_from());
    }
    /// [n]: copied from iterators.
    template <std::input_iterator I, std::sentinel_for<I> End>
        requires detail::number_in<std::iter_reference_t<I>> tensor(I first, End last) : tensor() {
            std::vector<number_type> values;
            for (; first != last; ++first) values.push_back(static_cast<number_type>(*first));
            *this = tensor(values);
        }
        /// Seals a formula: one fused kernel, one tape record.
        template <expression E>
        // NOLINTNEXTLINE: implicit, so that models can write h = relu(h)
        tensor(const E& e, std::source_location where = std::source_location::current());

        /// The values of a formula, as the constructor gives.
        template <expression E>
        static tensor sealed(const E& e) {
            return tensor(e);
        }

        explicit tensor(any_tensor untyped) : any_tensor(std::move(untyped)) {
            if (type() != dtype_of<T>)
                throw dtype_error(std::string("tensor<") + name_of(dtype_of<T>) + ">: the elements are " +
                                  name_of(type()));
        }

        /// The elements in the CPU's memory; waits for a device that computes them.
        const T* data() const { return static_cast<const T*>(read()); }
        /// Writable memory; tensors that shared the buffer keep the old values. Throws
        /// argument_error for a tensor that a live gradient_tape of this thread follows (watched,
        /// or computed from one that is). Valid until the tensor is next copied or used in an
        /// operation.
        T* mutable_data() { return static_cast<T*>(write()); }
        /// The same values off the tape, as a constant; may be written to. The buffer is shared
        /// until then.
        tensor detach() const {
            tensor constant = *this;
            constant.tape_index_ = {};
            return constant;
        }
        /// All elements in row-major order; waits as data() does.
        std::span<const T> values() const { return {data(), static_cast<std::size_t>(size())}; }

        using indexable<tensor>::operator();
        /// One element, by one index per axis from 0; `set` writes one. Throws shape_error for
        /// another number of indices, range_error for an index outside its axis.
        template <std::integral... Index>
        T operator()(Index... index) const {
            return data()[offset(index...)];
        }
        /// Writes one element: t.set(2.5, row, column). Throws like operator() and mutable_data.
        template <std::integral... Index>
        void set(T value, Index... index) {
            const std::int64_t at = offset(index...);
            fill_from()[at] = value;
        }

        // not a braced list, because two pointers are also two bools
        /// A copy of the elements, row by row.
        std::vector<T> to_vector() const { return std::vector<T>(data(), data() + size()); }
        /// The value of a tensor of one element; throws shape_error for others.
        T item() const {
            if (size() != 1) throw shape_error("item: the tensor has shape " + to_string(shape()));
            return *data();
        }
        // NOLINTNEXTLINE: implicit, for float s = sum(a)
        explicit operator T() const { return item(); }
        template <detail::condition Bool>
            requires(!std::is_same_v<T, bool>)
        explicit operator Bool() const
            TG_REFUSES("a tensor of numbers is not a condition: compare it, x > 0, or take its number, x.item()");

    private:
        T* fill_from() { return static_cast<T*>(overwrite()); }
        template <class Iterator>
        void copy(Iterator from, T* to) {
            for (std::int64_t i = size(); i > 0; --i, ++from) *to++ = static_cast<T>(*from);
        }
        static const tapegraph::shape& checked(const tapegraph::shape& dims) {
            for (int i = 0; i < dims.rank(); ++i)
                if (dims[i].value < 0) throw shape_error("tensor: negative extent in shape " + to_string(dims));
            return dims;
        }
        template <class... Index>
        std::int64_t offset(Index... index) const {
            if (sizeof...(index) != static_cast<std::size_t>(rank()))
                throw shape_error("tensor: " + std::to_string(sizeof...(index)) + " indices for shape " +
                                  to_string(shape()));
            const std::int64_t at[sizeof...(index) + 1]{static_cast<std::int64_t>(index)...};
            std::int64_t flat = 0;
            for (int i = 0; i < rank(); ++i) {
                if (at[i] < 0 || at[i] >= shape()[i].value) detail::throw_index(at[i], i, shape());
                flat = flat * shape()[i].value + at[i];
            }
            return flat;
        }
};

/// A tensor with every element `value`.
template <class T>
tensor<T> full(const shape& dims, T value) {
    auto result = tensor<T>::uninitialized(dims);
    std::fill_n(static_cast<T*>(result.overwrite()), result.size(), value);
    return result;
}
/// zeros<float>({2, 3})
template <class T>
tensor<T> zeros(const shape& dims) {
    return full<T>(dims, T(0));
}
/// ones<float>({2, 3})
template <class T>
tensor<T> ones(const shape& dims) {
    return full<T>(dims, T(1));
}
/// begin, begin + step, ... (`count` of them)
template <class T>
tensor<T> arange(std::int64_t count, T begin = T(0), T step = T(1)) {
    auto result = tensor<T>::uninitialized({count});
    using real = arithmetic_type_t<T>;
    T* const to = static_cast<T*>(result.overwrite());
    for (std::int64_t i = 0; i < count; ++i)
        if constexpr (std::is_floating_point_v<real>) // rounded as on processors without FMA
            to[i] = static_cast<T>(static_cast<real>(begin) +
                                   math::detail::product(static_cast<real>(i), static_cast<real>(step)));
        else
            to[i] = static_cast<T>(static_cast<real>(begin) + static_cast<real>(i) * static_cast<real>(step));
    return result;
}
/// tensor<T>(values, dims).
template <class T, class Range>
tensor<T> from_range(const Range& values, const shape& dims) {
    return tensor<T>(values, dims);
}

/// Formats a tensor as NumPy does: nested brackets and columns; of more than 1000 elements, three
/// at either end of long axes; at most eight digits after the point.
template <class T>
std::string to_string(const tensor<T>& t) {
    return detail::array_text(t.data(), t.shape());
}
template <class T>
inline constexpr bool has_text<tensor<T>> = true;

} // namespace tapegraph
