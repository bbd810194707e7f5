#pragma once

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/eager/seal.hpp>

/// Random tensors. Factories take a seed and are pure functions of it; the operations of
/// ops/random/random.hpp draw from a generator that this thread's `set_seed` resets.

namespace tapegraph::random {

/// Resets this thread's random operations: later draws, and the calls of functions (whose steps are
/// counted from here). Models and functions with a seed of their own are not affected.
inline void set_seed(std::uint64_t seed) { tapegraph::detail::random_generator::instance().set_seed(seed); }

/// Which numbers are drawn: equal seed and stream give equal numbers, on every machine.
struct options {
    std::uint64_t seed = 0;
    std::uint64_t stream = 0; ///< selects another stream of the same seed
};

namespace detail {
inline constexpr std::int64_t factory_ordinal = 0xFFFFFFFD; // distinct from random nodes and variables' initial values

template <class T>
tensor<T> draw(const shape& dims, distribution law, double a, double b, const options& o) {
    return eager::create<random_op<T>>({factory_ordinal, static_cast<std::int64_t>(law), a, b}, dims, {o.seed, o.stream});
}
} // namespace detail

/// Uniform numbers in [low, high).
template <class T>
tensor<T> uniform(const shape& dims, const options& o = {}, double low = 0, double high = 1) {
    return detail::draw<T>(dims, distribution::uniform, low, high, o);
}
/// Normal numbers with a mean and a standard deviation.
template <class T>
tensor<T> normal(const shape& dims, const options& o = {}, double mean = 0, double deviation = 1) {
    return detail::draw<T>(dims, distribution::normal, mean, deviation, o);
}
/// Normal numbers truncated to two standard deviations from the mean.
template <class T>
tensor<T> truncated_normal(const shape& dims, const options& o = {}, double mean = 0, double deviation = 1) {
    return detail::draw<T>(dims, distribution::truncated_normal, mean, deviation, o);
}
/// Exponential numbers with mean 1 / rate.
template <class T>
tensor<T> exponential(const shape& dims, const options& o = {}, double rate = 1) {
    return detail::draw<T>(dims, distribution::exponential, rate, 0, o);
}
/// One with the given probability, otherwise zero.
template <class T>
tensor<T> bernoulli(const shape& dims, const options& o = {}, double probability = 0.5) {
    return detail::draw<T>(dims, distribution::bernoulli, probability, 0, o);
}
/// Uniform integers in [low, high), int32 or int64.
template <class T>
tensor<T> integers(const shape& dims, std::int64_t low, std::int64_t high, const options& o = {}) {
    return eager::create<random_integer_op<T>>({detail::factory_ordinal, low, high}, dims, {o.seed, o.stream});
}
// The functions above are more specialized, so that a call without options is theirs.
// clang-format off
template <class T, std::same_as<shape> S = shape> no_such_option_in<options> uniform(const S&, ...) TG_MISTAKE;
template <class T, std::same_as<shape> S = shape> no_such_option_in<options> normal(const S&, ...) TG_MISTAKE;
template <class T, std::same_as<shape> S = shape> no_such_option_in<options> truncated_normal(const S&, ...) TG_MISTAKE;
template <class T, std::same_as<shape> S = shape> no_such_option_in<options> exponential(const S&, ...) TG_MISTAKE;
template <class T, std::same_as<shape> S = shape> no_such_option_in<options> bernoulli(const S&, ...) TG_MISTAKE;
template <class T, std::same_as<shape> S = shape> no_such_option_in<options> integers(const S&, std::int64_t, std::int64_t, ...) TG_MISTAKE;
template <class = void> no_such_option_in<options> permutation(any_argument, ...) TG_MISTAKE;
// clang-format on
/// 0 ... count - 1 in random order.
template <class Key = std::int64_t> // a template, so that only programs that use it compile a sort
tensor<std::int32_t> permutation(std::int64_t count, const options& o = {}) {
    using limits = std::numeric_limits<Key>;
    return argsort(integers<Key>({count}, limits::min(), limits::max(), o));
}

} // namespace tapegraph::random
