#pragma once

#include <tapegraph/core/element_types.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/shape.hpp>
#include <tapegraph/eager/any_tensor.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

/// Tensors of a file that are known before the model runs.

namespace tapegraph::io::onnx_import {

/// Elements in row-major order. Integers that stand for extents may be symbolic (core/extent.hpp). Copies share the
/// elements, also with `tensor()`, until one of them is written.
class array {
public:
    array() = default;
    /// Zeros.
    array(dtype type, std::vector<std::int64_t> dims) : array(unwritten(type, std::move(dims))) {
        if (byte_count() > 0) std::memset(data(), 0, byte_count());
    }
    /// Elements that the caller writes, all of them.
    static array unwritten(dtype type, std::vector<std::int64_t> dims) {
        array a;
        a.type_ = type;
        a.dims_ = std::move(dims);
        a.elements_ = a.rank() <= max_rank ? any_tensor(type, a.shape())
                                           : any_tensor(dtype::u8, {static_cast<std::int64_t>(a.byte_count())});
        return a;
    }

    static array integers(const std::vector<std::int64_t>& items, bool scalar = false) {
        array a(dtype::i64,
                scalar ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{std::int64_t(items.size())});
        if (!items.empty()) std::memcpy(a.data(), items.data(), items.size() * sizeof(std::int64_t));
        a.extents_ = true;
        return a;
    }

    dtype type() const { return type_; }
    const std::vector<std::int64_t>& dims() const { return dims_; }
    int rank() const { return static_cast<int>(dims_.size()); }
    std::int64_t size() const {
        std::int64_t product = 1;
        for (const std::int64_t d : dims_) product *= d;
        return product;
    }
    std::size_t byte_count() const { return static_cast<std::size_t>(size()) * size_of(type_); }
    void* data() { return elements_.overwrite(); }
    const void* data() const { return elements_.read(); }
    void set_dims(std::vector<std::int64_t> dims) { dims_ = std::move(dims); }

    /// Element i as an integer; floating elements are truncated.
    std::int64_t integer(std::int64_t i) const {
        return visit_type(type_, [&]<class T>(std::type_identity<T>) {
            if constexpr (is_floating_type<T>)
                return static_cast<std::int64_t>(number(i));
            else // a byte of a file need not be a valid bool
                return static_cast<std::int64_t>(at<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>(i));
        });
    }
    /// Element i as a double: exact except for integers beyond 2^53.
    double number(std::int64_t i) const {
        double value = 0;
        const auto read = [&]<class T>(std::type_identity<T>) { value = static_cast<double>(at<T>(i)); };
        return floating_types::visit(type_, read) ? value : static_cast<double>(integer(i));
    }
    std::vector<std::int64_t> as_integers() const {
        std::vector<std::int64_t> items;
        for (std::int64_t i = 0; i < size(); ++i) items.push_back(integer(i));
        return items;
    }
    /// Whether some element is an extent that is not known yet.
    bool symbolic() const {
        if (!extents_) return false; // integers of a file may be as low as those that encode symbols
        for (std::int64_t i = 0; i < size(); ++i)
            if (is_symbolic(integer(i))) return true;
        return false;
    }

    /// The same elements with their axes in another order: axis i of the result is axis order[i] of this.
    array transposed(const std::vector<int>& order) const {
        std::vector<std::int64_t> dims = dims_;
        for (std::size_t i = 0; i < order.size(); ++i) dims[i] = dims_[std::size_t(order[i])];
        array to = unwritten(type_, dims);
        if (size() == 0 || rank() == 0) return rank() == 0 ? *this : to;
        std::vector<std::int64_t> stride(dims_.size(), 1), step(dims_.size()), at(dims_.size(), 0);
        for (int i = rank() - 2; i >= 0; --i)
            stride[std::size_t(i)] = stride[std::size_t(i) + 1] * dims_[std::size_t(i) + 1];
        for (std::size_t i = 0; i < order.size(); ++i) step[i] = stride[std::size_t(order[i])];
        switch (size_of(type_)) {
        case 1: to.copy_strided<std::uint8_t>(*this, step, at); break;
        case 2: to.copy_strided<std::uint16_t>(*this, step, at); break;
        case 4: to.copy_strided<std::uint32_t>(*this, step, at); break;
        default: to.copy_strided<std::uint64_t>(*this, step, at); break;
        }
        return to;
    }

    /// The same elements with blocks of axis 1 in another order: block k of the result is block blocks[k] of this.
    array with_blocks(const std::vector<int>& blocks) const {
        array to = unwritten(type_, dims_);
        const std::size_t chunk = byte_count() / static_cast<std::size_t>(dims_[0]) / blocks.size();
        auto* const out = static_cast<std::byte*>(to.data());
        const auto* const in = static_cast<const std::byte*>(data());
        for (std::size_t i = 0; i < byte_count() / chunk; ++i)
            std::memcpy(out + i * chunk,
                        in + (i - i % blocks.size() + static_cast<std::size_t>(blocks[i % blocks.size()])) * chunk,
                        chunk);
        return to;
    }

    tapegraph::shape shape() const {
        if (rank() > max_rank)
            throw shape_error("a tensor of rank " + std::to_string(rank()) + ": 8 is the highest here");
        return tapegraph::shape(rank(), dims_.data());
    }
    any_tensor tensor() const {
        if (elements_.type() == type_ && elements_.shape() == shape()) return elements_;
        any_tensor t(type_, shape());
        if (byte_count() > 0) std::memcpy(t.overwrite(), data(), byte_count());
        return t;
    }

private:
    // Fills the result in row-major order; `step` is the distance in `from` between neighbours
    // along an axis.
    template <class T>
    void copy_strided(const array& from, const std::vector<std::int64_t>& step, std::vector<std::int64_t> at) {
        const auto* const in = static_cast<const T*>(from.data());
        auto* out = static_cast<T*>(data());
        const std::int64_t row = dims_.back(), stride = step.back(), rows = size() / row;
        std::int64_t first = 0;
        for (std::int64_t r = 0; r < rows; ++r, out += row) {
            for (std::int64_t i = 0; i < row; ++i) out[i] = in[first + i * stride];
            for (int i = rank() - 2; i >= 0; --i) {
                const auto axis = static_cast<std::size_t>(i);
                first += step[axis];
                if (++at[axis] < dims_[axis]) break;
                first -= step[axis] * at[axis];
                at[axis] = 0;
            }
        }
    }
    template <class T>
    T at(std::int64_t i) const {
        T value;
        std::memcpy(&value, static_cast<const std::byte*>(data()) + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
        return value;
    }

    dtype type_ = dtype::f32;
    std::vector<std::int64_t> dims_;
    any_tensor
        elements_; // of this type and shape, unless set_dims gave another one or there are more axes than a tensor's
    bool extents_ = false; // whether the elements are extents
};
using array_pointer = std::shared_ptr<const array>;

} // namespace tapegraph::io::onnx_import
