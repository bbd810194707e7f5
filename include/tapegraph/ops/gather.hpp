#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

/// gather, scatter_add, take_along, one_hot: elements chosen by int32 or int64 indices.

namespace tapegraph {

namespace detail {
constexpr bool index_type(dtype type) { return type == dtype::i32 || type == dtype::i64; }
} // namespace detail

/// Rows of a table: table [rows, ...], indices [...] to [indices..., ...].
struct gather_op {
    static constexpr std::string_view name = "gather";
    static constexpr operation_kind kind = operation_kind::gather;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 2;
    using attributes = no_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        const shape &table = io.in[0].dims, &indices = io.in[1].dims;
        io.type = io.in[0].type;
        if (!io.require(table.rank() >= 1, "gather: the table needs an axis") ||
            !io.require(detail::index_type(io.in[1].type), "gather: indices must be i32 or i64"))
            return;
        io.result = indices;
        for (int i = 1; i < table.rank(); ++i) io.result.push_back(table[i]);
        io.require(!io.result.overflow(), "gather: rank above 8");
    }
    template <int I>
        requires(I == 0)
    static constexpr auto vjp(const attributes& a, auto dy, auto table, auto indices, auto);
};

/// (rows, indices) to zeros of the target's shape with each row added where its index points.
struct scatter_add_op {
    static constexpr std::string_view name = "scatter_add";
    static constexpr operation_kind kind = operation_kind::gather;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 2;
    using attributes = no_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
        io.require(detail::index_type(io.in[1].type), "scatter_add: indices must be i32 or i64");
    }
    template <int I>
        requires(I == 0)
    static constexpr auto vjp(const attributes& a, auto d, auto, auto indices, auto) {
        return invoke<gather_op>(a, nullptr, std::source_location::current(), d, indices);
    }
};

template <int I>
    requires(I == 0)
constexpr auto gather_op::vjp(const attributes& a, auto dy, auto table, auto indices, auto) {
    const shape target = shape_of(table);
    return invoke<scatter_add_op>(a, &target, std::source_location::current(), dy, indices);
}

/// Elements along the last axis: x [..., n], indices [..., m] to [..., m].
struct take_along_op {
    static constexpr std::string_view name = "take_along";
    static constexpr operation_kind kind = operation_kind::gather;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 2;
    using attributes = no_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        const shape &x = io.in[0].dims, &indices = io.in[1].dims;
        io.type = io.in[0].type;
        if (!io.require(x.rank() >= 1 && x.rank() == indices.rank(), "take_along: ranks differ") ||
            !io.require(detail::index_type(io.in[1].type), "take_along: indices must be i32 or i64"))
            return;
        for (int i = 0; i + 1 < x.rank(); ++i)
            io.require(equal_or_required(x[i], indices[i]), "take_along: leading extents differ");
        io.result = indices;
    }
    template <int I>
        requires(I == 0)
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto indices, auto);
};

/// The adjoint of take_along: adds each element where its index points; the target is x's shape.
struct put_along_op {
    static constexpr std::string_view name = "put_along";
    static constexpr operation_kind kind = operation_kind::gather;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 2;
    using attributes = no_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
    }
    template <int I>
        requires(I == 0)
    static constexpr auto vjp(const attributes& a, auto d, auto, auto indices, auto) {
        return invoke<take_along_op>(a, nullptr, std::source_location::current(), d, indices);
    }
};

template <int I>
    requires(I == 0)
constexpr auto take_along_op::vjp(const attributes& a, auto dy, auto x, auto indices, auto) {
    const shape target = shape_of(x);
    return invoke<put_along_op>(a, &target, std::source_location::current(), dy, indices);
}

/// indices [...] to [..., depth]: one where the index points, zero elsewhere.
template <class T>
struct one_hot_op {
    static constexpr std::string_view name = "one_hot";
    using result_element = T;
    static constexpr operation_kind kind = operation_kind::gather;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t depth = 0;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = dtype_of<T>;
        if (!io.require(detail::index_type(io.in[0].type), "one_hot: indices must be i32 or i64") ||
            !io.require(a.depth > 0, "one_hot: depth must be positive"))
            return;
        io.result = io.in[0].dims;
        io.result.push_back(a.depth);
        io.require(!io.result.overflow(), "one_hot: rank above 8");
    }
};

template <tensor_like A, tensor_like B>
constexpr auto gather(const A& table, const B& indices, std::source_location where = std::source_location::current()) {
    return invoke<gather_op>({}, nullptr, where, table, indices);
}
/// Adds rows [n..., width...] into zeros of `target`, each where its index points.
template <tensor_like A, tensor_like B>
constexpr auto scatter_add(const A& rows, const B& indices, shape target,
                           std::source_location where = std::source_location::current()) {
    target.attach(shape_of(rows).table());
    return invoke<scatter_add_op>({}, &target, where, rows, indices);
}
template <tensor_like A, tensor_like B>
constexpr auto take_along(const A& x, const B& indices, std::source_location where = std::source_location::current()) {
    return invoke<take_along_op>({}, nullptr, where, x, indices);
}
template <class T, tensor_like A>
constexpr auto one_hot(const A& indices, std::int64_t depth,
                       std::source_location where = std::source_location::current()) {
    return invoke<one_hot_op<T>>({depth}, nullptr, where, indices);
}

} // namespace tapegraph
