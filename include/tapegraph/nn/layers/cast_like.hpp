#pragma once

#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/movement/fill.hpp>

namespace tapegraph::detail {

/// Casts values to the floating element type of a handle: a type in eager mode, a node's value in
/// graph mode.
template <handle H, tensor_like E>
constexpr H cast_like(const H& like, const E& values, std::source_location where) {
    if constexpr (requires { typename H::element_type; }) {
        return eval(cast<typename H::element_type>(values), where);
    } else {
        H result;
        const auto as = [&]<class T>(std::type_identity<T>) { result = eval(cast<T>(values), where); };
        if (!floating_types::visit(like.type(), as)) as(std::type_identity<float>{});
        return result;
    }
}

/// 0, 1, ... along one axis of a shape [1, ..., count, ..., 1]. (A reshape would be a row of the
/// summary.)
template <class T, handle H>
constexpr auto numbers_along(const H& like, extent count, int axis, int rank, std::source_location where) {
    shape dims = no_axes(shape_of(like));
    for (int i = 0; i < rank; ++i) dims.push_back(i == axis ? count : extent(1));
    return invoke<arange_op<T>>({0, 1, 0, 0}, &dims, where, like);
}

} // namespace tapegraph::detail
