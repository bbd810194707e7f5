#pragma once

#include <cuda/calls.hpp>

#include <tapegraph/ops/gather/gather.hpp>

/// Indices and the matching shapes.

namespace tapegraph::testing {

/// Indices below `limit`, many of them equal, with `bad` at position `at`.
template <class Index>
argument indices(const extents& e, std::int64_t limit, std::int64_t at = -1, std::int64_t bad = 0) {
    return filled<Index>(e, [&](std::int64_t i) {
        return i == at ? bad : static_cast<std::int64_t>(scattered(i, static_cast<std::uint32_t>(limit)));
    });
}

inline extents joined(const extents& a, const extents& b, const extents& c) {
    extents all = a;
    all.insert(all.end(), b.begin(), b.end());
    all.insert(all.end(), c.begin(), c.end());
    return all;
}

struct gathered {
    extents batch, before;
    std::int64_t rows;
    extents after, picks;

    gather_op::attributes attributes() const {
        return {static_cast<std::int64_t>(batch.size() + before.size()), static_cast<std::int64_t>(batch.size())};
    }
    extents table() const { return joined(joined(batch, before, {rows}), {}, after); }
    extents index() const { return joined(batch, picks, {}); }
    extents result() const { return joined(joined(batch, before, {}), picks, after); }
};

} // namespace tapegraph::testing
