#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/any_tensor.hpp>
#include <tapegraph/formats/host_array.hpp>

#include <cstring>
#include <string>
#include <vector>

/// Converts arrays of files to tensors, and back.

namespace tapegraph::io {

/// A tensor of the array's values; `what` is its name in the error, a shape_error for more than 8
/// axes.
any_tensor tensor_of_array(const host_array& array, const std::string& what);

/// The values of a tensor as an array.
inline host_array array_of_tensor(const any_tensor& value) {
    const shape& dims = value.shape();
    host_array array = host_array::zeros(value.type(), {dims.data(), dims.data() + dims.rank()});
    if (!array.bytes.empty()) std::memcpy(array.bytes.data(), value.read(), array.bytes.size());
    return array;
}

#if TG_DEFINES_FOR_HOST(formats)

TG_DEFINITION any_tensor tensor_of_array(const host_array& array, const std::string& what) {
    if (array.shape.size() > static_cast<std::size_t>(max_rank))
        throw shape_error(what + " has shape " + shape_text(array.shape) + ", more than " + std::to_string(max_rank) +
                          " axes");
    any_tensor value(array.type, shape(static_cast<int>(array.shape.size()), array.shape.data()));
    if (!array.bytes.empty()) std::memcpy(value.overwrite(), array.bytes.data(), array.bytes.size());
    return value;
}

#endif

} // namespace tapegraph::io
