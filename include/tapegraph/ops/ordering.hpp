#pragma once

#include <tapegraph/ops/gather.hpp>
#include <tapegraph/ops/reduction.hpp>

/// cumulative_sum, argsort, sort, argmax, argmin.

namespace tapegraph {

struct cumulative_sum_op {
    static constexpr std::string_view name = "cumulative_sum";
    static constexpr operation_kind kind = operation_kind::scan;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t axis = 0, reverse = 0, exclusive = 0;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[0].dims;
        io.require(a.axis >= 0 && a.axis < io.result.rank(), "cumulative_sum: axis outside the rank");
    }
    // Element i of the sum depends on the elements up to i, so the adjoint sums from the other end.
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto, auto) {
        return invoke<cumulative_sum_op>({a.axis, !a.reverse, a.exclusive}, nullptr, std::source_location::current(), dy);
    }
};

struct cumulative_options {
    bool reverse = false, exclusive = false;
};

template <tensor_like A>
constexpr auto cumulative_sum(const A& x, int axis = -1, cumulative_options options = {},
                              std::source_location where = std::source_location::current()) {
    return invoke<cumulative_sum_op>({normalized_axis(axis, shape_of(x).rank()), options.reverse, options.exclusive},
                                     nullptr, where, x);
}

/// Order of the last axis as int32 indices; stable, NaN last.
struct argsort_op {
    static constexpr std::string_view name = "argsort";
    using result_element = std::int32_t;
    static constexpr operation_kind kind = operation_kind::sort;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t descending = 0;
    };
    static constexpr void infer(const attributes&, inference& io) {
        io.type = dtype::i32;
        io.result = io.in[0].dims;
        io.require(io.result.rank() > 0, "argsort: a scalar has no axis");
    }
};

struct sort_options {
    bool descending = false;
};

template <tensor_like A>
constexpr auto argsort(const A& x, sort_options options = {},
                       std::source_location where = std::source_location::current()) {
    return invoke<argsort_op>({options.descending}, nullptr, where, x);
}
/// The last axis in order. Derivatives follow the elements.
template <tensor_like A>
constexpr auto sort(const A& x, sort_options options = {},
                    std::source_location where = std::source_location::current()) {
    const auto value = eval(x, where);
    return take_along(value, argsort(value, options, where), -1, where);
}

/// Index of the first largest (smallest) element along an axis, int32.
struct arg_reduce_op {
    static constexpr std::string_view name = "arg_reduce";
    using result_element = std::int32_t;
    static constexpr operation_kind kind = operation_kind::sort;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t axis = 0, maximum = 1;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = dtype::i32;
        const shape& x = io.in[0].dims;
        if (!io.require(a.axis >= 0 && a.axis < x.rank(), "argmax: axis outside the rank")) return;
        for (int i = 0; i < x.rank(); ++i)
            if (i != a.axis) io.result.push_back(x[i]);
    }
};

template <tensor_like A>
constexpr auto argmax(const A& x, int axis = -1, std::source_location where = std::source_location::current()) {
    return invoke<arg_reduce_op>({normalized_axis(axis, shape_of(x).rank()), 1}, nullptr, where, x);
}
template <tensor_like A>
constexpr auto argmin(const A& x, int axis = -1, std::source_location where = std::source_location::current()) {
    return invoke<arg_reduce_op>({normalized_axis(axis, shape_of(x).rank()), 0}, nullptr, where, x);
}

} // namespace tapegraph
