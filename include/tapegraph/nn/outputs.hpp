#pragma once

#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/graph/program.hpp>

#include <cstring>

namespace tapegraph::detail {

/// Output `index` of a program that has run, as a tensor of its own where the program runs.
template <class T>
tensor<T> output_tensor(const ir::program& p, int index) {
    const device_scope on(p.device());
    const buffer_view& from = p.placed_output(index);
    auto result = tensor<T>::uninitialized(shape(from.rank, from.extents));
    const buffer_view to = result.view();
    if (p.device() == nullptr)
        std::memcpy(to.data, from.data, from.bytes());
    else
        p.device()->copy(to.data, from.data, from.bytes());
    return result;
}

} // namespace tapegraph::detail
