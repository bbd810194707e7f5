#pragma once

#include <tapegraph/ops/gather/cpu.hpp>
#include <tapegraph/ops/ordering/cpu.hpp>

/// Sums over rows of equal index, and rows written to indexed places. Index is std::int32_t or
/// std::int64_t. The work is proportional to the rows; the bits do not depend on the number of
/// threads.

namespace tapegraph::cpu {

namespace rows_detail {

/// Divides a pass over rows among threads: by columns, or by places where columns are few.
struct division {
    std::int64_t parts = 1;
    bool by_column = true;

    division(std::int64_t count, std::int64_t width) {
        if (count * width < gather_detail::parallel_elements) return;
        parts = thread_count();
        by_column = width >= 32 * parts;
    }
    /// The part's columns, in multiples of 16 except for the last.
    void columns(std::int64_t part, std::int64_t width, std::int64_t& first, std::int64_t& last) const {
        const std::int64_t step = by_column ? ((width + parts - 1) / parts + 15) / 16 * 16 : width;
        first = by_column ? std::min(width, part * step) : 0;
        last = by_column ? std::min(width, first + step) : width;
    }
    std::int64_t begin(std::int64_t part, std::int64_t count) const { return by_column ? 0 : count * part / parts; }
    std::int64_t end(std::int64_t part, std::int64_t count) const {
        return by_column ? count : count * (part + 1) / parts;
    }
};

// Sums columns [first, last) of the runs of equal keys that begin in sorted places [begin, end).
template <class T, class Index>
struct sum_runs_body {
    template <class Isa>
    TG_INLINE static void run(const sort_detail::pair<Index>* sorted, std::int64_t count, std::int64_t begin,
                              std::int64_t end, const T* rows, std::int64_t width, std::int64_t first,
                              std::int64_t last, T* out) {
        while (begin > 0 && begin < end && sorted[begin].key == sorted[begin - 1].key) ++begin;
        for (std::int64_t i = begin; i < end;) {
            std::int64_t next = i + 1;
            while (next < count && sorted[next].key == sorted[i].key) ++next;
            T* const sum = out + sorted[i].position * width;
            const T* from = rows + sorted[i].position * width;
            TG_SIMD
            for (std::int64_t c = first; c < last; ++c) sum[c] = T(0) + from[c];
            for (std::int64_t k = i + 1; k < next; ++k) {
                from = rows + sorted[k].position * width;
                TG_SIMD
                for (std::int64_t c = first; c < last; ++c) sum[c] += from[c];
            }
            for (std::int64_t k = i + 1; k < next; ++k) {
                T* const to = out + sorted[k].position * width;
                TG_SIMD
                for (std::int64_t c = first; c < last; ++c) to[c] = sum[c];
            }
            i = next;
        }
    }
};

} // namespace rows_detail

/// Bytes of scratch memory, aligned for 8 bytes, that `sum_equal_rows` needs.
template <class Index>
std::size_t equal_rows_workspace_bytes(std::int64_t count) {
    return sort_workspace_bytes<Index>(1, count);
}

/// out[i, :] = 0 + the sum of rows[j, :] over the j with indices[j] == indices[i], in their order; rows and out [count, width].
/// Throws argument_error for 2^31 rows or more.
template <class T, class Index>
void sum_equal_rows(std::int64_t count, std::int64_t width, const Index* indices, const T* rows, T* out,
                    void* workspace) {
    using pair = sort_detail::pair<Index>;
    if (count > std::numeric_limits<std::int32_t>::max())
        throw argument_error("sum_of_equal_rows: " + std::to_string(count) + " rows, more than 2^31 - 1");
    if (count == 0 || width == 0) return;
    pair* sorted = static_cast<pair*>(workspace);
    for (std::int64_t i = 0; i < count; ++i)
        sorted[i] = {sort_detail::sort_key_of(indices[i], false), static_cast<std::uint32_t>(i)};
    if (count <= 48)
        sort_detail::insertion_sort(sorted, count);
    else
        sorted = sort_detail::radix_sort(sorted, sorted + count, count);
    const rows_detail::division divided(count, width);
    parallel_for(divided.parts, divided.parts > 1, [&](std::int64_t part) {
        std::int64_t first, last;
        divided.columns(part, width, first, last);
        dispatch<rows_detail::sum_runs_body<T, Index>>(static_cast<const pair*>(sorted), count,
                                                       divided.begin(part, count), divided.end(part, count), rows,
                                                       width, first, last, out);
    });
}

/// table[indices[i], :] = rows[i, :]; table [n, width] and rows [count, width] have elements of
/// `size` bytes. Rows of equal indices must be equal. Throws range_error for an index outside [0,
/// n), before anything is written.
template <class Index>
void assign_rows(std::int64_t n, std::int64_t width, std::size_t size, std::int64_t count, const Index* indices,
                 const void* rows, void* table) {
    gather_detail::check("assign_rows", indices, count, n);
    const auto bytes = static_cast<std::int64_t>(size) * width;
    const rows_detail::division divided(count, width);
    parallel_for(divided.parts, divided.parts > 1, [&](std::int64_t part) {
        std::int64_t first, last;
        divided.columns(part, width, first, last);
        // Threads that divide places divide rows of the table, so that no two write the same.
        const std::int64_t low = divided.begin(part, n), high = divided.end(part, n);
        const std::int64_t at = first * static_cast<std::int64_t>(size),
                           length = (last - first) * static_cast<std::int64_t>(size);
        const char* from = static_cast<const char*>(rows) + at;
        char* const to = static_cast<char*>(table) + at;
        constexpr std::int64_t ahead = 8;
        for (std::int64_t i = 0; i < count; ++i, from += bytes) {
            if (i + ahead < count) // prefetches the destination, which the processor cannot predict
                for (std::int64_t line = 0; line < std::min<std::int64_t>(length, 1024); line += 64)
                    __builtin_prefetch(to + static_cast<std::int64_t>(indices[i + ahead]) * bytes + line, 1);
            const auto row = static_cast<std::int64_t>(indices[i]);
            if (row >= low && row < high) std::memcpy(to + row * bytes, from, static_cast<std::size_t>(length));
        }
    });
}

} // namespace tapegraph::cpu
