#pragma once

#include <operations/builders.hpp>

/// The library's operations under names that pytorch_operations.py calls: of operands in double and in float, in eager mode, with
/// attributes that are words and numbers.

namespace tapegraph::testing {

/// The operations, by file.
std::vector<operation> unary_for_pytorch();
std::vector<operation> binary_for_pytorch();
std::vector<operation> reductions_for_pytorch();
std::vector<operation> movement_for_pytorch();
std::vector<operation> products_for_pytorch();

// An expression of operands x, y, z and of `with`; k is with.real[0] where there is one.
#define TG_OF(e, types, ...)                                                                                           \
    make_operation<types>(std::string(), not_drawn{[](__VA_ARGS__, [[maybe_unused]] const attributes& with) {          \
                              [[maybe_unused]] const double k = with.real.empty() ? 0 : with.real[0];                  \
                              return e;                                                                                \
                          }})
#define TG_TYPES(...) __VA_ARGS__
#define TG_ONE(name, ...) named(name, TG_OF((__VA_ARGS__), floating, const auto& x))
#define TG_TWO(name, ...) named(name, TG_OF((__VA_ARGS__), TG_TYPES(floating, floating), const auto& x, const auto& y))
#define TG_THREE(name, ...)                                                                                            \
    named(name,                                                                                                        \
          TG_OF((__VA_ARGS__), TG_TYPES(floating, floating, floating), const auto& x, const auto& y, const auto& z))

/// An operation of one operand, of element type T, whose result's extents depend on its values, which no graph has.
template <class T, class F>
operation eager_alone(std::string name, F) {
    operation made;
    made.name = std::move(name);
    made.types = {dtype_of<element_of<T>>};
    made.domains.resize(1);
    made.weight = 0;
    made.eager = [](const any_tensor* x, const attributes& with) {
        return table_detail::call_eager<F, element_of<T>>(x, with, std::index_sequence<0>{});
    };
    if constexpr (std::is_same_v<T, floating>)
        made.eager_float = [](const any_tensor* x, const attributes& with) {
            return table_detail::call_eager<F, float>(x, with, std::index_sequence<0>{});
        };
    return made;
}
#define TG_EAGER(name, T, ...) eager_alone<T>(name, [](const auto& x, const attributes&) { return __VA_ARGS__; })

inline operation named(std::string name, operation made) {
    made.name = std::move(name);
    return made;
}

} // namespace tapegraph::testing
