#pragma once

#include <tapegraph/core/list.hpp>

#include <cstdint>

namespace tapegraph::ir {

/// A buffer that must exist from step `birth` to step `death`, both included.
struct buffer_request {
    std::int64_t bytes = 0;
    int birth = 0, death = 0;
    std::int64_t offset = 0;
};

/// Places buffers in one arena so that no two live ones overlap; returns the arena's size. Greedy:
/// largest first, each at the lowest gap that fits, which is usually within a few percent of the
/// largest sum of live bytes.
///
/// `order` and `placed` are working memory, so that planning again allocates nothing.
constexpr std::int64_t plan_buffers(list<buffer_request>& requests, list<int>& order, list<int>& placed) {
    order.clear();
    placed.clear();
    for (int i = 0; i < requests.size(); ++i) {
        order.push_back(i);
        for (int k = i; k > 0 && requests[order[k - 1]].bytes < requests[order[k]].bytes; --k) {
            const int larger = order[k];
            order[k] = order[k - 1];
            order[k - 1] = larger;
        }
    }
    std::int64_t size = 0;
    for (const int i : order) { // `placed` is sorted by offset
        buffer_request& r = requests[i];
        std::int64_t at = 0;
        for (const int p : placed) {
            const buffer_request& other = requests[p];
            if (other.death < r.birth || r.death < other.birth) continue;
            if (other.offset >= at + r.bytes) break;
            if (other.offset + other.bytes > at) at = other.offset + other.bytes;
        }
        r.offset = at;
        if (at + r.bytes > size) size = at + r.bytes;
        placed.push_back(i);
        for (int k = placed.size() - 1; k > 0 && requests[placed[k - 1]].offset > at; --k) {
            const int later = placed[k - 1];
            placed[k - 1] = placed[k];
            placed[k] = later;
        }
    }
    return size;
}

constexpr std::int64_t plan_buffers(list<buffer_request>& requests) {
    list<int> order, placed;
    return plan_buffers(requests, order, placed);
}

} // namespace tapegraph::ir
