#pragma once

#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/ops/movement/boxes.cuh>
#include <tapegraph/runtime/kernel.hpp>

/// Divides the lines along one axis among threads.

namespace tapegraph::cuda::detail {

/// Thresholds of the division; variables, so that tests reach every way with small tensors.
struct line_limits {
    std::int64_t short_line = 64;   ///< longest line that one thread takes
    std::int64_t many_lines = 8192; ///< enough to keep a device busy with a thread each
    std::int64_t few_blocks = 256;  ///< too few to keep a device busy
    std::int64_t chunk = 8192;
};
inline line_limits limits_of_lines;

/// How the lines along an axis are divided among threads, which follows from their number and
/// length alone.
struct line_plan {
    std::int64_t outer = 1, length, inner = 1, lines, chunks = 1;
    bool by_thread;

    line_plan(const buffer_view& x, std::int64_t axis)
        : outer(runtime::detail::span(x, 0, axis)),
          length(x.extents[axis]),
          inner(runtime::detail::span(x, axis + 1, x.rank)),
          lines(outer * inner),
          by_thread(length <= limits_of_lines.short_line || (inner > 1 && lines >= limits_of_lines.many_lines)) {
        if (!by_thread && lines < limits_of_lines.few_blocks) chunks = divide_up(length, limits_of_lines.chunk);
    }
    std::int64_t chunk() const { return chunks == 1 ? length : limits_of_lines.chunk; }
    unsigned threads() const { return length <= 256 ? 32 : 256; }
};

} // namespace tapegraph::cuda::detail
