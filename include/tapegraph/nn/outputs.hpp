#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/graph/program.hpp>

#include <cstring>
#include <string>

namespace tapegraph::detail {

/// Output `index` of a program that has run, copied into a new tensor on the device that the program runs on. Throws dtype_error
/// where the output has another element type.
template <class T>
tensor<T> output_tensor(const ir::program& p, int index) {
    const device_scope on(p.device());
    const buffer_view& from = p.device_output(index);
    if (from.type != dtype_of<T>)
        throw dtype_error(std::string("the output is ") + name_of(from.type) + ", asked for as " +
                          name_of(dtype_of<T>));
    auto result = tensor<T>::uninitialized(shape(from.rank, from.extents));
    const buffer_view to = result.view();
    if (p.device() == nullptr)
        std::memcpy(to.data, from.data, from.bytes());
    else
        p.device()->copy(to.data, from.data, from.bytes());
    return result;
}

} // namespace tapegraph::detail
