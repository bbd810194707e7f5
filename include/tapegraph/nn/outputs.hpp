#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/graph/program.hpp>
#include <tapegraph/nn/columns.hpp>

#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace tapegraph::detail {

/// Output `index` of a program that has run, copied into a new tensor on the device that the program runs on.
template <class = void>
any_tensor output_copy(const ir::program& p, int index) {
    const device_scope on(p.device());
    const buffer_view& from = p.device_output(index);
    any_tensor result(from.type, shape(from.rank, from.extents));
    const buffer_view to = result.view();
    if (p.device() == nullptr)
        std::memcpy(to.data, from.data, from.bytes());
    else
        p.device()->copy(to.data, from.data, from.bytes());
    return result;
}

/// Output `index` of a program that has run, copied into a new tensor on the device that the program runs on. Throws dtype_error
/// where the output has another element type.
template <class T>
tensor<T> output_tensor(const ir::program& p, int index) {
    const dtype type = p.device_output(index).type;
    if (type != dtype_of<T>)
        throw dtype_error(std::string("the output is ") + name_of(type) + ", asked for as " + name_of(dtype_of<T>));
    return tensor<T>(output_copy(p, index));
}

template <class Stage, std::size_t I>
using output_element = element_t<Stage::value.nodes[Stage::value.outputs[static_cast<int>(I)].node].type>;

/// What a model returns as nodes, with tensors in their place: `fill` writes them. Their element types are those of Stage's outputs.
template <class Result, class Stage, class Fill>
auto result_tensors(const Fill& fill) {
    if constexpr (is_outputs<Result>) {
        return [&]<fixed_string... Names, class... Handles>(const outputs<named_output<Names, Handles>...>*) {
            any_tensor all[sizeof...(Handles)];
            fill(std::span<any_tensor>(all));
            return [&]<std::size_t... I>(std::index_sequence<I...>) {
                return outputs{named_output<Names, tensor<output_element<Stage, I>>>{
                    tensor<output_element<Stage, I>>(std::move(all[I]))}...};
            }
            (std::index_sequence_for<Handles...>{});
        }
        (static_cast<const Result*>(nullptr));
    } else {
        any_tensor only;
        fill(std::span<any_tensor>(&only, 1));
        return tensor<output_element<Stage, 0>>(std::move(only));
    }
}

} // namespace tapegraph::detail
