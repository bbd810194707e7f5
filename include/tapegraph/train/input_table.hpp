#pragma once

#include <tapegraph/model/spec.hpp>
#include <tapegraph/train/trainer.hpp>

#include <string_view>

/// The inputs of a model as a table of constants: code that does not depend on the model's type checks
/// batches with it.

namespace tapegraph::detail {

template <class Spec>
struct input_table;
template <class... Inputs>
struct input_rows {
    static constexpr int count = sizeof...(Inputs);
    // The columns that a batch must have; the last element is empty.
    static inline const input_spec rows[count + 1]{{Inputs::name, dtype_of<typename Inputs::spec_type::element_type>,
                                                    Inputs::spec_type::rank, Inputs::spec_type::extents,
                                                    &Inputs::spec_type::text}...};
};
template <class Spec>
struct only_input {
    using spec_type = Spec;
    static constexpr std::string_view name{};
};
template <class T, auto... Extents>
struct input_table<spec<T, Extents...>> : input_rows<only_input<spec<T, Extents...>>> {};
template <class... Inputs>
struct input_table<inputs<Inputs...>> : input_rows<Inputs...> {};

} // namespace tapegraph::detail
