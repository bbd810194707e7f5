#pragma once

#include <tapegraph/cuda/boxes.cuh>
#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/sort.cuh>
#include <tapegraph/runtime/layout.hpp>

#include <algorithm>

/// Rows in order, and argsort.

namespace tapegraph::cuda {

namespace detail {

/// Scratch for `sort_rows`; with `keep` the pairs are its result.
template <class Key>
std::size_t sort_rows_bytes(std::int64_t rows, std::int64_t length, bool keep) {
    const int copies = length > kernels::sort_slots<Key> ? 2 : keep ? 1 : 0;
    return static_cast<std::size_t>(rows * length) * sizeof(kernels::sort_pair<Key>) * static_cast<std::size_t>(copies);
}

/// Sorts rows of `source`. The positions of the `wanted` first elements of each go to `order` [rows, wanted]; where that is
/// null, the pairs of key and position are kept, and the result is where in the workspace they are, [rows, length].
template <class Source>
const kernels::sort_pair<typename Source::key>* sort_rows(const kernel_call& c, const char* operation,
                                                          const Source& source, std::int64_t rows, std::int64_t length,
                                                          std::int64_t wanted, std::int32_t* order, void* workspace) {
    using pair = kernels::sort_pair<typename Source::key>;
    constexpr std::int64_t slots = kernels::sort_slots<typename Source::key>;
    pair* from = static_cast<pair*>(workspace);
    if (rows == 0 || length == 0 || wanted == 0) return from;
    kernels::tile_sort s{rows, length, static_cast<int>(slots), wanted};
    while (s.width / 2 >= length) s.width /= 2;
    const bool one_tile = length <= slots;
    const std::int64_t segments = rows * divide_up(length, s.width), in_block = slots / s.width;
    launch(c, operation, {static_cast<unsigned>(divide_up(segments, in_block)), kernels::sort_threads},
           kernels::sort_tiles<Source>, s, source, from, one_tile ? order : nullptr);
    pair* to = from + rows * length;
    for (std::int64_t run = slots; run < length; run *= 2) {
        kernels::merge_pass m{length, run, wanted, divide_up(length, 2 * run),
                              divide_up(std::min({2 * run, wanted, length}), kernels::merge_tile)};
        const bool last = 2 * run >= length;
        launch(c, operation, {static_cast<unsigned>(rows * m.in_row * m.tiles), kernels::merge_threads},
               kernels::merge_runs<typename Source::key>, m, from, to, last ? order : nullptr);
        std::swap(from, to);
    }
    return from;
}

} // namespace detail

template <class T>
struct kernel<argsort_op, T> {
    using element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    using key = tapegraph::detail::sort_key<element>;

    static std::size_t workspace(const kernel_call& c) {
        const std::int64_t length = runtime::detail::last_extent(c.in[0]);
        return detail::sort_rows_bytes<key>(rows_at_once(c), length, false);
    }
    static void run(const kernel_call& c) {
        const std::int64_t rows = runtime::detail::leading_extent(c.in[0]),
                           length = runtime::detail::last_extent(c.in[0]);
        const std::int64_t wanted = runtime::detail::last_extent(c.out[0]);
        const bool descending = runtime::attributes_of<argsort_op>(c).descending != 0;
        if (wanted > length)
            throw argument_error("top_k: k is " + std::to_string(wanted) + ", the axis has " + std::to_string(length) +
                                 " elements");
        if (length > std::numeric_limits<std::int32_t>::max())
            throw argument_error("argsort: " + std::to_string(length) + " elements in a row, more than 2^31 - 1");
        const std::int64_t step = rows_at_once(c);
        for (std::int64_t row = 0; row < rows; row += step) {
            const kernels::number_source<element> source{c.in[0].as<const element>() + row * length, length,
                                                         descending};
            detail::sort_rows(c, "argsort", source, std::min(step, rows - row), length, wanted,
                              c.out[0].as<std::int32_t>() + row * wanted, c.workspace);
        }
    }

private:
    /// So many that scratch memory is bounded where rows are many.
    static std::int64_t rows_at_once(const kernel_call& c) {
        const std::int64_t most = std::min<std::int64_t>(detail::most_elements, std::int64_t{1} << 24);
        const std::int64_t length = std::max<std::int64_t>(1, runtime::detail::last_extent(c.in[0]));
        return std::max<std::int64_t>(1, std::min(runtime::detail::leading_extent(c.in[0]), most / length));
    }
};

} // namespace tapegraph::cuda
