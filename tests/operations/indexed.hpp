#pragma once

#include <operations/builders.hpp>

/// What operations of the table that take indices are made with.

namespace tapegraph::testing::indexing {

inline std::int64_t index(real v) { return static_cast<std::int64_t>(v); }
inline extents part(const extents& x, std::int64_t from, std::int64_t to) { return {x.begin() + from, x.begin() + to}; }
inline extents joined(extents a, const extents& b, const extents& c = {}) {
    a.insert(a.end(), b.begin(), b.end());
    a.insert(a.end(), c.begin(), c.end());
    return a;
}

// Elements are moved, so values are equal; what is scattered adds. Indices are not differentiated.
inline row indexed(attributes with, double largest, shape_list shapes, double ulps = 0, double floor = 0) {
    return {.with = std::move(with),
            .shapes = std::move(shapes),
            .domains = {{}, {0, largest}},
            .ulps = ulps,
            .floor = floor};
}

} // namespace tapegraph::testing::indexing
