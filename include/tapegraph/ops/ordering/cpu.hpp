#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/ops/ordering/sort_key.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

/// Stable sorting along the last axis: a radix sort of (key, position) pairs, byte by byte. Bytes
/// that all keys share are skipped.

namespace tapegraph::cpu {

namespace sort_detail {

inline constexpr std::int64_t most_slots = 16; ///< rows that may be sorted at the same time
inline constexpr std::int64_t parallel_elements = 8192;
inline constexpr std::int64_t most_selected = 64; ///< per row; beyond that, rows are sorted

using tapegraph::detail::sort_key;
using tapegraph::detail::sort_key_of;

template <class T>
struct pair {
    sort_key<T> key;
    std::uint32_t position;
};

template <class T>
void insertion_sort(pair<T>* p, std::int64_t n) {
    for (std::int64_t i = 1; i < n; ++i) {
        const pair<T> moving = p[i];
        std::int64_t k = i;
        for (; k > 0 && p[k - 1].key > moving.key; --k) p[k] = p[k - 1];
        p[k] = moving;
    }
}

/// Sorts p[0, n) using q[0, n); returns the one that holds the result.
template <class T>
pair<T>* radix_sort(pair<T>* p, pair<T>* q, std::int64_t n) {
    constexpr int bytes = sizeof(sort_key<T>);
    std::uint32_t counts[bytes][256] = {};
    for (std::int64_t i = 0; i < n; ++i)
        for (int b = 0; b < bytes; ++b) ++counts[b][p[i].key >> 8 * b & 255];
    for (int b = 0; b < bytes; ++b) {
        if (counts[b][p[0].key >> 8 * b & 255] == static_cast<std::uint64_t>(n)) continue;
        std::uint32_t at[256], sum = 0;
        for (int d = 0; d < 256; ++d) {
            at[d] = sum;
            sum += counts[b][d];
        }
        for (std::int64_t i = 0; i < n; ++i) q[at[p[i].key >> 8 * b & 255]++] = p[i];
        std::swap(p, q);
    }
    return p;
}

/// sort_key_of by operations on integers alone, so that loops over it are vectorised. `flip`: all
/// bits for a descending order, else none.
template <class T>
TG_INLINE sort_key<T> key_of(T x, sort_key<T> flip) {
    using bits = sort_key<T>;
    if constexpr (std::is_integral_v<T>) {
        return sort_key_of(x, false) ^ flip;
    } else {
        constexpr bits sign = bits{1} << (8 * sizeof(bits) - 1);
        constexpr bits infinity = std::bit_cast<bits>(std::numeric_limits<T>::infinity());
        const bits b = std::bit_cast<bits>(x), magnitude = b & ~sign;
        const bits negative = bits{0} - static_cast<bits>(b > sign); // -0 is as 0
        const bits key = (magnitude | sign) ^ negative ^ flip;
        return key | (bits{0} - static_cast<bits>(magnitude > infinity)); // NaN
    }
}

/// Selects the `wanted` first pairs of a row, in order. Most elements of a long row are behind the
/// last of them; a block that has no other is passed over.
template <class T>
struct select_body {
    static constexpr std::int64_t block = 32;

    template <class Isa>
    TG_INLINE static void run(const T* x, std::int64_t length, bool descending, pair<T>* best, std::int64_t wanted) {
        const sort_key<T> flip = descending ? static_cast<sort_key<T>>(-1) : sort_key<T>{0};
        std::int64_t i = 0;
        for (; i < wanted; ++i) insert(best, i, sort_key_of(x[i], descending), i);
        for (; i + block <= length; i += block) {
            sort_key<T> keys[block], before = 0; // a bit for each element that precedes the last one kept
            const sort_key<T> limit = best[wanted - 1].key;
            TG_SIMD
            for (std::int64_t k = 0; k < block; ++k) {
                keys[k] = key_of(x[i + k], flip);
                before |= static_cast<sort_key<T>>(keys[k] < limit) << k;
            }
            for (; before != 0; before &= before - 1) {
                const int k = std::countr_zero(before);
                if (keys[k] < best[wanted - 1].key) insert(best, wanted - 1, keys[k], i + k); // an equal one came first
            }
        }
        for (; i < length; ++i) {
            const sort_key<T> key = sort_key_of(x[i], descending);
            if (key < best[wanted - 1].key) insert(best, wanted - 1, key, i);
        }
    }

private:
    // Puts a pair into its place among best[0, last], whose last is free or goes.
    TG_INLINE static void insert(pair<T>* best, std::int64_t last, sort_key<T> key, std::int64_t position) {
        std::int64_t k = last;
        for (; k > 0 && best[k - 1].key > key; --k) best[k] = best[k - 1];
        best[k] = {key, static_cast<std::uint32_t>(position)};
    }
};

inline std::int64_t slots(std::int64_t outer) { return std::min(outer, most_slots); }

} // namespace sort_detail

/// Bytes of scratch memory, aligned for 8 bytes, that `argsort_last` and `sort_last` need.
template <class T>
std::size_t sort_workspace_bytes(std::int64_t outer, std::int64_t length) {
    return static_cast<std::size_t>(sort_detail::slots(outer) * length) * 2 * sizeof(sort_detail::pair<T>);
}

/// order[o, :] = the positions that sort x[o, :], with equal elements in their order and NaN last;
/// x is [outer, length]. If `first` is not negative, only that many of each row are found and
/// written. Index is std::int32_t or std::int64_t. Throws argument_error for rows of 2^31 elements
/// or more, and for `first` beyond their length.
template <class T, class Index>
void argsort_last(std::int64_t outer, std::int64_t length, bool descending, const T* x, Index* order, void* workspace,
                  std::int64_t first = -1) {
    using namespace sort_detail;
    if (first > length)
        throw argument_error("top_k: k is " + std::to_string(first) + ", the axis has " + std::to_string(length) +
                             " elements");
    if (length > std::numeric_limits<std::int32_t>::max())
        throw argument_error("argsort: " + std::to_string(length) + " elements in a row, more than 2^31 - 1");
    if (outer == 0 || length == 0 || first == 0) return;
    const std::int64_t wanted = first < 0 ? length : first;
    const std::int64_t count = slots(outer);
    parallel_for(count, outer * length >= parallel_elements, [&](std::int64_t slot) {
        pair<T>* const scratch = static_cast<pair<T>*>(workspace) + slot * 2 * length;
        for (std::int64_t o = slot; o < outer; o += count) {
            pair<T>* p = scratch;
            if (length > 48 && wanted <= most_selected) {
                dispatch<select_body<T>>(x + o * length, length, descending, p, wanted);
            } else {
                for (std::int64_t i = 0; i < length; ++i)
                    p[i] = {sort_key_of(x[o * length + i], descending), static_cast<std::uint32_t>(i)};
                if (length <= 48)
                    insertion_sort(p, length);
                else
                    p = radix_sort(p, p + length, length);
            }
            for (std::int64_t i = 0; i < wanted; ++i) order[o * wanted + i] = static_cast<Index>(p[i].position);
        }
    });
}

/// `argsort_last`, and y[o, i] = x[o, order[o, i]].
template <class T, class Index>
void sort_last(std::int64_t outer, std::int64_t length, bool descending, const T* x, T* y, Index* order,
               void* workspace) {
    argsort_last(outer, length, descending, x, order, workspace);
    parallel_for(outer, outer * length >= 4 * sort_detail::parallel_elements, [&](std::int64_t o) {
        for (std::int64_t i = o * length; i < (o + 1) * length; ++i) y[i] = x[o * length + order[i]];
    });
}

} // namespace tapegraph::cpu
