#pragma once

#include <tapegraph/core/math/bits.hpp>
#include <tapegraph/ops/gather/cpu.hpp>

/// Rows of a table, added where edges end, without the messages between. The edges are sorted by
/// their ends, in one pass of counting, so that each row of the result is written once, while it is
/// in the first cache, and threads share rows. The sort is stable: additions happen in the order of
/// the edges, for any number of threads.

namespace tapegraph::cpu {

namespace gather_detail {

/// The edges of one batch, sorted by their ends, in scratch memory.
template <class T>
struct sorted_edges {
    std::int64_t* end;     ///< [rows]: the place after the edges of a row; they begin where those of the row before end
    std::uint32_t* source; ///< [count]: a row of the table
    T* weight;             ///< [count], or null

    static std::size_t whole_words(std::size_t bytes) { return (bytes + 7) / 8 * 8; }
    static std::size_t end_bytes(std::int64_t rows) { return static_cast<std::size_t>(rows) * sizeof(std::int64_t); }
    static std::size_t source_bytes(std::int64_t count) {
        return whole_words(static_cast<std::size_t>(count) * sizeof(std::uint32_t));
    }
    static std::size_t bytes(std::int64_t rows, std::int64_t count, bool weighted) {
        return end_bytes(rows) + source_bytes(count) +
               (weighted ? whole_words(static_cast<std::size_t>(count) * sizeof(T)) : 0);
    }
    sorted_edges(std::int64_t rows, std::int64_t count, bool weighted, std::byte* memory)
        : end(reinterpret_cast<std::int64_t*>(memory)),
          source(reinterpret_cast<std::uint32_t*>(memory + end_bytes(rows))),
          weight(weighted ? reinterpret_cast<T*>(memory + end_bytes(rows) + source_bytes(count)) : nullptr) {}

    template <class From, class To>
    void sort(std::int64_t rows, std::int64_t count, const From* from, const To* to, const T* weights) const {
        std::fill(end, end + rows, std::int64_t{0});
        for (std::int64_t i = 0; i < count; ++i) ++end[to[i]];
        for (std::int64_t r = 0, before = 0; r < rows; ++r) { // where each row begins
            const std::int64_t edges = end[r];
            end[r] = before;
            before += edges;
        }
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t place = end[to[i]]++;
            source[place] = static_cast<std::uint32_t>(from[i]);
            if (weights != nullptr) weight[place] = weights[i];
        }
    }
};

// Rows [low, high) of out = the sums of the table's rows at their edges.
TG_ROUNDS_EACH_BEGIN
template <class T, bool Weighted>
struct add_sources_body {
    template <class Isa>
    TG_INLINE static void run(const T* table, std::int64_t width, sorted_edges<T> edges, std::int64_t count,
                              std::int64_t low, std::int64_t high, T* out) {
        constexpr std::int64_t line = 64, ahead = 8;
        const std::int64_t prefetched = std::min<std::int64_t>(width * static_cast<std::int64_t>(sizeof(T)), 2048);
        std::int64_t i = low == 0 ? 0 : edges.end[low - 1];
        for (std::int64_t r = low; r < high; ++r) {
            T* const into = out + r * width;
            std::fill(into, into + width, T(0));
            for (const std::int64_t end = edges.end[r]; i < end; ++i) {
                // The processor cannot predict the rows that follow.
                if (i + ahead < count) {
                    const T* const soon = table + static_cast<std::int64_t>(edges.source[i + ahead]) * width;
                    for (std::int64_t at = 0; at < prefetched; at += line)
                        __builtin_prefetch(reinterpret_cast<const char*>(soon) + at);
                }
                const T* const from = table + static_cast<std::int64_t>(edges.source[i]) * width;
                if constexpr (Weighted) {
                    const T weight = edges.weight[i];
                    TG_SIMD
                    for (std::int64_t c = 0; c < width; ++c) into[c] += from[c] * weight;
                } else {
                    TG_SIMD
                    for (std::int64_t c = 0; c < width; ++c) into[c] += from[c];
                }
            }
        }
    }
};
TG_ROUNDS_EACH_END

// Rows of so few bytes are added in the order of the edges: sorting these would take longer.
inline constexpr std::int64_t narrow_bytes = 64;

// Adds the sources of unsorted edges to the rows [low, high) of out. For all instruction sets, since
// rows are shorter than vectors.
template <int Width, class T, class From, class To>
void add_narrow_sources(const T* table, std::int64_t any_width, std::int64_t count, const From* from, const To* to,
                        const T* weights, std::int64_t low, std::int64_t high, T* out) {
    const std::int64_t width = Width > 0 ? Width : any_width;
    std::fill(out + low * width, out + high * width, T(0));
    for (std::int64_t i = 0; i < count; ++i) {
        const auto row = static_cast<std::int64_t>(to[i]);
        if (row < low || row >= high) continue;
        const T* const source = table + static_cast<std::int64_t>(from[i]) * width;
        T* const into = out + row * width;
        if (weights == nullptr)
            for (std::int64_t c = 0; c < width; ++c) into[c] += source[c];
        else if constexpr (std::is_floating_point_v<T>)
            for (std::int64_t c = 0; c < width; ++c) into[c] += math::detail::product(source[c], weights[i]);
    }
}

} // namespace gather_detail

/// Bytes of scratch memory, aligned for 8 bytes, that `gather_scatter_add` needs.
template <class T>
std::size_t gather_scatter_workspace_bytes(std::int64_t batches, std::int64_t rows, std::int64_t width,
                                           std::int64_t count, bool weighted) {
    if (width * static_cast<std::int64_t>(sizeof(T)) < gather_detail::narrow_bytes) return 0;
    return static_cast<std::size_t>(batches) * gather_detail::sorted_edges<T>::bytes(rows, count, weighted);
}

/// out [batches, outer, rows, width] = zeros, then out[b, o, to[b, j], :] += table[b, o, from[b, j], :] * weights[b, j] for
/// j = 0, 1, ...; table is [batches, outer, sources, width], from, to and weights [batches, count]; without weights these are
/// 1. Throws range_error for an index outside, in `from` first, and argument_error for a table of more than 2^32 rows.
template <class T, class From, class To>
void gather_scatter_add(std::int64_t batches, std::int64_t outer, std::int64_t sources, std::int64_t rows,
                        std::int64_t width, const T* table, std::int64_t count, const From* from, const To* to,
                        const T* weights, T* out, void* workspace) {
    using namespace gather_detail;
    check("gather", from, batches * count, sources);
    check("scatter_add", to, batches * count, rows);
    if (sources > std::int64_t{1} << 32)
        throw argument_error("gather_scatter_add: a table of " + std::to_string(sources) + " rows, more than 2^32");
    const std::int64_t slabs = batches * outer;
    if (slabs * rows * width == 0) return;
    const bool weighted = weights != nullptr, parallel = slabs * (count + rows) * width >= parallel_elements;
    const std::int64_t threads = parallel ? thread_count() : 1;
    if (width * static_cast<std::int64_t>(sizeof(T)) < narrow_bytes) {
        const std::int64_t parts = slabs >= 4 * threads ? 1 : threads;
        return parallel_for(slabs * parts, parallel, [&](std::int64_t task) {
            const std::int64_t slab = task / parts, part = task % parts, edge = slab / outer * count;
            const auto add = width == 1   ? &add_narrow_sources<1, T, From, To>
                             : width == 4 ? &add_narrow_sources<4, T, From, To>
                                          : &add_narrow_sources<0, T, From, To>;
            add(table + slab * sources * width, width, count, from + edge, to + edge,
                weighted ? weights + edge : nullptr, rows * part / parts, rows * (part + 1) / parts,
                out + slab * rows * width);
        });
    }
    const auto edges_of = [&](std::int64_t batch) {
        return sorted_edges<T>(rows, count, weighted,
                               static_cast<std::byte*>(workspace) +
                                   static_cast<std::size_t>(batch) * sorted_edges<T>::bytes(rows, count, weighted));
    };
    parallel_for(batches, parallel, [&](std::int64_t batch) {
        edges_of(batch).sort(rows, count, from + batch * count, to + batch * count,
                             weighted ? weights + batch * count : nullptr);
    });
    // A task owns some rows of a slab.
    const std::int64_t row_elements = std::max<std::int64_t>(1, (count / rows + 1) * width);
    const std::int64_t step = std::max<std::int64_t>(1, task_elements / row_elements),
                       pieces = (rows + step - 1) / step;
    parallel_for(slabs * pieces, parallel, [&](std::int64_t task) {
        const std::int64_t slab = task / pieces, low = task % pieces * step, high = std::min(rows, low + step);
        const T* const part = table + slab * sources * width;
        T* const into = out + slab * rows * width;
        const sorted_edges<T> edges = edges_of(slab / outer);
        if (weighted)
            dispatch<add_sources_body<T, true>>(part, width, edges, count, low, high, into);
        else
            dispatch<add_sources_body<T, false>>(part, width, edges, count, low, high, into);
    });
}

} // namespace tapegraph::cpu
