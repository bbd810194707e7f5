#pragma once

#include <tapegraph/core/element_types.hpp>
#include <tapegraph/core/random_laws.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/elementwise/in_float.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>
#include <tapegraph/ops/ordering/ordering.hpp>
#include <tapegraph/ops/refusal.hpp>

/// Random numbers inside models and functions. Element i of the k-th random operation of an
/// evaluation is a pure function of (seed, step, k, i), in both modes and on any number of threads.
/// No derivative flows through them.

namespace tapegraph {

/// Which of a step's draws it is, and from which law.
struct random_attributes {
    std::int64_t ordinal = 0;
    std::int64_t law = 0; ///< a `distribution`
    /// Uniform in [a, b); (truncated) normal with mean a, standard deviation b; exponential of rate a; one with
    /// probability a.
    double a = 0, b = 1;
};

/// Draws numbers of a distribution. It has no operands; the target is its shape.
template <class T>
struct random_op {
    static constexpr std::string_view name = "random";
    static constexpr bool takes_storage_types = true;
    using result_element = T;
    static constexpr operation_kind kind = operation_kind::random;
    static constexpr int arity = 0;
    using attributes = random_attributes;
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = dtype_of<T>;
        io.result = *io.target;
        io.require_no_negative_extent("random: an extent is negative");
        switch (static_cast<distribution>(a.law)) {
        case distribution::uniform: io.require(a.a < a.b, "random::uniform: low must lie below high"); break;
        case distribution::exponential: io.require(a.a > 0, "random::exponential: the rate must be positive"); break;
        case distribution::bernoulli:
            io.require(a.a >= 0 && a.a <= 1, "random::bernoulli: the probability must lie in [0, 1]");
            break;
        default: io.require(a.b >= 0, "random::normal: the deviation must not be negative"); break;
        }
    }
    static double flops(const kernel_call& c) { return static_cast<double>(c.out[0].elements()); }
};

/// Uniform integers in [low, high).
template <class T>
struct random_integer_op {
    static constexpr std::string_view name = "random_integers";
    using result_element = T;
    static constexpr operation_kind kind = operation_kind::random;
    static constexpr int arity = 0;
    struct attributes {
        std::int64_t ordinal = 0;
        std::int64_t low = 0, high = 1;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = dtype_of<T>;
        io.result = *io.target;
        io.require_no_negative_extent("random: an extent is negative");
        io.require(a.low < a.high, "random::integers: low must lie below high");
        io.require(a.low >= std::numeric_limits<T>::min() && a.high - 1 <= std::numeric_limits<T>::max(),
                   "random::integers: the range exceeds the element type");
    }
    static double flops(const kernel_call& c) { return static_cast<double>(c.out[0].elements()); }
};

namespace random {

/// The ends of a uniform law: low is possible, high is not.
struct uniform_range {
    double low = 0, high = 1;
};
/// Mean and standard deviation of a normal law.
struct normal_law {
    double mean = 0, deviation = 1;
};

namespace detail {
/// Draws numbers in the element type of `like`, but in float where that has 16 bits, for comparison
/// with a rate or conversion to an index. Of 2^24 numbers the coarser 16-bit type distinguishes
/// 2^15, and none of [0.998, 1) from 1.
template <handle H>
constexpr auto wide_numbers(const H& like, shape dims, distribution law, double a, double b,
                            std::source_location where) {
    dims.attach(shape_of(like).table());
    const random_op<float>::attributes how{0, static_cast<std::int64_t>(law), a, b};
    if constexpr (requires { requires storage_type<typename H::element_type>; }) {
        const decltype(eval(cast<float>(like), where)) wide{};
        return draw_like<random_op>(how, dims, where, wide);
    } else {
        return draw_like<random_op>(how, dims, where, like); // nodes of 16-bit types are drawn in float
    }
}
/// Rounds the numbers; rounding must not reach the end that a uniform distribution excludes.
template <storage_type T, handle H>
constexpr auto rounded_numbers(const H& drawn, distribution law, double high, std::source_location where) {
    const double most = law == distribution::uniform ? static_cast<double>(random::just_below(T(high)))
                                                     : std::numeric_limits<double>::infinity();
    return eval(cast<T>(minimum(drawn, most)), where);
}
template <handle H>
constexpr H of_law(const H& like, const shape& dims, distribution law, double a, double b, std::source_location where) {
    const auto drawn = wide_numbers(like, dims, law, a, b, where);
    if constexpr (requires { like.owner(); }) { // a node
        H rounded = drawn;
        storage_types::visit(
            like.type(), [&]<class T>(std::type_identity<T>) { rounded = rounded_numbers<T>(drawn, law, b, where); });
        return rounded;
    } else if constexpr (requires { requires storage_type<typename H::element_type>; }) {
        return rounded_numbers<typename H::element_type>(drawn, law, b, where);
    } else {
        return drawn;
    }
}
/// Uniform numbers in [0, 1), drawn like wide_numbers.
template <handle H>
constexpr auto wide_uniform(const H& like, const shape& dims, std::source_location where) {
    return wide_numbers(like, dims, distribution::uniform, 0, 1, where);
}
} // namespace detail

// Each distribution has two overloads: one takes a shape, and `like` gives mode and floating
// element type; the other has the shape of `like`.

/// Uniform numbers in [low, high).
template <handle H>
constexpr H uniform(const H& like, const shape& dims, uniform_range range = {},
                    std::source_location where = std::source_location::current()) {
    return detail::of_law(like, dims, distribution::uniform, range.low, range.high, where);
}
/// Uniform numbers of the shape and type of `like`.
template <handle H>
constexpr H uniform_like(const H& like, uniform_range range = {},
                         std::source_location where = std::source_location::current()) {
    return uniform(like, shape_of(like), range, where);
}

/// Normal numbers with a mean and a standard deviation.
template <handle H>
constexpr H normal(const H& like, const shape& dims, normal_law law = {},
                   std::source_location where = std::source_location::current()) {
    return detail::of_law(like, dims, distribution::normal, law.mean, law.deviation, where);
}
/// Normal numbers of the shape and type of `like`.
template <handle H>
constexpr H normal_like(const H& like, normal_law law = {},
                        std::source_location where = std::source_location::current()) {
    return normal(like, shape_of(like), law, where);
}

/// Normal numbers truncated to two standard deviations from the mean; those outside are drawn
/// again. `deviation` is that of the normal distribution; the result has 0.880 of it.
template <handle H>
constexpr H truncated_normal(const H& like, const shape& dims, normal_law law = {},
                             std::source_location where = std::source_location::current()) {
    return detail::of_law(like, dims, distribution::truncated_normal, law.mean, law.deviation, where);
}
/// Normal numbers within two standard deviations of the mean, of the shape and type of `like`.
template <handle H>
constexpr H truncated_normal_like(const H& like, normal_law law = {},
                                  std::source_location where = std::source_location::current()) {
    return truncated_normal(like, shape_of(like), law, where);
}

/// Exponential numbers with mean 1 / rate.
template <handle H>
constexpr H exponential(const H& like, const shape& dims, double rate = 1,
                        std::source_location where = std::source_location::current()) {
    return detail::of_law(like, dims, distribution::exponential, rate, 0, where);
}
/// Exponential numbers of the shape and type of `like`; their mean is 1 / rate.
template <handle H>
constexpr H exponential_like(const H& like, double rate = 1,
                             std::source_location where = std::source_location::current()) {
    return exponential(like, shape_of(like), rate, where);
}

/// One with the given probability (exact to 2^-24 in float, 2^-53 in double), otherwise zero.
template <handle H>
constexpr H bernoulli(const H& like, const shape& dims, double probability = 0.5,
                      std::source_location where = std::source_location::current()) {
    return detail::of_law(like, dims, distribution::bernoulli, probability, 0, where);
}
/// 1 with the probability, otherwise 0, of the shape and type of `like`.
template <handle H>
constexpr H bernoulli_like(const H& like, double probability = 0.5,
                           std::source_location where = std::source_location::current()) {
    return bernoulli(like, shape_of(like), probability, where);
}

/// Uniform integers in [low, high) of type int32 or int64; `like` gives the mode. Probabilities are
/// equal up to (high - low) / 2^64.
template <class T = std::int32_t, handle H>
constexpr auto integers(const H& like, shape dims, std::int64_t low, std::int64_t high,
                        std::source_location where = std::source_location::current()) {
    static_assert(std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>,
                  "random::integers: the element type is std::int32_t or std::int64_t");
    dims.attach(shape_of(like).table());
    return draw<random_integer_op<T>>({0, low, high}, dims, where, like);
}

/// A random permutation of 0 ... count - 1, int32: the order of 64-bit random keys.
template <handle H>
constexpr auto permutation(const H& like, extent count, std::source_location where = std::source_location::current()) {
    shape dims;
    dims.push_back(count);
    using limits = std::numeric_limits<std::int64_t>;
    return argsort(integers<std::int64_t>(like, dims, limits::min(), limits::max(), where), {}, where);
}

/// The rows of x (its elements along axis 0) in random order. Derivatives follow the rows.
template <tensor_like X>
constexpr auto shuffle(const X& x, std::source_location where = std::source_location::current()) {
    const auto rows = eval(x, where);
    const shape dims = shape_of(rows);
    return gather(rows, permutation(rows, dims.rank() > 0 ? dims[0] : extent(1), where), 0, 0, where);
}

/// Draws one index per row of logits [..., classes], int32: class c with probability
/// softmax(logits)[c] (the largest of logit - log(exponential)).
template <tensor_like X>
constexpr auto categorical(const X& logits, std::source_location where = std::source_location::current()) {
    const auto value = eval(logits, where);
    const auto times = detail::wide_numbers(value, shape_of(value), distribution::exponential, 1, 0, where);
    // In half 1e-30 is 0, and its logarithm would turn a logit of -infinity into NaN.
    const auto wide = tapegraph::detail::as_float(value, where);
    return argmax(wide - log(maximum(times, 1e-30)), -1, {}, where);
}

} // namespace random

namespace detail {
struct dropout_texts {
    static constexpr const char* text(std::int64_t) { return "dropout: rate must lie in [0, 1)"; }
};
} // namespace detail

/// Sets each element to zero with probability `rate` and scales the others by 1 / (1 - rate), as
/// does its derivative.
template <tensor_like X>
constexpr auto dropout(const X& x, double rate, std::source_location where = std::source_location::current()) {
    const auto input = eval(x, where);
    if (!(rate >= 0 && rate < 1)) return detail::refuse<detail::dropout_texts>(0, where, input);
    if (rate == 0) return input;
    const auto drawn = random::detail::wide_uniform(input, shape_of(input), where);
    return eval(tapegraph::where(drawn >= rate, input * (1 / (1 - rate)), 0), where);
}

} // namespace tapegraph
