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

/// Rows in order, and argsort.

namespace tapegraph::cuda {

namespace detail {

/// Rows that are enough for a library that gives each a block of its own: two for each of an H100's 132 multiprocessors. A variable, so
/// that tests have enough with few.
inline std::int64_t rows_of_blocks = 264;

/// Sorts rows, in tiles that are then merged, or by a library's radix sort where that is linked and moves less: row by row, all
/// side by side, or all of them as one, for which each pair carries the number of its row. All give the same order. Workspace and run make the same one.
/// By what launch_bytes.hpp predicts, a single row goes to the library if it has more than 524,288 floats, or 131,072 indices
/// into up to 32,767 places; eight rows do, as one, from 262,145 floats or 109,227 indices on, and row by row from 2,686,976 or
/// 868,352 on; 264 rows do side by side from 16,385 bytes, or 8,193 indices into up to 4,095 places on.
template <class Key>
class row_sort {
public:
    using pair = kernels::sort_pair<Key>;

    /// At most `rows` of `length`, of which the first `wanted` are the result: as positions, or with `keep` the pairs, which
    /// then stay in the workspace. `bits`: the lowest bits of keys, in which they differ.
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

    /// The positions of the wanted elements of each row go to `order` [rows, wanted]; where pairs are kept the result is where
    /// they are, [rows, length].
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

    // Bytes through memory, launches counted as such. Both read the source once, and that is left out. Tiles write what is wanted
    // of them, and each pass reads and writes it.
    std::int64_t merge_bytes() const {
        std::int64_t bytes = rows_ * wanted_in(slots) * pair_bytes + bytes_per_launch;
        for (std::int64_t run = slots; run < length_; run *= 2)
            bytes += 2 * rows_ * wanted_in(2 * run) * pair_bytes + bytes_per_launch;
        return bytes;
    }
    // Pairs are written once, read once for the counts of all digits, and each digit of 8 bits moves them. CUB clears counters twice
    // and launches two kernels, then clears and launches once per digit (CCCL 3.0). `finished` pairs of a row are read once more, for
    // their positions or to leave their rows' numbers behind, by a launch, where a last merge does it on its way.
    std::int64_t radix_bytes(std::int64_t sorts, int bits, std::int64_t finished) const {
        const std::int64_t digits = divide_up(bits, 8), launches = 1 + sorts * (4 + 2 * digits) + (finished > 0);
        return (rows_ * length_ * (2 + 2 * digits) + 2 * rows_ * finished) * pair_bytes + launches * bytes_per_launch;
    }
    // A block sorts a row by digits of 6 bits, in a launch for each: it reads pairs for the counts, then once more, and writes them.
    std::int64_t block_bytes(int bits) const {
        const std::int64_t digits = divide_up(bits, 6), launches = 1 + digits + (keep_ ? 0 : 1);
        return (rows_ * length_ * (1 + 3 * digits) + 2 * rows_ * (keep_ ? 0 : wanted_)) * pair_bytes +
               launches * bytes_per_launch;
    }
    // The number of elements of a row that are left when each of its runs of `run` elements keeps only as many as are wanted.
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

    // No kernels but those that merging takes, so that a program costs nothing more to compile.
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
    bool side_by_side_ = false; ///< a block of the library's for each row
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
