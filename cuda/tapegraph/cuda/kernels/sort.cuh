#pragma once

#include <tapegraph/cuda/kernels/gather.cuh>
#include <tapegraph/ops/ordering/sort_key.hpp>

#include <bit>
#include <cstdint>
#include <type_traits>

/// Sorts rows. The sort compares pairs of a key and a position by both: no two of them are equal,
/// so every way of sorting is stable. Memory plan:
///
///   sort_tiles   A block loads a tile of a row, or several whole rows that fit, into shared memory
///                (16 KiB) and sorts them there by a bitonic network, in which every exchange puts
///                the smaller element first. Exchanges between neighbours cause bank conflicts: 1.6
///                to 2.1 times the least number of cycles in total (tools/bank_conflicts).
///   merge_runs   A block makes one tile of two merged runs: it finds by bisection ("merge path",
///                Odeh, Green et al., 2012) which parts of the runs it needs, loads them into
///                shared memory, and each thread again merges its part of them. The result is
///                stored through shared memory, so that neighbours write side by side. A gap after
///                every 128 bytes keeps neighbours' parts in different banks.
///
/// Before a library's sort, sort_tiles makes the pairs (tiles of one element), and after it
/// merge_runs extracts their positions, or the pairs without their row numbers (as a run that has
/// no partner).

namespace tapegraph::cuda::kernels {

template <class Key>
struct alignas(2 * sizeof(Key)) sort_pair {
    Key key;
    std::uint32_t position;
};
template <class Key>
__device__ bool before(const sort_pair<Key>& a, const sort_pair<Key>& b) {
    return a.key < b.key || (a.key == b.key && a.position < b.position);
}

/// The row number in each pair, which makes rows that are sorted as one come out one after the
/// other. It is above the sorted bits of the key or, if the key has no room there, at the lower end
/// of the position, which moves up. In memory the position is above the key.
struct row_tag {
    int bits = 0;     ///< of a row number; 0: there is none
    int key_bits = 0; ///< bits below it in the key; -1: it is in the position

    template <class Key>
    __device__ sort_pair<Key> put_on(const sort_pair<Key>& p, std::int64_t row) const {
        if (bits == 0) return p;
        if (key_bits < 0) return {p.key, p.position << bits | static_cast<std::uint32_t>(row)};
        return {static_cast<Key>(low_bits(p.key) | static_cast<Key>(row) << key_bits), p.position};
    }
    /// Removes the row number. A key keeps only its sorted bits.
    template <class Key>
    __device__ sort_pair<Key> take_off(const sort_pair<Key>& p) const {
        if (bits == 0) return p;
        if (key_bits < 0) return {p.key, p.position >> bits};
        return {low_bits(p.key), p.position};
    }

private:
    template <class Key>
    __device__ Key low_bits(Key key) const {
        return key & ((Key{1} << key_bits) - 1);
    }
};

/// Keys of numbers, row by row.
template <class T>
struct number_source {
    using key = tapegraph::detail::sort_key<T>;
    const T* x;
    std::int64_t length;
    bool descending;

    /// The lowest bits of a key, in which keys differ if they differ at all.
    static int bits() { return 8 * static_cast<int>(std::is_unsigned_v<T> ? sizeof(T) : sizeof(key)); }
    __device__ key operator()(std::int64_t row, std::int64_t i) const {
        return tapegraph::detail::sort_key_of(x[row * length + i], descending);
    }
};

/// Keys of indices: row b * inner + c holds indices[b, :, c] of [batches, count, inner]. Indices
/// outside come last.
template <class Key>
struct index_source {
    using key = Key;
    index_view indices;
    std::int64_t count, inner, extent;
    bool checked;
    fault_report report;

    /// As above; with all of these bits set a key is at least `extent`, so indices outside come
    /// last by these bits, too.
    static int bits(std::int64_t extent) { return std::bit_width(static_cast<std::uint64_t>(extent)); }
    __device__ key operator()(std::int64_t row, std::int64_t i) const {
        const std::int64_t place = (row / inner * count + i) * inner + row % inner, index = indices[place];
        if (inside(index, extent)) return static_cast<key>(index);
        if (!checked) report(place, index, extent);
        return static_cast<key>(-1);
    }
};

inline constexpr int sort_threads = 256;
template <class Key>
inline constexpr int sort_slots = 16384 / sizeof(sort_pair<Key>);

/// A segment is a row, or a tile of a row that is longer than a tile; it fills `width` slots, a
/// power of two.
struct tile_sort {
    std::int64_t rows, length;
    int width;
    std::int64_t wanted; ///< first elements of a row or a run that are wanted
    row_tag tag = {};    ///< of the pairs in memory
};

/// Sorts segments into `pairs` [rows, length] or, where rows are no longer than a tile, writes
/// their first positions to `order` [rows, wanted].
template <class Source, class Key = typename Source::key>
__global__ void sort_tiles(tile_sort s, Source source, sort_pair<Key>* pairs, std::int32_t* order) {
    constexpr int slots = sort_slots<Key>;
    __shared__ sort_pair<Key> tile[slots];
    const int per_block = slots / s.width, t = static_cast<int>(threadIdx.x);
    const std::int64_t in_row = (s.length + s.width - 1) / s.width;
    const auto place = [&](int slot, std::int64_t& row, std::int64_t& at) {
        const std::int64_t segment = blockIdx.x * static_cast<std::int64_t>(per_block) + slot / s.width;
        row = segment / in_row;
        at = (segment - row * in_row) * s.width + slot % s.width;
        return row < s.rows && at < s.length;
    };
    std::int64_t row, at;
    for (int slot = t; slot < slots; slot += sort_threads)
        if (place(slot, row, at))
            tile[slot] = {source(row, at), static_cast<std::uint32_t>(at)};
        else
            tile[slot] = {static_cast<Key>(-1), static_cast<std::uint32_t>(-1)};
    __syncthreads();
    const auto exchange = [&](int i, int j) {
        const sort_pair<Key> a = tile[i], b = tile[j];
        if (before(b, a)) tile[i] = b, tile[j] = a;
    };
    for (int size = 2; size <= s.width; size *= 2) {
        // Two sorted halves: the second is read backwards.
        for (int c = t; c < slots / 2; c += sort_threads) {
            const int low = c & (size / 2 - 1), base = (c - low) * 2;
            exchange(base + low, base + size - 1 - low);
        }
        __syncthreads();
        for (int half = size / 4; half > 0; half /= 2) {
            for (int c = t; c < slots / 2; c += sort_threads) {
                const int low = c & (half - 1), i = (c - low) * 2 + low;
                exchange(i, i + half);
            }
            __syncthreads();
        }
    }
    for (int slot = t; slot < slots; slot += sort_threads) {
        if (!place(slot, row, at) || slot % s.width >= s.wanted) continue;
        if (order != nullptr)
            order[row * s.wanted + at] = static_cast<std::int32_t>(tile[slot].position);
        else
            pairs[row * s.length + at] = s.tag.put_on(tile[slot], row);
    }
}

inline constexpr int merge_threads = 128, merge_items = 8, merge_tile = merge_threads * merge_items;

/// The slot of an element of merge_runs's tile.
template <class Key>
__device__ constexpr int merge_slot(int i) {
    return i + i / (128 / static_cast<int>(sizeof(sort_pair<Key>)));
}
/// The tile from one of its elements on.
template <class Key>
struct merge_part {
    const sort_pair<Key>* tile;
    int from;

    __device__ const sort_pair<Key>& operator[](std::int64_t i) const {
        return tile[merge_slot<Key>(from + static_cast<int>(i))];
    }
};

/// How many of the first d elements of two merged runs come from the first run, which has a
/// elements; the second has b.
template <class Run>
__device__ std::int64_t merge_split(const Run& first, std::int64_t a, const Run& second, std::int64_t b,
                                    std::int64_t d) {
    std::int64_t low = d > b ? d - b : 0, high = d < a ? d : a;
    while (low < high) {
        const std::int64_t middle = (low + high) / 2;
        if (before(first[middle], second[d - 1 - middle]))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/// One pass: runs of `run` elements, of which only the first `wanted` exist, become runs of twice
/// as many.
struct merge_pass {
    std::int64_t length, run, wanted;
    std::int64_t in_row; ///< pairs of runs in a row
    std::int64_t tiles;  ///< tiles of a merged run
    row_tag tag = {};    ///< of the pairs that are read

    __device__ std::int64_t there(std::int64_t begin) const { // elements of the run that begins there
        std::int64_t count = length - begin;
        if (run < count) count = run;
        if (wanted < count) count = wanted;
        return count > 0 ? count : 0;
    }
};
template <class Key>
__global__ void merge_runs(merge_pass m, const sort_pair<Key>* in, sort_pair<Key>* out, std::int32_t* order) {
    __shared__ sort_pair<Key> tile[merge_slot<Key>(merge_tile)];
    __shared__ std::int64_t splits[2];
    const int t = static_cast<int>(threadIdx.x);
    const std::int64_t merged = blockIdx.x / m.tiles, row = merged / m.in_row;
    const std::int64_t begin = (merged - row * m.in_row) * 2 * m.run, base = row * m.length + begin;
    const sort_pair<Key>*const first = in + base, *const second = first + m.run;
    const std::int64_t a = m.there(begin), b = m.there(begin + m.run), all = a + b < m.wanted ? a + b : m.wanted;
    const std::int64_t from = (blockIdx.x - merged * m.tiles) * merge_tile;
    const std::int64_t to = from + merge_tile < all ? from + merge_tile : all;
    if (from >= all) return; // the whole block returns
    if (t % 32 == 0 && t < 64) splits[t / 32] = merge_split(first, a, second, b, t == 0 ? from : to);
    __syncthreads();
    const int na = static_cast<int>(splits[1] - splits[0]), n = static_cast<int>(to - from);
    for (int i = t; i < n; i += merge_threads)
        tile[merge_slot<Key>(i)] = i < na ? first[splits[0] + i] : second[from - splits[0] + (i - na)];
    __syncthreads();
    sort_pair<Key> mine[merge_items];
    const int own = t * merge_items < n ? t * merge_items : n;
    const merge_part<Key> all_there{tile, 0}, of_second{tile, na};
    int i = static_cast<int>(merge_split(all_there, na, of_second, n - na, own)), j = na + own - i;
    TG_UNROLL
    for (int k = 0; k < merge_items; ++k) {
        if (own + k >= n) break;
        const bool left = j >= n || (i < na && before(all_there[i], all_there[j]));
        mine[k] = all_there[left ? i++ : j++];
    }
    __syncthreads();
    TG_UNROLL
    for (int k = 0; k < merge_items; ++k)
        if (own + k < n) tile[merge_slot<Key>(own + k)] = mine[k];
    __syncthreads();
    for (int k = t; k < n; k += merge_threads) {
        if (order != nullptr)
            order[row * m.wanted + from + k] = static_cast<std::int32_t>(m.tag.take_off(all_there[k]).position);
        else
            out[base + from + k] = m.tag.take_off(all_there[k]);
    }
}

} // namespace tapegraph::cuda::kernels
