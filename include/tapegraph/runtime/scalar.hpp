#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/element_types.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/runtime/device_runtime.hpp>

#include <cstdint>
#include <string>

namespace tapegraph::runtime {

/// Writes a number into a tensor of one element, rounded to its element type.
inline void store_scalar(const buffer_view& target, double value) {
    const bool known = common_types::visit(
        target.type, [&]<class T>(std::type_identity<T>) { *target.as<T>() = static_cast<T>(value); });
    if (!known) throw dtype_error("a constant of an element type without arithmetic");
}

/// Reads a floating-point tensor of one element as a number.
inline double load_scalar(const buffer_view& source) {
    double value = 0;
    floating_types::visit(source.type,
                          [&]<class T>(std::type_identity<T>) { value = static_cast<double>(*source.as<T>()); });
    return value;
}

/// Reads at most eight such tensors on device `d` (null: the CPU) as numbers. The host waits once
/// for all of them. Throws shape_error for a tensor of several elements.
void load_scalars(device_runtime* d, const buffer_view* sources, int count, double* to);

#if TG_DEFINES(runtime)

TG_DEFINITION void load_scalars(device_runtime* d, const buffer_view* sources, int count, double* to) {
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

#endif

} // namespace tapegraph::runtime
