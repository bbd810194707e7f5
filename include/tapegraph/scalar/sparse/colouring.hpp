#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/scalar/sparse/pattern.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

/// Colourings of sparse matrices, which say what columns a single direction can compute together. Greedy, in two orders, of
/// which the one with fewer colours is taken. Gebremedhin, Manne and Pothen, What Color Is Your Jacobian? Graph Coloring for
/// Computing Derivatives, SIAM Review 47 (2005).

namespace tapegraph {

/// A colour for each column (row, vertex), from 0 on; -1 where there is no nonzero.
struct colouring {
    std::vector<std::int32_t> colours;
    std::int32_t count = 0;
};

namespace scalars {

inline std::span<const std::int32_t> row_of_pattern(const sparsity_pattern& p, std::int32_t row) {
    const auto i = static_cast<std::size_t>(row);
    return {p.columns.data() + p.starts[i], static_cast<std::size_t>(p.starts[i + 1] - p.starts[i])};
}

/// Colours vertices one after the other, each with the first colour that `forbid(vertex, colours, mark)` does not mark.
template <class Forbid>
colouring greedy_colouring(std::size_t count, const std::vector<std::int32_t>& order, const Forbid& forbid) {
    colouring result{std::vector<std::int32_t>(count, -1), 0};
    std::vector<std::int32_t> forbidden_for; // of each colour, the last vertex that it was forbidden for
    for (const std::int32_t v : order) {
        forbid(v, result.colours, [&](std::int32_t colour) {
            if (colour >= 0) forbidden_for[static_cast<std::size_t>(colour)] = v;
        });
        std::int32_t c = 0;
        while (c < result.count && forbidden_for[static_cast<std::size_t>(c)] == v) ++c;
        if (c == result.count) {
            forbidden_for.push_back(-1);
            ++result.count;
        }
        result.colours[static_cast<std::size_t>(v)] = c;
    }
    return result;
}

/// The better one of the colourings in the given order and with the largest degrees first.
template <class Colour>
colouring better_order(const sparsity_pattern& p, const Colour& colour) {
    std::vector<std::int32_t> order;
    for (std::size_t i = 0; i < p.row_count; ++i)
        if (p.starts[i + 1] != p.starts[i]) order.push_back(static_cast<std::int32_t>(i));
    const colouring natural = colour(order);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t x, std::int32_t y) {
        return row_of_pattern(p, x).size() > row_of_pattern(p, y).size();
    });
    colouring sorted = colour(order);
    return sorted.count < natural.count ? sorted : natural;
}

inline void require_symmetric(const sparsity_pattern& p, const char* where) {
    if (p.row_count != p.column_count || transposed(p) != p)
        throw argument_error(std::string(where) + ": the pattern of " + std::to_string(p.row_count) + " by " +
                             std::to_string(p.column_count) + " is not symmetric");
}

} // namespace scalars

/// Rows of one colour share no column, so that one sweep in reverse mode gives all of them.
inline colouring colour_rows(const sparsity_pattern& p) {
    const sparsity_pattern columns = transposed(p);
    return scalars::better_order(p, [&](const std::vector<std::int32_t>& order) {
        return scalars::greedy_colouring(p.row_count, order,
                                         [&](std::int32_t v, const auto& colours, const auto& mark) {
                                             for (const std::int32_t j : scalars::row_of_pattern(p, v))
                                                 for (const std::int32_t w : scalars::row_of_pattern(columns, j))
                                                     mark(colours[static_cast<std::size_t>(w)]);
                                         });
    });
}
/// Columns of one colour share no row, so that one direction in forward mode gives all of them.
inline colouring colour_columns(const sparsity_pattern& p) { return colour_rows(transposed(p)); }

/// Of a symmetric matrix: neighbours have different colours, and no path of four vertices has two. Each nonzero, or the
/// one across the diagonal, is then by itself in a row of the product with its column's colour.
inline colouring colour_star(const sparsity_pattern& p) {
    scalars::require_symmetric(p, "colour_star");
    const auto neighbours = [&](std::int32_t v) { return scalars::row_of_pattern(p, v); };
    return scalars::better_order(p, [&](const std::vector<std::int32_t>& order) {
        std::vector<std::int32_t> seen_by(p.row_count + 1, -1); // of a colour, the last vertex with a neighbour of it
        std::vector<std::int32_t> twice_by(p.row_count + 1, -1);
        return scalars::greedy_colouring(
            p.row_count, order, [&](std::int32_t v, const auto& colours, const auto& mark) {
                const auto colour = [&](std::int32_t w) { return colours[static_cast<std::size_t>(w)]; };
                for (const std::int32_t w : neighbours(v)) {
                    if (w == v || colour(w) < 0) continue;
                    const auto c = static_cast<std::size_t>(colour(w));
                    if (seen_by[c] == v) twice_by[c] = v;
                    seen_by[c] = v;
                }
                for (const std::int32_t w : neighbours(v)) {
                    if (w == v || colour(w) < 0) continue;
                    mark(colour(w));
                    const bool between = twice_by[static_cast<std::size_t>(colour(w))] == v; // w' v w x
                    for (const std::int32_t x : neighbours(w)) {
                        if (x == v || x == w || colour(x) < 0) continue;
                        bool ends = between; // v w x y
                        for (const std::int32_t y : neighbours(x)) {
                            if (ends) break;
                            ends = y != w && y != x && colour(y) == colour(w);
                        }
                        if (ends) mark(colour(x));
                    }
                }
            });
    });
}

/// Of a symmetric matrix: neighbours have different colours, and no cycle has two. Nonzeros are then found one from
/// another, along trees. Fewer colours than colour_star's, but differences lose digits.
inline colouring colour_acyclic(const sparsity_pattern& p) {
    scalars::require_symmetric(p, "colour_acyclic");
    const auto neighbours = [&](std::int32_t v) { return scalars::row_of_pattern(p, v); };
    // Edges of two colours are joined to trees: an edge is the nonzero below the diagonal.
    const auto edge = [&](std::int32_t v, std::int32_t w) {
        const auto row = neighbours(std::max(v, w));
        return p.starts[static_cast<std::size_t>(std::max(v, w))] +
               static_cast<std::int32_t>(std::lower_bound(row.begin(), row.end(), std::min(v, w)) - row.begin());
    };
    return scalars::better_order(p, [&](const std::vector<std::int32_t>& order) {
        std::vector<std::int32_t> parent(p.columns.size());
        std::iota(parent.begin(), parent.end(), 0);
        const auto root = [&](std::int32_t e) {
            const auto up = [&](std::int32_t x) -> std::int32_t& { return parent[static_cast<std::size_t>(x)]; };
            while (up(e) != e) e = up(e) = up(up(e));
            return e;
        };
        std::vector<std::int32_t> visitor(p.columns.size(), -1),
            entered(p.columns.size());                           // of a tree: vertex, neighbour
        std::vector<std::int32_t> first_of(p.row_count + 1, -1); // of a colour, the vertex's first edge to it
        std::int32_t coloured = -1;
        const auto join = [&](const auto& colours) { // the edges of the vertex that was coloured last
            if (coloured < 0) return;
            const std::int32_t v = coloured;
            const auto colour = [&](std::int32_t w) { return colours[static_cast<std::size_t>(w)]; };
            std::vector<std::int32_t> used;
            for (const std::int32_t w : neighbours(v)) {
                if (w == v || colour(w) < 0) continue;
                const std::int32_t e = edge(v, w);
                std::int32_t& first = first_of[static_cast<std::size_t>(colour(w))];
                if (first < 0)
                    first = e, used.push_back(colour(w));
                else
                    parent[static_cast<std::size_t>(root(e))] = root(first);
                for (const std::int32_t x : neighbours(w))
                    if (x != v && x != w && colour(x) == colour(v))
                        parent[static_cast<std::size_t>(root(edge(w, x)))] = root(e);
            }
            for (const std::int32_t c : used) first_of[static_cast<std::size_t>(c)] = -1;
        };
        return scalars::greedy_colouring(
            p.row_count, order, [&](std::int32_t v, const auto& colours, const auto& mark) {
                const auto colour = [&](std::int32_t w) { return colours[static_cast<std::size_t>(w)]; };
                join(colours);
                coloured = v;
                for (const std::int32_t w : neighbours(v)) {
                    if (w == v || colour(w) < 0) continue;
                    mark(colour(w));
                    for (const std::int32_t x : neighbours(w)) {
                        if (x == v || x == w || colour(x) < 0) continue;
                        const auto tree = static_cast<std::size_t>(root(edge(w, x)));
                        if (visitor[tree] != v)
                            visitor[tree] = v, entered[tree] = w;
                        else if (entered[tree] != w)
                            mark(colour(x)); // v would close a cycle through the tree, if it has the colour that x has
                    }
                }
            });
    });
}

} // namespace tapegraph
