#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/scalar/number.hpp>
#include <tapegraph/scalar/structures.hpp>
#include <tapegraph/scalar/tape.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tapegraph {
namespace scalars {

/// The floating-point number inside a number that records, or a jet, however deep.
template <class N>
struct plain_number_in {
    using type = N;
};
template <class T>
struct plain_number_in<real<T>> : plain_number_in<T> {};
template <class T, int N>
struct plain_number_in<jet<T, N>> : plain_number_in<T> {};
template <class Op, class T, class... X>
struct plain_number_in<statement<Op, T, X...>> : plain_number_in<T> {};
template <class N>
using plain_number_in_t = typename plain_number_in<N>::type;

template <class N>
constexpr auto innermost_value(const N& x) {
    if constexpr (recording<N>)
        return innermost_value(x.value());
    else if constexpr (is_jet<N>)
        return innermost_value(x.value);
    else
        return x;
}

} // namespace scalars

/// Numbers with a tensor's shape, in row-major order: the elements of a tensor for code of single numbers, each of which
/// can be a number that records (`tg::real_tensor<>`), a jet, or a plain number. It is an argument and a result of
/// gradient, jacobian, minimize and so on, as std::vector is.
template <class Number>
class number_tensor {
public:
    using value_type = Number;

    /// Without numbers, shape [0].
    number_tensor() : dims_{0} {}
    /// Zeros.
    explicit number_tensor(const tapegraph::shape& dims) : dims_(dims), numbers_(count_of(dims)) {}
    /// Throws shape_error where the shape has another number of elements.
    number_tensor(const tapegraph::shape& dims, std::vector<Number> numbers)
        : dims_(dims), numbers_(std::move(numbers)) {
        if (count_of(dims) != numbers_.size())
            throw shape_error("number_tensor: " + std::to_string(numbers_.size()) + " numbers for shape " +
                              to_string(dims));
    }
    /// The elements of a tensor, which are constants until they are watched.
    template <class T>
        requires(arithmetic<T>&& std::constructible_from<Number, T>)
    explicit number_tensor(const tensor<T>& t) : dims_(t.shape()), numbers_(t.values().begin(), t.values().end()) {}

    /// The extents of its axes.
    const tapegraph::shape& shape() const { return dims_; }
    /// The number of axes; 0 for a scalar.
    int rank() const { return dims_.rank(); }
    std::size_t size() const { return numbers_.size(); }
    /// The values as a tensor, which are constants. Their derivatives by a tape are in adjoints().
    auto values() const {
        using T = scalars::plain_number_in_t<Number>;
        auto result = tensor<T>::uninitialized(dims_);
        T* to = result.mutable_data();
        for (const Number& x : numbers_) *to++ = scalars::innermost_value(x);
        return result;
    }

    /// One number, by one index per axis from 0. Throws shape_error for another number of indices, range_error for an
    /// index outside its axis.
    template <std::integral... Index>
    Number& operator()(Index... index) {
        return numbers_[offset(index...)];
    }
    template <std::integral... Index>
    const Number& operator()(Index... index) const {
        return numbers_[offset(index...)];
    }
    /// The number of a number_tensor that has one; throws shape_error for others.
    const Number& item() const {
        if (size() != 1) throw shape_error("number_tensor::item: the shape is " + to_string(dims_));
        return numbers_[0];
    }
    /// The numbers one after the other.
    Number& operator[](std::size_t i) { return numbers_[i]; }
    const Number& operator[](std::size_t i) const { return numbers_[i]; }
    auto begin() { return numbers_.begin(); }
    auto end() { return numbers_.end(); }
    auto begin() const { return numbers_.begin(); }
    auto end() const { return numbers_.end(); }

    // For transforms (scalar/structures.hpp).
    /// Takes the other's shape; the elements are not set.
    template <class Other>
    void resize_like(const number_tensor<Other>& like) {
        dims_ = like.shape();
        numbers_.resize(like.size());
    }

private:
    static std::size_t count_of(const tapegraph::shape& dims) {
        for (int i = 0; i < dims.rank(); ++i)
            if (dims[i].value < 0) throw shape_error("number_tensor: negative extent in shape " + to_string(dims));
        return static_cast<std::size_t>(dims.elements());
    }
    template <class... Index>
    std::size_t offset(Index... index) const {
        if (sizeof...(index) != static_cast<std::size_t>(rank()))
            throw shape_error("number_tensor: " + std::to_string(sizeof...(index)) + " indices for shape " +
                              to_string(dims_));
        const std::int64_t at[sizeof...(index) + 1]{static_cast<std::int64_t>(index)...};
        std::int64_t flat = 0;
        for (int i = 0; i < rank(); ++i) {
            if (at[i] < 0 || at[i] >= dims_[i].value) detail::throw_index(at[i], i, dims_);
            flat = flat * dims_[i].value + at[i];
        }
        return static_cast<std::size_t>(flat);
    }

    tapegraph::shape dims_;
    std::vector<Number> numbers_;
};
template <class T>
number_tensor(const tensor<T>&) -> number_tensor<T>;

template <class T = double>
using real_tensor = number_tensor<real<T>>;

template <class N>
struct scalars::sequence_of<number_tensor<N>> {
    using element = N;
    template <class V>
    using with = number_tensor<V>;
};

/// The derivatives by the numbers of x of what the tape has swept (real_tape::backward), as a tensor of x's shape.
template <class T>
tensor<T> adjoints(const real_tape<T>& tape, const number_tensor<real<T>>& x) {
    auto result = tensor<T>::uninitialized(x.shape());
    T* to = result.mutable_data();
    for (const real<T>& each : x) *to++ = tape.adjoint(each);
    return result;
}

} // namespace tapegraph
