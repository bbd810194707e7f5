#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

/// Building blocks of searchsorted, nonzero, unique and bincount that sorts, sums and gathers would
/// do in more passes: positions by bisection, positions of set marks, and counts of numbers. All
/// work along the last axis and return int32.

namespace tapegraph {

/// Maps (sorted [..., n], values [..., m]) to the number of elements of `sorted`, which is in
/// ascending order, NaN last, that come before each value, or with `right` not after it: [..., m].
struct searchsorted_op {
    static constexpr std::string_view name = "searchsorted";
    static constexpr batching batched = batching::rows;
    using result_element = std::int32_t;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = 2;
    struct attributes {
        std::int64_t right = 0;
    };
    static constexpr void infer(const attributes&, inference& io) {
        io.type = dtype::i32;
        const shape &sorted = io.in[0].dims, &values = io.in[1].dims;
        io.result = values;
        if (!io.require(sorted.rank() > 0 && sorted.rank() == values.rank(), "searchsorted: ranks differ, or are 0") ||
            !io.require(io.in[0].type == io.in[1].type, "searchsorted: element types differ") ||
            !io.require(io.in[0].type != dtype::boolean, "searchsorted: the elements are bool; cast<...> first"))
            return;
        for (int i = 0; i + 1 < sorted.rank(); ++i)
            io.require(equal_or_required(sorted[i], values[i]), "searchsorted: extents before the last axis differ");
    }
};

/// Maps marks, bool [..., n], to the positions of the first `size` set ones in each row, counted
/// from 1, followed by 0: [..., size].
struct marked_places_op {
    static constexpr std::string_view name = "marked_places";
    static constexpr batching batched = batching::rows;
    using result_element = std::int32_t;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t size = 0;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = dtype::i32;
        io.result = io.in[0].dims;
        if (io.require(io.result.rank() > 0 && io.in[0].type == dtype::boolean,
                       "marked_places: marks are bool, in rows") &&
            io.require(a.size >= 0, "nonzero, unique: size is negative"))
            io.result.set(io.result.rank() - 1, a.size);
    }
};

/// Counts the occurrences of each of 0 .. length - 1 in each row, int32 [..., n] to [..., length];
/// others are not counted.
struct count_places_op {
    static constexpr std::string_view name = "bincount";
    static constexpr batching batched = batching::rows;
    using result_element = std::int32_t;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t length = 0;
        std::int64_t runs = 0; ///< rows are 0, ..., 0, 1, ..., 1, 2, ..., without a gap, so runs are counted
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = dtype::i32;
        io.result = io.in[0].dims;
        if (io.require(io.result.rank() > 0 && io.in[0].type == dtype::i32, "bincount: numbers are i32, in rows") &&
            io.require(a.length >= 0, "bincount: length is negative"))
            io.result.set(io.result.rank() - 1, a.length);
    }
};

} // namespace tapegraph
