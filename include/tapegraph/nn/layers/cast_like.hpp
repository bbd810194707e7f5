#pragma once

#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/movement/view.hpp>

namespace tapegraph::detail {

/// Values in the element type of a handle, float or double: of a type in eager mode, of a node's value in graph mode.
template <handle H, tensor_like E>
constexpr H cast_like(const H& like, const E& values, std::source_location where) {
    if constexpr (requires { typename H::element_type; })
        return eval(cast<typename H::element_type>(values), where);
    else
        return like.type() == dtype::f64 ? H(eval(cast<double>(values), where)) : H(eval(cast<float>(values), where));
}

/// A vector as a tensor of a rank that lies along one axis: [1, ..., n, ..., 1].
template <handle H>
constexpr H along_axis(const H& vector, int axis, int rank, std::source_location where) {
    const shape from = shape_of(vector);
    shape target = no_axes(from);
    for (int i = 0; i < rank; ++i) target.push_back(i == axis ? from[0] : extent(1));
    return reshape(vector, target, where);
}

} // namespace tapegraph::detail
