#pragma once

#include <support/graph_runner.hpp>

#include <tapegraph/eager/transforms.hpp>
#include <tapegraph/graph/transforms.hpp>
#include <tapegraph/ops/ops.hpp>

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

/// What vmap must give: the function run example by example.

namespace tapegraph::testing {

/// An argument that all examples share.
template <class T>
struct shared {
    tensor<T> value;
};

template <class T>
tensor<T> example(const tensor<T>& batch, std::int64_t i) {
    const shape dims(batch.rank() - 1, batch.shape().data() + 1);
    auto one = tensor<T>::uninitialized(dims);
    std::memcpy(one.mutable_data(), batch.data() + i * one.size(), static_cast<std::size_t>(one.size()) * sizeof(T));
    return one;
}
template <class T>
const tensor<T>& example(const shared<T>& all, std::int64_t) {
    return all.value;
}

/// Results of f for every example, in the order in which f names them.
template <class F, class... Args>
std::vector<std::vector<any_tensor>> one_by_one(const F& f, std::int64_t count, const Args&... args) {
    std::vector<std::vector<any_tensor>> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(flattened(tapegraph::detail::map_results([](const auto& each) { return eval(each); }, f(example(args, i)...))));
    return all;
}

/// The largest difference relative to 1 + |value| of batched results from those of single examples; infinity when shapes
/// or types differ.
inline double apart(const std::vector<any_tensor>& batched, const std::vector<std::vector<any_tensor>>& single) {
    double largest = 0;
    const auto number = [](const any_tensor& t, std::int64_t at) {
        switch (t.type()) {
        case dtype::f64: return static_cast<const double*>(t.read())[at];
        case dtype::f32: return static_cast<double>(static_cast<const float*>(t.read())[at]);
        case dtype::i32: return static_cast<double>(static_cast<const std::int32_t*>(t.read())[at]);
        default: return static_cast<double>(static_cast<const bool*>(t.read())[at]);
        }
    };
    for (std::size_t i = 0; i < single.size(); ++i) {
        if (single[i].size() != batched.size()) return INFINITY;
        for (std::size_t k = 0; k < batched.size(); ++k) {
            const any_tensor &one = single[i][k], &all = batched[k];
            const shape s = all.shape();
            if (s.rank() != one.rank() + 1 || s[0].value != static_cast<std::int64_t>(single.size()) ||
                !(shape(s.rank() - 1, s.data() + 1) == one.shape()) || one.type() != all.type())
                return INFINITY;
            for (std::int64_t e = 0; e < one.size(); ++e) {
                const double expected = number(one, e);
                const double difference =
                    std::abs(number(all, static_cast<std::int64_t>(i) * one.size() + e) - expected) / (1 + std::abs(expected));
                if (!(difference <= largest)) largest = difference;
            }
        }
    }
    return largest;
}

} // namespace tapegraph::testing
