#pragma once

#include <tapegraph/scalar/program/differentiation.hpp>
#include <tapegraph/scalar/program/number_program.hpp>
#include <tapegraph/scalar/program/record.hpp>
#include <tapegraph/scalar/sparse/bicolouring.hpp>
#include <tapegraph/scalar/sparse/colouring.hpp>
#include <tapegraph/scalar/sparse/pattern.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace tapegraph {

/// How the nonzeros of a Hessian are told apart: each by itself (star), or fewer directions and differences (acyclic).
enum class hessian_colouring : std::uint8_t { star, acyclic };

/// A sparse Jacobian or Hessian, planned once for all inputs: its pattern, and a program of its nonzeros.
template <class T = double>
class sparse_derivative {
public:
    sparse_derivative(sparsity_pattern pattern, number_program<T> values, std::int32_t directions)
        : pattern_(std::move(pattern)), program_(std::move(values)), directions_(directions) {}

    /// Which elements may differ from 0, found when the program was made.
    const sparsity_pattern& pattern() const { return pattern_; }
    /// The program whose results are the nonzeros, in the pattern's order: run, run_batch, jvp and so on are its.
    const number_program<T>& program() const { return program_; }
    /// The number of colours: directions that are computed together.
    std::int32_t directions() const { return directions_; }

    /// The derivative at x, its elements in the pattern's order.
    sparse_matrix<T> operator()(std::span<const T> x) const { return {pattern_, program_(x)}; }
    /// The nonzeros alone, into memory that is there.
    void run(std::span<const T> x, std::span<T> nonzeros) const { program_.run(x, nonzeros); }

private:
    sparsity_pattern pattern_;
    number_program<T> program_;
    std::int32_t directions_;
};

/// Where the Jacobian of a program may have nonzeros, whatever the inputs are.
template <class T>
sparsity_pattern jacobian_pattern(const number_program<T>& f) {
    std::vector<std::vector<std::int32_t>> rows(f.results());
    scalars::for_dependences(
        *f.graph(), static_cast<std::uint32_t>(f.graph()->size()),
        [&](std::size_t first, const std::vector<std::uint64_t>& masks) {
            for (std::size_t i = 0; i < rows.size(); ++i)
                for (std::uint64_t m = masks[f.nodes()[i]]; m != 0; m &= m - 1)
                    rows[i].push_back(static_cast<std::int32_t>(first + static_cast<std::size_t>(std::countr_zero(m))));
        });
    return scalars::pattern_of_rows(rows, f.inputs());
}

namespace scalars {

/// The pattern with the places across the diagonal added.
inline sparsity_pattern symmetric_pattern(const sparsity_pattern& p) {
    const sparsity_pattern t = transposed(p);
    if (t == p) return p;
    std::vector<std::vector<std::int32_t>> rows(p.row_count);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto a = row_of_pattern(p, static_cast<std::int32_t>(i)),
                   b = row_of_pattern(t, static_cast<std::int32_t>(i));
        std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rows[i]));
    }
    return pattern_of_rows(rows, p.column_count);
}

/// The derivatives of a program's results along the inputs of each colour.
template <class T, class Take>
void for_directions(graph_differentiation<T>& derivatives, symbol_graph<T>& graph, const colouring& columns,
                    const Take& take) {
    const std::uint32_t one = graph.constant(T(1));
    for (std::int32_t c = 0; c < columns.count; ++c) {
        std::vector<std::uint32_t> tangents = derivatives.seeds();
        for (std::size_t j = 0; j < columns.colours.size(); ++j)
            if (columns.colours[j] == c) tangents[graph.inputs()[j]] = one;
        derivatives.forward(tangents);
        take(c, tangents);
    }
}

/// Finds the nonzeros of a symmetric matrix from its products with the colours, in(vertex, colour): a vertex that has one
/// neighbour of a colour left gives the nonzero between them, which is then taken off what the neighbour has.
template <class T>
std::vector<std::uint32_t> recovered(symbol_graph<T>& graph, const sparsity_pattern& p, const colouring& vertices,
                                     std::vector<std::uint32_t> products) {
    const auto colours = static_cast<std::size_t>(vertices.count);
    const auto colour = [&](std::size_t v) { return static_cast<std::size_t>(vertices.colours[v]); };
    const std::uint32_t zero = graph.constant(T(0));
    const auto or_zero = [&](std::uint32_t at) { return at == 0 ? zero : at; };
    std::vector<std::uint32_t> values(p.nonzeros(), 0), left(products.size(), 0);
    std::vector<std::size_t> ready;
    for (std::size_t v = 0; v < p.row_count; ++v)
        for (const std::int32_t w : row_of_pattern(p, static_cast<std::int32_t>(v)))
            ++left[v * colours + colour(static_cast<std::size_t>(w))];
    for (std::size_t i = 0; i < left.size(); ++i)
        if (left[i] == 1) ready.push_back(i);
    for (std::size_t next = 0; next < ready.size(); ++next) {
        const std::size_t place = ready[next], v = place / colours, c = place % colours;
        if (left[place] != 1) continue; // found from the other end
        for (auto k = static_cast<std::size_t>(p.starts[v]); k < static_cast<std::size_t>(p.starts[v + 1]); ++k) {
            const auto w = static_cast<std::size_t>(p.columns[k]);
            if (colour(w) != c || values[k] != 0) continue;
            values[k] = or_zero(products[place]);
            left[place] = 0;
            if (w == v) break;
            const auto row = row_of_pattern(p, static_cast<std::int32_t>(w));
            const auto across = static_cast<std::size_t>(
                p.starts[w] + (std::lower_bound(row.begin(), row.end(), static_cast<std::int32_t>(v)) - row.begin()));
            values[across] = values[k];
            const std::size_t other = w * colours + colour(v);
            if (products[place] != 0)
                products[other] = products[other] == 0
                                      ? graph.template operation<negate_op>(products[place])
                                      : graph.template operation<subtract_op>(products[other], products[place]);
            if (--left[other] == 1) ready.push_back(other);
            break;
        }
    }
    return values;
}

} // namespace scalars

/// The plan of a program's Jacobian: columns together in forward mode, rows in reverse mode, or some of each, whichever needs
/// the fewest colours.
template <class T>
sparse_derivative<T> sparse_jacobian(const number_program<T>& f) {
    sparsity_pattern p = jacobian_pattern(f);
    const bicolouring colours = colour_rows_and_columns(p);
    auto graph = std::make_shared<scalars::symbol_graph<T>>(*f.graph(), false);
    scalars::graph_differentiation<T> derivatives(*graph);
    std::vector<std::uint32_t> values(p.nonzeros(), graph->constant(T(0)));
    // Takes the nonzeros of a colour: at(row, column) is a node, or 0.
    const auto take = [&](const auto& has_colour, const auto& at) {
        for (std::size_t i = 0; i < p.row_count; ++i)
            for (auto k = static_cast<std::size_t>(p.starts[i]); k < static_cast<std::size_t>(p.starts[i + 1]); ++k) {
                const auto j = static_cast<std::size_t>(p.columns[k]);
                if (has_colour(i, j) && at(i, j) != 0) values[k] = at(i, j);
            }
    };
    scalars::for_directions(derivatives, *graph, colours.columns, [&](std::int32_t c, const auto& tangents) {
        take([&](std::size_t i, std::size_t j) { return !colours.by_row(i, j) && colours.columns.colours[j] == c; },
             [&](std::size_t i, std::size_t) { return tangents[f.nodes()[i]]; });
    });
    const std::uint32_t one = graph->constant(T(1));
    for (std::int32_t c = 0; c < colours.rows.count; ++c) {
        std::vector<std::uint32_t> adjoints = derivatives.seeds();
        for (std::size_t i = 0; i < p.row_count; ++i)
            if (colours.rows.colours[i] == c) adjoints[f.nodes()[i]] = one;
        derivatives.backward(adjoints);
        take([&](std::size_t i, std::size_t j) { return colours.by_row(i, j) && colours.rows.colours[i] == c; },
             [&](std::size_t, std::size_t j) { return adjoints[graph->inputs()[j]]; });
    }
    return {std::move(p), number_program<T>(std::move(graph), std::move(values)), colours.count()};
}

/// The plan of the second derivatives of a program's one result. The pattern, both triangles, is that of the gradient's
/// Jacobian.
template <class T>
sparse_derivative<T> sparse_hessian(const number_program<T>& f, hessian_colouring how = hessian_colouring::star) {
    const number_program<T> gradient = f.gradient();
    sparsity_pattern p = scalars::symmetric_pattern(jacobian_pattern(gradient));
    const colouring vertices = how == hessian_colouring::star ? colour_star(p) : colour_acyclic(p);
    auto graph = std::make_shared<scalars::symbol_graph<T>>(*gradient.graph(), false);
    scalars::graph_differentiation<T> derivatives(*graph);
    const auto colours = static_cast<std::size_t>(vertices.count);
    std::vector<std::uint32_t> products(p.row_count * colours, 0);
    scalars::for_directions(derivatives, *graph, vertices, [&](std::int32_t c, const auto& tangents) {
        for (std::size_t i = 0; i < p.row_count; ++i)
            products[i * colours + static_cast<std::size_t>(c)] = tangents[gradient.nodes()[i]];
    });
    std::vector<std::uint32_t> values = scalars::recovered(*graph, p, vertices, std::move(products));
    return {std::move(p), number_program<T>(std::move(graph), std::move(values)), vertices.count};
}

/// The Jacobian of f at x...: the results' derivatives by all numbers in x. To evaluate it often, plan it once:
/// `const auto plan = tg::sparse_jacobian(tg::record(f, x)); plan(x)`.
template <class F, class First, class... X>
    requires(!std::is_same_v<First, hessian_colouring>)
auto sparse_jacobian(const F& f, const First& first, const X&... x) {
    using T = typename scalars::recorded_number<First, X...>::type;
    return sparse_jacobian(record(f, first, x...))(scalars::flat_numbers<T>(first, x...));
}
/// The second derivatives of f, which has one result, at x...
template <class F, class First, class... X>
    requires(!std::is_same_v<First, hessian_colouring>)
auto sparse_hessian(const F& f, const First& first, const X&... x) {
    using T = typename scalars::recorded_number<First, X...>::type;
    return sparse_hessian(record(f, first, x...))(scalars::flat_numbers<T>(first, x...));
}

} // namespace tapegraph
