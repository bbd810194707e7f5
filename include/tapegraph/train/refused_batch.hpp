#pragma once

#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/graph/refusal.hpp>

#include <concepts>
#include <type_traits>

/// Arguments that users pass by mistake instead of a batch. Each has an overload that takes nothing
/// else and says what to write, so that the compiler does not list the other overloads.

namespace tapegraph::detail {

template <class Given, class Element>
concept tensor_of_another_type = requires {
    typename Given::element_type;
}
&&std::same_as<Given, tensor<typename Given::element_type>> && !std::same_as<typename Given::element_type, Element>;

/// A std::vector, std::array or std::span of numbers or of tensors.
template <class Given>
concept range_without_shape = !std::derived_from<Given, any_tensor> && requires(const Given& g) {
    g.data();
    g.size();
    requires std::is_arithmetic_v<std::remove_cvref_t<decltype(*g.data())>> ||
        std::derived_from<std::remove_cvref_t<decltype(*g.data())>, any_tensor>;
};

template <class First, class... Elements>
struct first_element {
    using type = First;
};

/// Inputs and labels one of which is a range.
template <class... Given>
concept given_a_range = (range_without_shape<Given> || ...);

/// Too few or too many tensors or formulas.
template <std::size_t Count, class... Given>
concept tensors_of_another_count = sizeof...(Given) != Count && (tensor_like<Given> && ...);

#define TG_COUNT_OF_INPUTS "a tensor for each input of the model"
#define TG_COUNT_OF_COLUMNS                                                                                            \
    "a tensor for each input of the model, then one of labels for each column of its losses"
#define TG_A_RANGE_HAS_NO_SHAPE                                                                                        \
    "a batch is one tensor, and this has no shape: tg::tensor<float>(values, {records, features}) of numbers, "        \
    "tg::concat(tensors, 0) or tg::stack(tensors) of tensors"
#define TG_ANOTHER_ELEMENT_TYPE                                                                                        \
    "the model takes elements of its spec's type: give it tg::cast<float>(x), or compile it for tg::spec<double, ...>"

using range_given = ir::advice<TG_A_RANGE_HAS_NO_SHAPE>;
using columns_missing = ir::advice<TG_COUNT_OF_COLUMNS>;
/// {.batch_size = 128}, which fit takes.
struct batch_size_in_braces {
    std::int64_t batch_size;
};
using batch_size_given =
    ir::advice<"tensors are one batch: predict(x), evaluate(x, y); of a data set, in batches: predict(set, 128), evaluate(set, 128)">;
using another_type_given = ir::advice<TG_ANOTHER_ELEMENT_TYPE>;

} // namespace tapegraph::detail
