#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

namespace tapegraph {

enum class distribution : std::int64_t { uniform, normal };

/// Philox numbers: element i of node `ordinal` in step s is a pure function of (seed, s, ordinal, i), in both modes and
/// on any number of threads. Has no operands; the target is its shape.
template <class T>
struct random_op {
    static constexpr std::string_view name = "random";
    using result_element = T;
    static constexpr operation_kind kind = operation_kind::random;
    static constexpr int arity = 0;
    struct attributes {
        std::int64_t ordinal = 0;
        std::int64_t law = 0; ///< a `distribution`
        double a = 0, b = 1;  ///< uniform in [a, b); normal with mean a, standard deviation b
    };
    static constexpr void infer(const attributes&, inference& io) {
        io.type = dtype_of<T>;
        io.result = *io.target;
    }
};

} // namespace tapegraph
