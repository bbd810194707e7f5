#pragma once

#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/sort.cuh>
#include <tapegraph/cuda/launch_bytes.hpp>
#include <tapegraph/cuda/ops/movement/boxes.cuh>
#include <tapegraph/cuda/ops/ordering/library_sort.hpp>
#include <tapegraph/ops/ordering/kernel.hpp>

#include <algorithm>
#include <bit>
#include <limits>

/// Kernels that sort rows, and argsort.

namespace tapegraph::cuda {

namespace detail {

/// The number of rows from which a library that gives each row a block keeps the device busy: two
/// for each of an H100's 132 multiprocessors. A variable, so that tests reach this with few rows.
inline std::int64_t rows_of_blocks = 264;

/// Sorts rows: in tiles that are then merged, or by a library's radix sort where that is linked and
/// moves fewer bytes. The library sorts row by row, all rows side by side, or all as one, for which
/// each pair carries its row number. All ways give the same order. Workspace and run construct the
/// same object.
/// By the predictions of launch_bytes.hpp, a single row goes to the library if it has more than
/// 524,288 floats, or 131,072 indices into up to 32,767 places. Eight rows do so as one from
/// 262,145 floats or 109,227 indices on, and row by row from 2,686,976 or 868,352 on. 264 rows do
/// so side by side from 16,385 bytes, or 8,193 indices into up to 4,095 places on.
template <class Key>
class row_sort {
public:
    using pair = kernels::sort_pair<Key>;

    /// Plans for at most `rows` rows of `length`, of which the first `wanted` elements are the
    /// result: as positions or, with `keep`, as pairs that stay in the workspace. `bits` is the
    /// number of lowest bits in which keys differ.
    row_sort(const kernel_call& c, std::int64_t rows, std::int64_t length, std::int64_t wanted, int bits, bool keep)
        : rows_(rows), length_(length), wanted_(std::min(wanted, length)), bits_(bits), keep_(keep) {
        constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
        if (sort_of_library<Key>.sort == nullptr || rows == 0 || length <= slots || length > most) return;
        kernels::row_tag tag;
        tag.bits = std::bit_width(static_cast<std::uint64_t>(rows - 1));
        tag.key_bits = bits + tag.bits <= key_bits ? bits : -1;
        const bool room = tag.key_bits >= 0 || std::bit_width(static_cast<std::uint64_t>(length - 1)) + tag.bits <= 32;
        const int tagged_bits = (tag.key_bits < 0 ? key_bits : bits) + tag.bits;
        const std::int64_t one_by_one = radix_bytes(rows, bits, keep ? 0 : wanted_),
                           at_once = radix_bytes(1, tagged_bits, wanted_);
        const bool as_one = rows > 1 && rows <= most / length && room && at_once < one_by_one;
        const std::int64_t least = as_one ? at_once : one_by_one;
        if (sort_of_library<Key>.sort_rows != nullptr && bits > 0 && rows >= rows_of_blocks && rows <= most / length &&
            block_bytes(bits) < std::min(least, merge_bytes())) {
            detail::use_device_of(c);
            library_bytes_ = sort_of_library<Key>.scratch_bytes_of_rows(rows, length, bits);
            side_by_side_ = library_bytes_ > 0;
            return;
        }
        if (least >= merge_bytes()) return;
        detail::use_device_of(c);
        if (as_one) at_once_ = rows, bits_ = tagged_bits;
        library_bytes_ = sort_of_library<Key>.scratch_bytes(at_once_ * length, bits_);
        if (as_one && library_bytes_ > 0) tag_ = tag;
    }

    std::size_t workspace() const {
        const int copies = length_ > slots ? 2 : keep_ ? 1 : 0;
        return static_cast<std::size_t>(rows_ * length_) * sizeof(pair) * static_cast<std::size_t>(copies) +
               library_bytes_;
    }

    /// Writes the positions of the wanted elements of each row to `order` [rows, wanted]; where
    /// pairs are kept, returns their address, [rows, length].
    template <class Source>
    const pair* run(const kernel_call& c, const char* operation, const Source& source, std::int64_t rows,
                    std::int32_t* order, void* workspace) const {
        pair* const pairs = static_cast<pair*>(workspace);
        if (rows == 0 || wanted_ == 0) return pairs;
        return library_bytes_ > 0 ? by_library(c, operation, source, rows, order, pairs)
                                  : by_merging(c, operation, source, rows, order, pairs);
    }

private:
    static constexpr std::int64_t slots = kernels::sort_slots<Key>, pair_bytes = sizeof(pair);
    static constexpr int key_bits = 8 * sizeof(Key);

    // Bytes moved through memory, with launches counted as bytes. Both ways read the source once,
    // which is left out. Tiles write their wanted elements, and each pass reads and writes these.
    std::int64_t merge_bytes() const {
        std::int64_t bytes = rows_ * wanted_in(slots) * pair_bytes + bytes_per_launch;
        for (std::int64_t run = slots; run < length_; run *= 2)
            bytes += 2 * rows_ * wanted_in(2 * run) * pair_bytes + bytes_per_launch;
        return bytes;
    }
    // Pairs are written once, read once to count all digits, and moved once for each digit of 8
    // bits. CUB clears counters twice and launches two kernels, then clears and launches once per
    // digit (CCCL 3.0). `finished` pairs of a row are read once more by another launch, to extract
    // their positions or to drop row numbers, which a last merge does in passing.
    std::int64_t radix_bytes(std::int64_t sorts, int bits, std::int64_t finished) const {
        const std::int64_t digits = divide_up(bits, 8), launches = 1 + sorts * (4 + 2 * digits) + (finished > 0);
        return (rows_ * length_ * (2 + 2 * digits) + 2 * rows_ * finished) * pair_bytes + launches * bytes_per_launch;
    }
    // A block sorts a row by digits of 6 bits, in one launch per digit: it reads pairs to count
    // them, reads them again, and writes them.
    std::int64_t block_bytes(int bits) const {
        const std::int64_t digits = divide_up(bits, 6), launches = 1 + digits + (keep_ ? 0 : 1);
        return (rows_ * length_ * (1 + 3 * digits) + 2 * rows_ * (keep_ ? 0 : wanted_)) * pair_bytes +
               launches * bytes_per_launch;
    }
    // The number of elements of a row that remain when each of its runs of `run` elements keeps
    // only the wanted ones.
    std::int64_t wanted_in(std::int64_t run) const {
        return std::min(length_, divide_up(length_, run) * std::min(run, wanted_));
    }

    template <class Source>
    void sort_tiles(const kernel_call& c, const char* operation, const Source& source, std::int64_t rows, int width,
                    pair* pairs, std::int32_t* order) const {
        const kernels::tile_sort s{rows, length_, width, wanted_, tag_};
        const std::int64_t segments = rows * divide_up(length_, width), in_block = slots / width;
        launch(c, operation, {static_cast<unsigned>(divide_up(segments, in_block)), kernels::sort_threads},
               kernels::sort_tiles<Source>, s, source, pairs, order);
    }
    void merge(const kernel_call& c, const char* operation, std::int64_t rows, std::int64_t run, const pair* from,
               pair* to, std::int32_t* order) const {
        const kernels::merge_pass m{length_,
                                    run,
                                    wanted_,
                                    divide_up(length_, 2 * run),
                                    divide_up(std::min({2 * run, wanted_, length_}), kernels::merge_tile),
                                    tag_};
        launch(c, operation, {static_cast<unsigned>(rows * m.in_row * m.tiles), kernels::merge_threads},
               kernels::merge_runs<Key>, m, from, to, order);
    }

    template <class Source>
    const pair* by_merging(const kernel_call& c, const char* operation, const Source& source, std::int64_t rows,
                           std::int32_t* order, pair* from) const {
        int width = static_cast<int>(slots);
        while (width / 2 >= length_) width /= 2;
        sort_tiles(c, operation, source, rows, width, from, length_ <= slots ? order : nullptr);
        pair* to = from + rows_ * length_;
        for (std::int64_t run = slots; run < length_; run *= 2) {
            merge(c, operation, rows, run, from, to, 2 * run >= length_ ? order : nullptr);
            std::swap(from, to);
        }
        return from;
    }

    // This uses only kernels that merging needs anyway, so that programs take no longer to compile.
    template <class Source>
    const pair* by_library(const kernel_call& c, const char* operation, const Source& source, std::int64_t rows,
                           std::int32_t* order, pair* pairs) const {
        sort_tiles(c, operation, source, rows, 1, pairs, nullptr);
        pair *const other = pairs + rows_ * length_, *sorted = pairs;
        if (side_by_side_)
            sorted = sort_of_library<Key>.sort_rows(operation, c.stream, pairs, other, rows, length_, bits_,
                                                    other + rows_ * length_, library_bytes_);
        for (std::int64_t row = 0; row < rows && !side_by_side_; row += at_once_) {
            const std::int64_t begin = row * length_, count = std::min(at_once_, rows - row) * length_;
            sorted = sort_of_library<Key>.sort(operation, c.stream, pairs + begin, other + begin, count, bits_,
                                               other + rows_ * length_, library_bytes_) -
                     begin;
        }
        if (order == nullptr && tag_.bits == 0) return sorted;
        pair* const finished = sorted == pairs ? other : pairs;
        merge(c, operation, rows, length_, sorted, finished, order);
        return finished;
    }

    std::int64_t rows_, length_, wanted_;
    int bits_;
    bool keep_;
    std::int64_t at_once_ = 1;  ///< rows that the library sorts as one
    bool side_by_side_ = false; ///< each row is sorted by a block of the library
    kernels::row_tag tag_;
    std::size_t library_bytes_ = 0; ///< scratch memory of the library; 0: tiles are merged
};

} // namespace detail

template <class T>
struct kernel<argsort_op, T> {
    using element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    using source = kernels::number_source<element>;
    using key = typename source::key;

    static std::size_t workspace(const kernel_call& c) { return sort_of(c).workspace(); }
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
        const detail::row_sort<key> sort = sort_of(c);
        for (std::int64_t row = 0; row < rows; row += step)
            sort.run(c, "argsort", source{c.in[0].as<const element>() + row * length, length, descending},
                     std::min(step, rows - row), c.out[0].as<std::int32_t>() + row * wanted, c.workspace);
    }

private:
    static detail::row_sort<key> sort_of(const kernel_call& c) {
        return {c,
                rows_at_once(c),
                runtime::detail::last_extent(c.in[0]),
                runtime::detail::last_extent(c.out[0]),
                source::bits(),
                false};
    }
    /// The number of rows sorted at a time, chosen so that scratch memory stays bounded however many rows there are.
    static std::int64_t rows_at_once(const kernel_call& c) {
        const std::int64_t most = std::min<std::int64_t>(detail::most_elements, std::int64_t{1} << 24);
        const std::int64_t length = std::max<std::int64_t>(1, runtime::detail::last_extent(c.in[0]));
        return std::max<std::int64_t>(1, std::min(runtime::detail::leading_extent(c.in[0]), most / length));
    }
};

} // namespace tapegraph::cuda
