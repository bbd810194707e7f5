#pragma once

#include <tapegraph/model/initializer.hpp>
#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/elementwise/comparison.hpp>
#include <tapegraph/ops/elementwise/in_float.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/gather/rows_kernel.hpp>
#include <tapegraph/ops/scan/step_mask.hpp>
#ifdef TG_CUDA
#include <tapegraph/cuda/ops/gather/rows.cuh>
#endif

/// The embedding layer. Not part of tapegraph.hpp: programs without it do not compile it.

namespace tapegraph {

/// Defaults are those of Keras. Keras's `mask_zero` is an argument where the mask is used: see
/// embedding_mask.
struct embedding_options {
    std::int64_t input_dim = 1;  ///< rows of the table: indices are in [0, input_dim)
    std::int64_t output_dim = 1; ///< numbers per index
    initializer embeddings_initializer = init::uniform{};
    /// The gradient is taken by the rows used, and an optimizer updates only these: the others keep
    /// their weights and their state in that step, as with PyTorch's SparseAdam or TensorFlow's
    /// LazyAdam. With plain sgd this makes no difference.
    bool sparse = false;
    regularizer embeddings_regularizer{}; ///< applies to the whole table: refused with `sparse`
    constraint embeddings_constraint{};
};

namespace detail {

// The element type is known by type in eager mode and by value in graph mode.
template <handle H>
constexpr auto as_indices(const H& x, std::source_location where) {
    if constexpr (requires { typename H::element_type; }) {
        if constexpr (is_floating_type<typename H::element_type>)
            return eval(cast<std::int32_t>(x), where);
        else
            return x;
    } else {
        return is_floating(x.type()) ? H(eval(cast<std::int32_t>(x), where)) : x;
    }
}

/// A variable of type T, or, if T is void, of the type of `like` if that is floating, and of float
/// otherwise.
template <class T, class Scope, handle H>
constexpr auto floating_variable(const Scope& scope, const H& like, std::string_view name, const shape& dims,
                                 const variable_options& options) {
    if constexpr (!std::is_void_v<T>) {
        return scope.template variable<T>(name, dims, options);
    } else if constexpr (requires { typename H::element_type; }) {
        if constexpr (std::is_floating_point_v<typename H::element_type>)
            return scope.variable_like(like, name, dims, options);
        else
            return scope.template variable<float>(name, dims, options);
    } else {
        return scope.variable_like(like, name, dims, options);
    }
}

} // namespace detail

/// Looks up rows of a table "embeddings" [input_dim, output_dim]: indices [...] to [...,
/// output_dim]. Indices are i32 or i64; floating ones are cast to i32, as in Keras. T is the
/// table's element type, by default that of floating indices and float for others. An index outside
/// [0, input_dim) is a range_error of gather. The table's gradient is the scatter_add of the rows'
/// gradients: rows that occur twice get the sum. With `sparse` a step's time does not depend on the
/// table's size.
template <class T = void, layer_scope Scope, tensor_like X>
constexpr auto embedding(const Scope& scope, const X& indices, const embedding_options& o,
                         std::source_location where = std::source_location::current()) {
    const auto given = scope.operand(indices, where);
    const auto mark = scope.enter();
    const bool sensible = scope.require(o.input_dim > 0, "embedding: input_dim must be positive") &&
                          scope.require(o.output_dim > 0, "embedding: output_dim must be positive") &&
                          scope.require(!is_storage_type(detail::type_of(given)),
                                        "embedding: 16 bits do not hold indices, give integers") &&
                          scope.require(!o.sparse || (!o.embeddings_regularizer && !o.embeddings_constraint),
                                        "embedding: a sparse table has no regularizer and no constraint");
    const shape table = sensible ? shape{o.input_dim, o.output_dim} : shape{1, 1};
    const auto rows = detail::floating_variable<T>(scope, given, "embeddings", table,
                                                   {.initializer = o.embeddings_initializer,
                                                    .regularizer = o.embeddings_regularizer,
                                                    .constraint = o.embeddings_constraint});
    const auto at = detail::as_indices(given, where);
    return scope.leave("embedding", mark,
                       o.sparse ? scope.gather_rows(rows, at, where) : eval(gather(rows, at, 0, 0, where), where));
}
template <class T = void, layer_scope Scope>
no_such_option_in<embedding_options> embedding(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing embedding(any_argument, ...) TG_MISTAKE;

/// Marks the steps whose index is not `padding`, for recurrent layers over the embedding of indices
/// [batch, time]: Keras's `mask_zero`.
template <tensor_like X>
constexpr auto embedding_mask(const X& indices, std::int64_t padding = 0,
                              std::source_location where = std::source_location::current()) {
    return step_mask{eval(detail::as_indices(eval(indices, where), where) != padding, where)};
}

} // namespace tapegraph
