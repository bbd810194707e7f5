#pragma once

#include <tapegraph/eager/seal.hpp>

/// Random tensors: pure functions of a seed, equal on every machine and number of threads (Philox).

namespace tapegraph::random {

struct options {
    std::uint64_t seed = 0;
    std::uint64_t stream = 0; ///< other numbers from the same seed
};

namespace detail {
template <class T>
tensor<T> draw(const shape& dims, distribution law, double a, double b, const options& o) {
    typename random_op<T>::attributes attributes;
    attributes.ordinal = 0xFFFFFFFD; // apart from a model's random nodes and its variables' first values
    attributes.law = static_cast<std::int64_t>(law);
    attributes.a = a;
    attributes.b = b;
    return eager::create<random_op<T>>(attributes, dims, {o.seed, o.stream});
}
} // namespace detail

/// Uniform in [low, high).
template <class T>
tensor<T> uniform(const shape& dims, const options& o = {}, double low = 0, double high = 1) {
    return detail::draw<T>(dims, distribution::uniform, low, high, o);
}
/// Normal with a mean and a standard deviation.
template <class T>
tensor<T> normal(const shape& dims, const options& o = {}, double mean = 0, double deviation = 1) {
    return detail::draw<T>(dims, distribution::normal, mean, deviation, o);
}

} // namespace tapegraph::random
