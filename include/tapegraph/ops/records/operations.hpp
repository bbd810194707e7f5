#pragma once

#include <tapegraph/expr/operation.hpp>

#include <cstdint>
#include <string_view>

/// Operations on records that models of ai.onnx.ml consist of: the walk through decision trees, and probabilities of
/// classes from those of pairs.

namespace tapegraph {

/// How an inner node of a tree compares a feature with its split.
enum class branch : std::uint8_t { leq, lt, gte, gt, eq, neq };

/// An inner node as the walk reads it: 16 bytes with splits of float. Children below 0 are leaves: ~leaf.
template <class T>
struct walked_node {
    T split;
    std::uint32_t feature; ///< and in the upper bits the mode, and whether a missing value says yes
    std::int32_t child[2]; ///< no, yes

    static constexpr std::uint32_t features = 1u << 28, missing = 1u << 31;
    static constexpr std::int64_t words = sizeof(T) == 4 ? 4 : 6;
};
static_assert(sizeof(walked_node<float>) == 16 && sizeof(walked_node<double>) == 24);

namespace detail {

enum class all_branches : std::uint8_t { leq, lt, mixed };

} // namespace detail

/// leaves[record, tree] of records [records, features], nodes [nodes, words] and roots [trees].
struct walk_trees_op : custom_op<3> {
    static constexpr std::string_view name = "walk_trees";
    static constexpr bool registers_where_used = true;
    using result_element = std::int32_t;
    struct attributes {
        std::int64_t modes = 0;   ///< detail::all_branches
        std::int64_t missing = 0; ///< whether missing values say yes somewhere
        std::int64_t depth = 0;   ///< of the deepest tree
    };
    static constexpr void infer(const attributes&, inference& io) {
        io.type = dtype::i32;
        if (!io.require(io.in[0].dims.rank() == 2 && io.in[2].dims.rank() == 1,
                        "walk_trees: records are rows, roots a list"))
            return;
        io.result.push_back(io.in[0].dims[0]);
        io.result.push_back(io.in[2].dims[0]);
    }
};

/// [records, pairs] to [records, classes].
struct couple_pairs_op : custom_op<1> {
    static constexpr std::string_view name = "couple_pairs";
    struct attributes {
        std::int64_t classes = 2;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        if (!io.require(io.in[0].dims.rank() == 2, "couple_pairs: records are rows")) return;
        io.result.push_back(io.in[0].dims[0]);
        io.result.push_back(a.classes);
    }
};

} // namespace tapegraph
