#pragma once

#include <tapegraph/expr/derivatives.hpp>

/// Builds Jacobians from sweeps, for both modes: a one-hot cotangent gives a row, a one-hot tangent a column.

namespace tapegraph::detail {

/// Returns the blocks d(result k)/d(source j) at k * sources + j. `At` provides `handles`, a
/// growable array of untyped handles; result_sizes() and source_sizes(), the number of elements of
/// each; pull_one(k, i) and push_one(j, i), the sweeps for element i of result k or source j;
/// block(lines, k, j, forward), which joins the lines of one block, or returns zeros for none; and
/// allows(sweeps), whether that many sweeps are acceptable.
template <class At>
constexpr typename At::handles jacobian_blocks(At& at, sweep_direction direction) {
    const auto results = at.result_sizes(), sources = at.source_sizes();
    std::int64_t in = 0, out = 0;
    for (auto size : results) out += size;
    for (auto size : sources) in += size;
    const bool forward = direction == sweep_direction::forward || (direction == sweep_direction::automatic && in < out);
    const bool allowed = at.allows(forward ? in : out);
    const int rows = static_cast<int>(results.size()), columns = static_cast<int>(sources.size());
    typename At::handles blocks(rows * columns);
    const int outer = forward ? columns : rows, inner = forward ? rows : columns;
    for (int a = 0; a < outer; ++a) {
        // Lines are computed for one result (or source) at a time, and dropped once they are joined
        // to blocks.
        typename At::handles lines;
        const std::int64_t count = !allowed ? 0 : forward ? sources[a] : results[a];
        for (std::int64_t i = 0; i < count; ++i) {
            typename At::handles swept;
            if (forward)
                swept = at.push_one(a, i);
            else
                swept = at.pull_one(a, i);
            for (const auto& line : swept) lines.push_back(line);
        }
        for (int b = 0; b < inner; ++b) {
            typename At::handles mine;
            for (std::int64_t i = 0; i < count; ++i) mine.push_back(lines[static_cast<int>(i) * inner + b]);
            const int k = forward ? b : a, j = forward ? a : b;
            blocks[k * columns + j] = at.block(mine, k, j, forward);
        }
    }
    return blocks;
}

} // namespace tapegraph::detail
