#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/half.hpp>
#include <tapegraph/runtime/device_runtime.hpp>

#include <cstdint>
#include <string>

namespace tapegraph::runtime {

/// Writes a number into a tensor of one element, rounded to its element type.
inline void store_scalar(const buffer_view& target, double value) {
    switch (target.type) {
    case dtype::f32: *target.as<float>() = static_cast<float>(value); break;
    case dtype::f64: *target.as<double>() = value; break;
    case dtype::f16: *target.as<half>() = half(value); break;
    case dtype::bf16: *target.as<bfloat16>() = bfloat16(value); break;
    case dtype::i32: *target.as<std::int32_t>() = static_cast<std::int32_t>(value); break;
    case dtype::i64: *target.as<std::int64_t>() = static_cast<std::int64_t>(value); break;
    case dtype::u8: *target.as<std::uint8_t>() = static_cast<std::uint8_t>(value); break;
    case dtype::boolean: *target.as<bool>() = value != 0; break;
    default: throw dtype_error("a constant of an element type without arithmetic");
    }
}

/// Reads a floating-point tensor of one element as a number.
inline double load_scalar(const buffer_view& source) {
    switch (source.type) {
    case dtype::f64: return *source.as<double>();
    case dtype::f16: return static_cast<double>(*source.as<half>());
    case dtype::bf16: return static_cast<double>(*source.as<bfloat16>());
    default: return static_cast<double>(*source.as<float>());
    }
}

/// Reads at most eight such tensors on device `d` (null: the CPU) as numbers. The host waits once
/// for all of them. Throws shape_error for a tensor of several elements.
template <class = void>
void load_scalars(device_runtime* d, const buffer_view* sources, int count, double* to) {
    constexpr int most = 8;
    std::uint64_t words[most]{};
    device_runtime::piece pieces[most]{};
    if (count > most) throw argument_error("load_scalars: " + std::to_string(count) + " tensors, at most 8");
    for (int i = 0; i < count; ++i) {
        const buffer_view& v = sources[i];
        if (v.elements() != 1) throw shape_error("item: the tensor has shape " + to_string(shape(v.rank, v.extents)));
        pieces[i] = {&words[i], v.data, v.bytes()};
    }
    if (d != nullptr) d->bring_to_host(pieces, count);
    for (int i = 0; i < count; ++i) {
        buffer_view v = sources[i];
        if (d != nullptr) v.data = &words[i];
        to[i] = load_scalar(v);
    }
}

TG_COMPILED(runtime, void load_scalars<void>(device_runtime*, const buffer_view*, int, double*))

} // namespace tapegraph::runtime
