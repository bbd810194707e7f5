#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/core/print.hpp>
#include <tapegraph/eager/any_tensor.hpp>
#include <tapegraph/expr/apply.hpp>

#include <algorithm>
#include <initializer_list>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tapegraph {

struct eager;

template <class T>
class tensor;

template <class T>
struct handle_traits<tensor<T>> {
    using mode = eager;
};

/// An array of values with a run-time shape. Copies share the buffer; writing to a shared one copies first. The values
/// are there as soon as the statement that makes them has run.
template <class T>
class tensor : public any_tensor {
public:
    using element_type = T;
    using number_type = arithmetic_type_t<T>;

    /// A tensor without elements, shape [0].
    tensor() : any_tensor(dtype_of<T>, tapegraph::shape{0}) {}
    // NOLINTNEXTLINE: a number is a tensor of rank 0
    tensor(T value) : any_tensor(dtype_of<T>, tapegraph::shape{}) { *mutable_data() = value; }
    /// Elements not set.
    static tensor uninitialized(const tapegraph::shape& dims) { return tensor(any_tensor(dtype_of<T>, checked(dims))); }

    /// Lists of numbers; for the 16-bit types of floats, which are rounded.
    tensor(std::initializer_list<number_type> values)
        : any_tensor(dtype_of<T>, tapegraph::shape{static_cast<std::int64_t>(values.size())}) {
        copy(values, mutable_data());
    }
    tensor(std::initializer_list<std::initializer_list<number_type>> rows)
        : any_tensor(dtype_of<T>, tapegraph::shape{static_cast<std::int64_t>(rows.size()), width(rows)}) {
        T* to = mutable_data();
        for (const auto& row : rows) {
            if (static_cast<std::int64_t>(row.size()) != shape()[1].value)
                throw shape_error("tensor: rows of a nested list differ in length: " +
                                  std::to_string(shape()[1].value) + " and " + std::to_string(row.size()));
            to = copy(row, to);
        }
    }
    tensor(std::initializer_list<std::initializer_list<std::initializer_list<number_type>>> blocks) : tensor() {
        std::vector<number_type> values;
        std::int64_t rows = -1, columns = -1;
        for (const auto& block : blocks) {
            if (rows < 0) rows = static_cast<std::int64_t>(block.size());
            if (rows != static_cast<std::int64_t>(block.size()))
                throw shape_error("tensor: blocks of a nested list differ in length");
            for (const auto& row : block) {
                if (columns < 0) columns = static_cast<std::int64_t>(row.size());
                if (columns != static_cast<std::int64_t>(row.size()))
                    throw shape_error("tensor: rows of a nested list differ in length");
                values.insert(values.end(), row.begin(), row.end());
            }
        }
        *this = uninitialized({static_cast<std::int64_t>(blocks.size()), std::max<std::int64_t>(rows, 0),
                               std::max<std::int64_t>(columns, 0)});
        copy(values, mutable_data());
    }
    /// Seals a formula: one fused kernel, one tape record.
    template <expression E>
    // NOLINTNEXTLINE: h = relu(h) is how models are written
    tensor(const E& e, std::source_location where = std::source_location::current());

    explicit tensor(any_tensor untyped) : any_tensor(std::move(untyped)) {
        if (type() != dtype_of<T>)
            throw dtype_error(std::string("tensor<") + name_of(dtype_of<T>) + ">: the elements are " + name_of(type()));
    }

    /// In the CPU's memory; waits for the device if that computed them.
    const T* data() const { return static_cast<const T*>(read()); }
    /// Memory to write to; what shares the buffer keeps the old values. Throws argument_error for a tensor that a live
    /// gradient_tape of this thread follows (watched, or computed from what is). Good until the tensor is next copied or used in
    /// an operation.
    T* mutable_data() { return static_cast<T*>(write()); }
    /// The same values off the tape, a constant to it; may be written to. The buffer is shared until then.
    tensor detach() const {
        tensor constant = *this;
        constant.tape_index_ = {};
        return constant;
    }
    /// All elements, row by row; waits as data() does.
    std::span<const T> values() const { return {data(), static_cast<std::size_t>(size())}; }

    /// One element, by an index per axis from 0; `set` writes one. Throws shape_error for another number of indices, range_error
    /// for one outside its axis.
    template <std::integral... Index>
    T operator()(Index... index) const {
        return data()[offset(index...)];
    }
    /// Writes one element: t.set(2.5, row, column). Errors as of operator() and mutable_data.
    template <std::integral... Index>
    void set(T value, Index... index) {
        const std::int64_t at = offset(index...);
        mutable_data()[at] = value;
    }

    // Not a braced list: two pointers are also two bools.
    std::vector<T> to_vector() const { return std::vector<T>(data(), data() + size()); }
    /// The value of a tensor of one element; throws shape_error for others.
    T item() const {
        if (size() != 1) throw shape_error("item: the tensor has shape " + to_string(shape()));
        return *data();
    }
    // NOLINTNEXTLINE: float s = sum(a)
    explicit operator T() const { return item(); }

private:
    template <class List>
    static T* copy(const List& from, T* to) {
        for (const auto& value : from) *to++ = static_cast<T>(value);
        return to;
    }
    static std::int64_t width(const std::initializer_list<std::initializer_list<number_type>>& rows) {
        return rows.size() == 0 ? 0 : static_cast<std::int64_t>(rows.begin()->size());
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
            if (at[i] < 0 || at[i] >= shape()[i].value)
                throw range_error("tensor: index " + std::to_string(at[i]) + " on axis " + std::to_string(i) +
                                  " is outside shape " + to_string(shape()));
            flat = flat * shape()[i].value + at[i];
        }
        return flat;
    }
};

/// A tensor with every element `value`.
template <class T>
tensor<T> full(const shape& dims, T value) {
    auto result = tensor<T>::uninitialized(dims);
    std::fill_n(result.mutable_data(), result.size(), value);
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
    T* const to = result.mutable_data();
    for (std::int64_t i = 0; i < count; ++i)
        to[i] = static_cast<T>(static_cast<real>(begin) + static_cast<real>(i) * static_cast<real>(step));
    return result;
}
/// Copies from any contiguous range; throws shape_error where its size is not the product of the extents.
template <class T, class Range>
tensor<T> from_range(const Range& values, const shape& dims) {
    auto result = tensor<T>::uninitialized(dims);
    const auto count = static_cast<std::int64_t>(std::size(values));
    if (count != result.size())
        throw shape_error("from_range: " + std::to_string(count) + " values for shape " + to_string(dims));
    T* to = result.mutable_data();
    for (const auto& value : values) *to++ = static_cast<T>(value);
    return result;
}

/// Nested brackets; of more than 1000 elements three at either end of long axes.
template <class T>
std::string to_string(const tensor<T>& t) {
    std::string text;
    detail::print_axis(text, t.data(), t.shape(), 0, 0);
    return text;
}

template <class Stream, class T>
    requires requires(Stream& out, const std::string& text) { out << text; }
Stream& operator<<(Stream& out, const tensor<T>& t) {
    out << to_string(t);
    return out;
}

} // namespace tapegraph
