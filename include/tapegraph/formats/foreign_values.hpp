#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/element_types.hpp>
#include <tapegraph/formats/host_array.hpp>
#include <tapegraph/formats/strided_copy.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

/// Converts the order and type of arrays, for weights of other libraries.

namespace tapegraph::io::detail {

/// Element i of a floating array.
inline double floating_element(const host_array& a, std::size_t i) {
    const std::byte* const at = a.bytes.data() + i * size_of(a.type);
    double number = 0;
    floating_types::visit(a.type, [&]<class T>(std::type_identity<T>) {
        T value;
        std::memcpy(&value, at, sizeof(T));
        number = static_cast<double>(value);
    });
    return number;
}

/// Converts an array to another floating type, rounded to nearest. Returns false if either type is
/// not floating.
bool convert_floats(host_array& a, dtype to);

/// The same elements with another shape of equal size.
inline host_array reshaped(host_array a, std::vector<std::int64_t> shape) {
    a.shape = std::move(shape);
    return a;
}

/// Axis i of the result is axis order[i] of a.
host_array permuted(const host_array& a, const std::vector<std::size_t>& order);

/// Rows [begin, begin + count) of the first axis.
host_array rows_of(const host_array& a, std::int64_t begin, std::int64_t count);

/// a + b, of one shape, both floating, computed and stored in the wider type or f32.
host_array sum_of(const host_array& a, const host_array& b);

#if TG_DEFINES(formats)

TG_DEFINITION bool convert_floats(host_array& a, dtype to) {
    if (a.type == to) return true;
    if (!is_floating(a.type) || !is_floating(to)) return false;
    const auto count = static_cast<std::size_t>(a.size());
    std::vector<std::byte> bytes(count * size_of(to));
    floating_types::visit(to, [&]<class T>(std::type_identity<T>) {
        using wide = std::conditional_t<storage_type<T>, float, double>; // 16 bits are rounded from float
        for (std::size_t i = 0; i < count; ++i) {
            const T value = static_cast<T>(static_cast<wide>(floating_element(a, i)));
            std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
        }
    });
    a.bytes = std::move(bytes);
    a.type = to;
    return true;
}

TG_DEFINITION host_array permuted(const host_array& a, const std::vector<std::size_t>& order) {
    const auto strides = strides_of(std::span(a.shape));
    std::vector<std::int64_t> shape, steps;
    for (const std::size_t axis : order) {
        shape.push_back(a.shape[axis]);
        steps.push_back(strides[axis]);
    }
    host_array result{a.type, shape, std::vector<std::byte>(a.bytes.size())};
    copy_strided(result.bytes.data(), a.bytes.data(), shape, steps, size_of(a.type));
    return result;
}

TG_DEFINITION host_array rows_of(const host_array& a, std::int64_t begin, std::int64_t count) {
    host_array part{a.type, a.shape, {}};
    const std::size_t row = a.shape[0] == 0 ? 0 : a.bytes.size() / static_cast<std::size_t>(a.shape[0]);
    part.shape[0] = count;
    const auto from = a.bytes.begin() + static_cast<std::ptrdiff_t>(row * static_cast<std::size_t>(begin));
    part.bytes.assign(from, from + static_cast<std::ptrdiff_t>(row * static_cast<std::size_t>(count)));
    return part;
}

TG_DEFINITION host_array sum_of(const host_array& a, const host_array& b) {
    const bool wide = a.type == dtype::f64 || b.type == dtype::f64;
    host_array sum = host_array::zeros(wide ? dtype::f64 : dtype::f32, a.shape);
    for (std::size_t i = 0; i < static_cast<std::size_t>(sum.size()); ++i) {
        const double value = floating_element(a, i) + floating_element(b, i);
        if (wide)
            sum.values<double>()[i] = value;
        else
            sum.values<float>()[i] = static_cast<float>(value);
    }
    return sum;
}

#endif

} // namespace tapegraph::io::detail
