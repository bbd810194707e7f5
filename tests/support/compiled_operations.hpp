#pragma once

#include <tapegraph/tapegraph.hpp>

/// Operations of eager mode, and their records on the tape, that many tests use and the component has not: on tensors of double all
/// that it has of float, and some of both that programs seldom call. The precompiled header of the tests declares them
/// (extern template), compiled_operations.cpp defines them once.

#ifdef TG_COMPONENT
#ifdef TG_DEFINES_OPERATIONS_OF_TESTS
#define TG_INSTANTIATED(...) template __VA_ARGS__;
#else
#define TG_INSTANTIATED(...) extern template __VA_ARGS__;
#endif

#define TG_TENSORS(count, element, result, operation)                                                                  \
    TG_INSTANTIATED(tensor<result> eager::run<operation, TG_LIST_##count(element)>(                                    \
        const operation::attributes&, const shape*, std::source_location, TG_PARAMETERS_##count(element)))             \
    TG_INSTANTIATED(struct detail::operation_record<operation, tensor<result>, TG_TYPES_##count(element)>)
#define TG_LIST_1(a) a
#define TG_LIST_2(a) a, a
#define TG_LIST_3(a) a, a, a
#define TG_LIST_4(a) a, a, a, a
#define TG_LIST_5(a) a, a, a, a, a
#define TG_LIST_7(a) a, a, a, a, a, a, a
#define TG_TYPES_1(a) TG_LIST_1(tensor<a>)
#define TG_TYPES_2(a) TG_LIST_2(tensor<a>)
#define TG_TYPES_3(a) TG_LIST_3(tensor<a>)
#define TG_TYPES_4(a) TG_LIST_4(tensor<a>)
#define TG_TYPES_5(a) TG_LIST_5(tensor<a>)
#define TG_TYPES_7(a) TG_LIST_7(tensor<a>)
#define TG_PARAMETERS_1(a) TG_LIST_1(const tensor<a>&)
#define TG_PARAMETERS_2(a) TG_LIST_2(const tensor<a>&)
#define TG_PARAMETERS_3(a) TG_LIST_3(const tensor<a>&)
#define TG_PARAMETERS_4(a) TG_LIST_4(const tensor<a>&)
#define TG_PARAMETERS_5(a) TG_LIST_5(const tensor<a>&)
#define TG_PARAMETERS_7(a) TG_LIST_7(const tensor<a>&)

#define TG_MORE_OPERATIONS_ON_TENSORS                                                                                  \
    TG_TENSORS(1, TG_ELEMENT, TG_ELEMENT, arange_op<TG_ELEMENT>)                                                       \
    TG_TENSORS(1, TG_ELEMENT, std::int32_t, arange_op<std::int32_t>)                                                   \
    TG_TENSORS(1, TG_ELEMENT, std::int32_t, arg_reduce_op)                                                             \
    TG_TENSORS(1, TG_ELEMENT, std::int32_t, argsort_op)                                                                \
    TG_TENSORS(2, TG_ELEMENT, TG_ELEMENT, detail::length_op)                                                           \
    TG_TENSORS(4, TG_ELEMENT, TG_ELEMENT, normalization_gradient_op)                                                   \
    TG_TENSORS(5, TG_ELEMENT, TG_ELEMENT, attention_op)                                                                \
    TG_TENSORS(7, TG_ELEMENT, TG_ELEMENT, attention_gradient_op)                                                       \
    TG_TENSORS(2, TG_ELEMENT, TG_ELEMENT, detail::product_gradient_op<0>)                                              \
    TG_TENSORS(3, TG_ELEMENT, TG_ELEMENT, detail::product_gradient_op<1>)                                              \
    TG_TENSORS(4, TG_ELEMENT, TG_ELEMENT, detail::product_gradient_op<2>)                                              \
    TG_TENSORS(5, TG_ELEMENT, TG_ELEMENT, detail::product_gradient_op<3>)                                              \
    TG_TENSORS(2, TG_ELEMENT, TG_ELEMENT, detail::product_terms_op<1>)                                                 \
    TG_TENSORS(3, TG_ELEMENT, TG_ELEMENT, detail::product_terms_op<2>)                                                 \
    TG_TENSORS(4, TG_ELEMENT, TG_ELEMENT, detail::product_terms_op<3>)                                                 \
    TG_TWO_TENSORS(std::int32_t, take_along_op)                                                                        \
    TG_TWO_TENSORS(std::int32_t, put_along_op)                                                                         \
    TG_TWO_TENSORS(std::int32_t, sparse_softmax_cross_entropy_op)                                                      \
    TG_THREE_TENSORS(TG_ELEMENT, std::int32_t, sparse_softmax_cross_entropy_gradient_op)

namespace tapegraph {
#define TG_ELEMENT double
TG_OPERATIONS_ON_TENSORS
TG_MORE_OPERATIONS_ON_TENSORS
#undef TG_ELEMENT
#define TG_ELEMENT float
TG_MORE_OPERATIONS_ON_TENSORS
#undef TG_ELEMENT
#define TG_ELEMENT std::int32_t
TG_TENSORS_1(reshape_op)
TG_TENSORS_1(transpose_op)
TG_TENSORS_1(slice_op)
#undef TG_ELEMENT
#define TG_ELEMENT bool
TG_TENSORS_1(reshape_op)
#undef TG_ELEMENT
} // namespace tapegraph
#undef TG_INSTANTIATED
#endif
