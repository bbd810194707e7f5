#pragma once

#include <tapegraph/cuda/kernels/places.cuh>
#include <tapegraph/cuda/kernels/scatter_integers.cuh>
#include <tapegraph/cuda/ops/cumulative/cumulative.cuh>
#include <tapegraph/cuda/ops/gather/gather.cuh>
#include <tapegraph/cuda/ops/ordering/library_places.hpp>
#include <tapegraph/ops/ordering/kernel.hpp>

#include <cstring>
#include <limits>

/// Kernels of searchsorted, and the parts that nonzero, unique and bincount are made of. Single
/// rows go to a library where it is linked.

namespace tapegraph::cuda {

namespace detail {

inline bool counted_by_library(std::int64_t rows, std::int64_t count) {
    return rows == 1 && count > 0 && count <= std::numeric_limits<std::int32_t>::max();
}
inline void fill_zeros(const kernel_call& c) {
    if (c.out[0].bytes() > 0) driver::fill(c.out[0].data, 0, c.out[0].bytes(), static_cast<driver::stream>(c.stream));
}

} // namespace detail

template <class T>
struct kernel<searchsorted_op, T> {
    using element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

    static void run(const kernel_call& c) {
        const std::int64_t rows = runtime::detail::leading_extent(c.in[1]), n = runtime::detail::last_extent(c.in[0]),
                           m = runtime::detail::last_extent(c.in[1]);
        if (rows * m == 0) return;
        const bool right = runtime::attributes_of<searchsorted_op>(c).right != 0;
        const auto *const sorted = c.in[0].as<const element>(), *const values = c.in[1].as<const element>();
        auto* const out = c.out[0].as<std::int32_t>();
        // Both bisect for each value, in one launch. Several rows would take the library one launch
        // each.
        if (search_of_library<element>.search != nullptr && n > 0 && detail::counted_by_library(rows, n))
            if (search_of_library<element>.usable())
                return search_of_library<element>.search("searchsorted", c.stream, right, sorted, n, values, m, out);
        const auto search = right ? kernels::search_rows<true, element> : kernels::search_rows<false, element>;
        detail::for_pieces(rows * m, [&](std::int64_t first, std::int64_t count) {
            launch(c, "searchsorted", detail::over(count), search, first, first + count, n, m, sorted, values, out);
        });
    }
};

/// The library's selection reads a mark once and writes a position for each, 1 + 4 bytes at most,
/// in two launches after a fill with zeros. Our kernels write marks as numbers (5 bytes), sum these
/// (8 to 12) and read both once more (5 and a position) in four to six.
template <class T>
    requires std::is_same_v<T, bool>
struct kernel<marked_places_op, T> {
    static std::size_t workspace(const kernel_call& c) {
        if (const std::size_t bytes = library_bytes(c); bytes > 0) return bytes;
        return number_bytes(c) + sums.workspace(running(c).call);
    }
    static void run(const kernel_call& c) {
        const std::int64_t n = runtime::detail::last_extent(c.in[0]), size = runtime::detail::last_extent(c.out[0]);
        const auto* const marks = c.in[0].as<const std::uint8_t>();
        auto* const out = c.out[0].as<std::int32_t>();
        detail::fill_zeros(c);
        if (c.in[0].elements() * size == 0) return;
        if (const std::size_t bytes = library_bytes(c); bytes > 0)
            return selection_of_library.select(name, c.stream, marks, out, n, size, c.workspace, bytes);
        auto* const numbers = static_cast<std::int32_t*>(c.workspace);
        detail::for_pieces(c.in[0].elements(), [&](std::int64_t first, std::int64_t count) {
            launch(c, name, detail::over(count), kernels::numbers_of_marks<>, first, first + count, marks, numbers);
        });
        sums.run(running(c).call);
        detail::for_pieces(c.in[0].elements(), [&](std::int64_t first, std::int64_t count) {
            launch(c, name, detail::over(count), kernels::put_places<>, first, first + count, n, size, marks, numbers,
                   out);
        });
    }

private:
    static constexpr const char* name = "marked_places";
    // This depends on T; otherwise the compiler would instantiate the kernel here, before
    // component.cuh declares which ones the component holds.
    using number = std::conditional_t<std::is_same_v<T, bool>, std::int32_t, T>;
    static constexpr runtime::kernel_functions sums = kernel_for<cumulative_sum_op, number>();

    static std::size_t library_bytes(const kernel_call& c) {
        const std::int64_t n = runtime::detail::last_extent(c.in[0]);
        if (selection_of_library.select == nullptr ||
            !detail::counted_by_library(runtime::detail::leading_extent(c.in[0]), n) || c.out[0].elements() == 0)
            return 0;
        detail::use_device_of(c);
        return selection_of_library.scratch_bytes(n);
    }
    static std::size_t number_bytes(const kernel_call& c) { // the data after it is aligned
        return (static_cast<std::size_t>(c.in[0].elements()) * sizeof(std::int32_t) + 255) / 256 * 256;
    }
    /// The running sums of the numbers in the workspace, computed in place.
    struct running {
        buffer_view numbers;
        std::int64_t words[attribute_words<cumulative_sum_op>];
        kernel_call call;

        explicit running(const kernel_call& c) : numbers(c.out[0]), call(c) {
            numbers.data = c.workspace, numbers.type = dtype::i32, numbers.rank = 2;
            numbers.extents[0] = runtime::detail::leading_extent(c.in[0]);
            numbers.extents[1] = runtime::detail::last_extent(c.in[0]);
            const auto all = attributes_to_words<cumulative_sum_op>({1, 0, 0});
            static_assert(sizeof all == sizeof words);
            std::memcpy(words, &all, sizeof words);
            call.in = &numbers, call.inputs = 1, call.out = &numbers, call.outputs = 1, call.attributes = words;
            call.workspace = c.workspace == nullptr ? nullptr : static_cast<std::byte*>(c.workspace) + number_bytes(c);
        }
        running(const running&) = delete; // the call points into it
        running& operator=(const running&) = delete;
    };
};

/// Every way reads a number once, 4 bytes. Runs by our kernels are added to the table: in shared
/// memory or, where that cannot hold it, to sectors of 32 bytes, which the library's runs write
/// once and contiguously. Both keep a histogram of up to 256 bins in shared memory, in two launches
/// (the library clears the result by a kernel, ours by a fill); the library does not do so for
/// larger ones.
template <class T>
    requires std::is_same_v<T, std::int32_t>
struct kernel<count_places_op, T> {
    static std::size_t workspace(const kernel_call& c) { return way_of(c).bytes; }
    static void run(const kernel_call& c) {
        const std::int64_t rows = runtime::detail::leading_extent(c.in[0]), n = runtime::detail::last_extent(c.in[0]),
                           length = runtime::detail::last_extent(c.out[0]);
        const auto* const x = c.in[0].as<const std::int32_t>();
        auto* const out = c.out[0].as<std::int32_t>();
        const way by = way_of(c);
        if (by.histogram) return histogram_of_library.count(name, c.stream, x, out, n, length, c.workspace, by.bytes);
        detail::fill_zeros(c);
        if (by.runs) return runs_of_library.encode(name, c.stream, x, out, n, length, c.workspace, by.bytes);
        if (rows * n * length == 0) return;
        const kernels::scattering s{1, length, n, 1, false};
        const int shared = length <= kernels::integer_cells<unsigned> ? static_cast<int>(length) : 0;
        const std::int64_t in_block = kernels::integers_in_block(shared);
        constexpr std::int64_t most = 65535; // limit of a grid's second axis
        for (std::int64_t first = 0; first < rows; first += most)
            launch(c, name,
                   {{static_cast<unsigned>(detail::divide_up(n, in_block)),
                     static_cast<unsigned>(std::min(most, rows - first))},
                    kernels::integer_threads},
                   kernels::add_integers<unsigned>, s, shared, in_block, first, detail::indices_of(c.in[0]), true,
                   report_indices(c, name), nullptr, reinterpret_cast<unsigned*>(out));
    }

private:
    static constexpr const char* name = "bincount";
    static constexpr std::int64_t most_of_histogram = 256;

    struct way {
        bool histogram = false, runs = false;
        std::size_t bytes = 0;
    };
    static way way_of(const kernel_call& c) {
        const std::int64_t n = runtime::detail::last_extent(c.in[0]), length = runtime::detail::last_extent(c.out[0]);
        if (!detail::counted_by_library(runtime::detail::leading_extent(c.in[0]), n) || length == 0) return {};
        const bool runs = runtime::attributes_of<count_places_op>(c).runs != 0;
        way by;
        if (runs && runs_of_library.encode != nullptr && length > kernels::integer_cells<unsigned>) {
            detail::use_device_of(c);
            by.bytes = runs_of_library.scratch_bytes(n);
            by.runs = by.bytes > 0;
        } else if (!runs && histogram_of_library.count != nullptr && length <= most_of_histogram) {
            detail::use_device_of(c);
            by.bytes = histogram_of_library.scratch_bytes(n, length);
            by.histogram = by.bytes > 0;
        }
        return by;
    }
};

} // namespace tapegraph::cuda
