#pragma once

#include <tapegraph/core/math/logarithm.hpp>
#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/cast_like.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/ops/elementwise/exponential.hpp>
#include <tapegraph/ops/elementwise/rounding.hpp>
#include <tapegraph/ops/elementwise/trigonometric.hpp>
#include <tapegraph/ops/movement/concat.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/refusal.hpp>

/// Positions of steps in a sequence: rotary_positions, sinusoidal_positions, position_embedding,
/// token_and_position_embedding. Not part of tapegraph.hpp: programs without them do not compile
/// them.

namespace tapegraph {

/// Options of rotary_positions and sinusoidal_positions.
struct wavelength_options {
    double max_wavelength = 10000; ///< wavelength of the slowest pair of features, divided by 2 pi
};

/// Defaults are those of KerasHub.
struct position_embedding_options {
    std::int64_t sequence_length = 1; ///< rows of the table: the longest sequence
    initializer embeddings_initializer = init::glorot_uniform{};
    regularizer embeddings_regularizer{};
    constraint embeddings_constraint{};
};
/// Options of `token_and_position_embedding`.
struct token_and_position_embedding_options {
    std::int64_t vocabulary_size = 1;
    std::int64_t sequence_length = 1; ///< the longest sequence
    std::int64_t embedding_dim = 1;
    initializer embeddings_initializer = init::uniform{}; ///< of both tables
};

namespace detail {

struct position_texts {
    enum reason : std::int64_t { rotary, sinusoidal };
    static constexpr const char* text(std::int64_t what) {
        return what == rotary
                   ? "rotary_positions: x must be [batch, time, ..., features], an even known number of features"
                   : "sinusoidal_positions: x must be [batch, time, features], features known";
    }
};

/// 0, 1, ... for the steps of x [batch, time, ...], starting at `first`, i32, a scalar or [batch],
/// if it is given: in double, [1 or batch, time, 1, ...].
template <handle H>
constexpr auto places(const H& x, std::source_location where) {
    return numbers_along<double>(x, shape_of(x)[1], 1, shape_of(x).rank(), where);
}
template <handle H, handle P>
constexpr auto places(const H& x, std::source_location where, const P& first) {
    const shape dims = shape_of(x), given = shape_of(first);
    shape beside = no_axes(dims);
    beside.push_back(given.rank() == 0 ? extent(1) : given[0]);
    for (int i = 1; i < dims.rank(); ++i) beside.push_back(1);
    const auto start = eval(cast<double>(reshape(first, beside, where)), where);
    return eval(start + places(x, where), where);
}

template <tensor_like X, class... First>
constexpr auto rotated(const X& x, const wavelength_options& o, std::source_location where, const First&... first) {
    const auto input = eval(x, where);
    const shape dims = shape_of(input);
    const int last = dims.rank() - 1;
    if (last < 2 || !dims[last].known() || dims[last].value % 2 != 0 || dims[last].value == 0 ||
        !(o.max_wavelength > 0))
        return refuse<position_texts>(position_texts::rotary, where, input);
    const std::int64_t half = dims[last].value / 2;
    const auto pair = arange<double>(input, half, 0, 1, where);
    const auto rate = eval(exp(pair * (-math::log(o.max_wavelength) / static_cast<double>(half))), where);
    // In double, so that distant places are exact.
    const auto turn = eval(places(input, where, first...) * rate, where);
    const auto cosine = cast_like(input, cos(turn), where);
    const auto sine = cast_like(input, sin(turn), where);
    const auto [a, b] = split<2>(input, -1, where);
    const auto first_half = eval(a * cosine - b * sine, where);
    const auto second_half = eval(b * cosine + a * sine, where);
    return concat(first_half, second_half, -1, where);
}

template <tensor_like X, class... First>
constexpr auto sinusoids(const X& x, const wavelength_options& o, std::source_location where, const First&... first) {
    const auto input = eval(x, where);
    const shape dims = shape_of(input);
    if (dims.rank() != 3 || !dims[2].known() || dims[2].value == 0 || !(o.max_wavelength > 0))
        return refuse<position_texts>(position_texts::sinusoidal, where, input);
    const auto number = arange<double>(input, dims[2], 0, 1, where);
    const double rate = -2 * math::log(o.max_wavelength) / static_cast<double>(dims[2].value);
    const auto turn = eval(places(input, where, first...) * exp(floor(number / 2) * rate), where);
    return cast_like(input, tapegraph::where(number % 2 == 0, sin(turn), cos(turn)), where);
}

} // namespace detail

/// x [batch, time, ..., features] with every pair of features k and k + features / 2 rotated by the
/// angle place max_wavelength^(-2 k / features) (Su et al. 2021, in the order of GPT-NeoX and
/// KerasHub): products of queries and keys then depend on their distance.
template <tensor_like X>
constexpr auto rotary_positions(const X& x, const wavelength_options& o = {},
                                std::source_location where = std::source_location::current()) {
    return detail::rotated(x, o, where);
}
/// The same with the first step at place `first`, i32: a scalar, or [batch].
template <tensor_like X, tensor_like P>
constexpr auto rotary_positions(const X& x, const P& first, const wavelength_options& o = {},
                                std::source_location where = std::source_location::current()) {
    return detail::rotated(x, o, where, eval(first, where));
}
no_such_option_in<wavelength_options> rotary_positions(any_argument, ...) TG_MISTAKE;
no_such_option_in<wavelength_options> rotary_positions(any_argument, any_argument, ...) TG_MISTAKE;

/// Sinusoidal positions (Vaswani et al. 2017), [1, time, features], to be added to x [batch, time,
/// features]: feature 2 k is sin(position max_wavelength^(-2 k / features)), feature 2 k + 1 the cosine.
template <tensor_like X>
constexpr auto sinusoidal_positions(const X& x, const wavelength_options& o = {},
                                    std::source_location where = std::source_location::current()) {
    return detail::sinusoids(x, o, where);
}
/// The same with the first step at place `first`, i32: a scalar, or [batch], which gives [batch,
/// time, features].
template <tensor_like X, tensor_like P>
constexpr auto sinusoidal_positions(const X& x, const P& first, const wavelength_options& o = {},
                                    std::source_location where = std::source_location::current()) {
    return detail::sinusoids(x, o, where, eval(first, where));
}
no_such_option_in<wavelength_options> sinusoidal_positions(any_argument, ...) TG_MISTAKE;
no_such_option_in<wavelength_options> sinusoidal_positions(any_argument, any_argument, ...) TG_MISTAKE;

namespace detail {

template <class Scope, handle H, class... First>
constexpr H learnt_positions(const Scope& scope, const H& input, const position_embedding_options& o,
                             std::source_location where, const First&... first) {
    const shape dims = shape_of(input);
    const bool sensible =
        scope.require(dims.rank() == 3 && dims[2].known(),
                      "position_embedding: input must be [batch, time, features], features known") &&
        scope.require(o.sequence_length > 0, "position_embedding: sequence_length must be positive") &&
        scope.require(!dims[1].known() || dims[1].value <= o.sequence_length,
                      "position_embedding: input is longer than sequence_length");
    if (!sensible) return input;
    const H table = scope.variable_like(input, "embeddings", {o.sequence_length, dims[2].value},
                                        {.initializer = o.embeddings_initializer,
                                         .regularizer = o.embeddings_regularizer,
                                         .constraint = o.embeddings_constraint});
    const auto numbers = arange<std::int32_t>(input, dims[1], 0, 1, where);
    if constexpr (sizeof...(First) == 0)
        return gather(table, numbers, 0, 0, where);
    else
        return gather(table, eval(expand_dims(first..., -1, where) + numbers, where), 0, 0, where);
}

} // namespace detail

/// Learned positions to be added to x [batch, time, features]: [time, features], a row of the table
/// "embeddings" [sequence_length, features] for each step. The position of the first step, an i32 scalar
/// or [batch], may follow. A position beyond the table is a range_error.
template <layer_scope Scope, tensor_like X, tensor_like... P>
    requires(sizeof...(P) <= 1)
constexpr auto position_embedding(const Scope& scope, const X& x, const position_embedding_options& o,
                                  const P&... first) {
    const auto where = std::source_location::current();
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    return scope.leave("position_embedding", mark,
                       detail::learnt_positions(scope, input, o, where, eval(first, where)...));
}
template <layer_scope Scope>
no_such_option_in<position_embedding_options> position_embedding(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing position_embedding(any_argument, ...) TG_MISTAKE;

/// Indices [batch, time] to [batch, time, embedding_dim]: rows of "token_embedding/embeddings" plus those
/// of "position_embedding/embeddings". T is the tables' element type, as in `embedding`. The position of
/// the first step may follow.
template <class T = void, layer_scope Scope, tensor_like X, tensor_like... P>
    requires(sizeof...(P) <= 1)
constexpr auto token_and_position_embedding(const Scope& scope, const X& indices,
                                            const token_and_position_embedding_options& o, const P&... first) {
    const auto where = std::source_location::current();
    const auto given = scope.operand(indices, where);
    const auto mark = scope.enter();
    const auto tokens = embedding<T>(scope / "token_embedding", given,
                                     {.input_dim = o.vocabulary_size,
                                      .output_dim = o.embedding_dim,
                                      .embeddings_initializer = o.embeddings_initializer},
                                     where);
    const auto rows = position_embedding(
        scope / "position_embedding", tokens,
        {.sequence_length = o.sequence_length, .embeddings_initializer = o.embeddings_initializer}, first...);
    scope.enter(); // the following operations belong to this layer again
    return scope.leave("token_and_position_embedding", mark, eval(tokens + rows, where));
}
template <class T = void, layer_scope Scope>
no_such_option_in<token_and_position_embedding_options> token_and_position_embedding(const Scope&, any_argument,
                                                                                     ...) TG_MISTAKE;
template <class = void>
detail::scope_missing token_and_position_embedding(any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
