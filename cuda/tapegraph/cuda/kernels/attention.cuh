#pragma once

#include <tapegraph/cuda/kernels/box.cuh>
#include <tapegraph/ops/attention/kernel.hpp>

/// Attention and its derivative, plainly: for doubles, for features that do not fit into shared memory,
/// and for devices without asynchronous copies (flash_attention.cuh has the others). A block of 16 by
/// 16 threads goes through tiles of 16 queries by 16 keys, with a tile of each operand in shared memory,
/// and keeps 128 columns of its results in registers; further columns are those of further blocks, which
/// compute the scores again.

namespace tapegraph::cuda::kernels {

inline constexpr int attention_side = 16, attention_pieces = 8, attention_columns = attention_side * attention_pieces;

template <class T>
struct attention_arguments {
    cpu::attention_shape s;
    cpu::attention_operands<T> of;
    const T *numbers = nullptr, *dy = nullptr, *delta = nullptr; ///< of queries, and for derivatives
    std::int64_t first = 0;                                      ///< block of all
};

template <class T>
using attention_tile = T[attention_side][attention_side + 1];

__device__ inline std::int64_t query_row(const cpu::attention_shape& s, std::int64_t head, std::int64_t query) {
    return (head / s.heads * s.time + query) * s.heads + head % s.heads;
}
__device__ inline std::int64_t key_row(const cpu::attention_shape& s, std::int64_t head, std::int64_t key) {
    return (head / s.heads * s.steps + key) * s.kv_heads() + head % s.heads / s.shared;
}
/// tile[row][column] = x at row(row), columns first + column; 0 outside.
template <class T, class Row>
__device__ void load_tile(attention_tile<T>& tile, const T* x, const Row& row, std::int64_t begin, std::int64_t rows,
                          std::int64_t first, std::int64_t columns) {
    const int ty = static_cast<int>(threadIdx.x) / attention_side, tx = static_cast<int>(threadIdx.x) % attention_side;
    __syncthreads(); // some threads may still read the last one
    tile[ty][tx] = begin + ty < rows && first + tx < columns ? x[row(begin + ty) * columns + first + tx] : T(0);
    __syncthreads();
}

/// sum + weight x; a weight of 0 takes no notice of an infinite or NaN x.
template <class T>
__device__ void add_weighted(T& sum, T weight, T x) {
    sum = weight == T(0) ? sum : multiply_add(weight, x, sum);
}

/// x_ty . y_tx over `size` features.
template <class T, class X, class Y>
__device__ T tile_product(attention_tile<T>& a, attention_tile<T>& b, const T* x, const X& x_row, std::int64_t x_begin,
                          std::int64_t x_rows, const T* y, const Y& y_row, std::int64_t y_begin, std::int64_t y_rows,
                          std::int64_t size) {
    const int ty = static_cast<int>(threadIdx.x) / attention_side, tx = static_cast<int>(threadIdx.x) % attention_side;
    T sum(0);
    for (std::int64_t first = 0; first < size; first += attention_side) {
        load_tile(a, x, x_row, x_begin, x_rows, first, size);
        load_tile(b, y, y_row, y_begin, y_rows, first, size);
        TG_UNROLL
        for (int i = 0; i < attention_side; ++i) sum = multiply_add(a[ty][i], b[tx][i], sum);
    }
    return sum;
}

/// A score with its bias, or -infinity where the key is not seen.
template <class T>
__device__ T attention_score(const attention_arguments<T>& g, std::int64_t head, std::int64_t query, std::int64_t key,
                             T product) {
    const cpu::attention_shape& s = g.s;
    const T hidden = -math::detail::traits<T>::infinity;
    if (query >= s.time || key >= s.steps || (s.causal && key > query + s.offset)) return hidden;
    T score = product * static_cast<T>(s.scale);
    if (s.biased) {
        const T bias = g.of.bias[head / s.heads * s.bias_strides[0] + head % s.heads * s.bias_strides[1] +
                                 query * s.bias_strides[2] + key * s.bias_strides[3]];
        score = bias == hidden ? hidden : score + bias;
    }
    return score;
}
/// What a weight is multiplied by: 1 without dropout.
template <class T>
__device__ T attention_kept(const attention_arguments<T>& g, std::int64_t head, std::int64_t query, std::int64_t key) {
    const cpu::attention_shape& s = g.s;
    if (!s.drops || query >= s.time || key >= s.steps) return T(1);
    const auto index = static_cast<std::uint64_t>((head * s.time + query) * s.steps + key);
    const T drawn = random::detail::at<random::detail::uniform, T>(random::address_of(g.of.address), index);
    return drawn >= static_cast<T>(s.rate) ? static_cast<T>(1 / (1 - s.rate)) : T(0);
}
/// The end of keys that some query before `end` sees.
__device__ inline std::int64_t keys_end(const cpu::attention_shape& s, std::int64_t end) {
    if (!s.causal) return s.steps;
    const std::int64_t last = (end < s.time ? end : s.time) + s.offset;
    return last < 0 ? 0 : last < s.steps ? last : s.steps;
}

template <class T>
__global__ void attention_forward(attention_arguments<T> g, T* y, T* numbers) {
    __shared__ attention_tile<T> a, b, p;
    const cpu::attention_shape& s = g.s;
    const std::int64_t tiles = (s.time + attention_side - 1) / attention_side,
                       segments = s.width > 0 ? (s.width + attention_columns - 1) / attention_columns : 1;
    const std::int64_t number = g.first + blockIdx.x, segment = number % segments,
                       begin = number / segments % tiles * attention_side, head = number / segments / tiles;
    const int ty = static_cast<int>(threadIdx.x) / attention_side, tx = static_cast<int>(threadIdx.x) % attention_side;
    const auto queries = [&](std::int64_t i) { return query_row(s, head, i); };
    const auto keys = [&](std::int64_t i) { return key_row(s, head, i); };
    const std::int64_t query = begin + ty, end = keys_end(s, begin + attention_side);
    const T hidden = -math::detail::traits<T>::infinity;
    T largest = hidden, total(0), sums[attention_pieces]{};
    for (std::int64_t first = 0; first < end; first += attention_side) {
        const T product = tile_product(a, b, g.of.q, queries, begin, s.time, g.of.k, keys, first, s.steps, s.depth);
        p[ty][tx] = attention_score(g, head, query, first + tx, product);
        __syncthreads();
        T best = largest, own(0);
        for (int i = 0; i < attention_side; ++i) best = p[ty][i] > best ? p[ty][i] : best;
        const T shift = best == hidden ? T(0) : best, factor = math::exp(largest - shift);
        largest = best;
        const T raised = math::exp(p[ty][tx] - shift);
        __syncthreads();
        p[ty][tx] = raised;
        __syncthreads();
        for (int i = 0; i < attention_side; ++i) own += p[ty][i];
        total = total * factor + own;
        __syncthreads();
        p[ty][tx] = raised * attention_kept(g, head, query, first + tx);
        TG_UNROLL
        for (int piece = 0; piece < attention_pieces; ++piece) {
            const std::int64_t column = segment * attention_columns + piece * attention_side;
            if (column >= s.width) break;
            load_tile(b, g.of.v, keys, first, s.steps, column, s.width);
            T sum(0);
            TG_UNROLL
            for (int i = 0; i < attention_side; ++i) add_weighted(sum, p[ty][i], b[i][tx]);
            sums[piece] = sums[piece] * factor + sum;
        }
        __syncthreads();
    }
    if (query >= s.time) return;
    const T inverse = total == T(0) ? T(0) : T(1) / total;
    TG_UNROLL
    for (int piece = 0; piece < attention_pieces; ++piece) {
        const std::int64_t column = segment * attention_columns + piece * attention_side + tx;
        if (column >= s.width) break;
        T result = sums[piece] * inverse;
        if (total == T(0) && s.equal) { // it sees nothing
            for (std::int64_t k = 0; k < s.steps; ++k) {
                const T kept = attention_kept(g, head, query, k);
                result += kept == T(0) ? T(0) : kept * g.of.v[keys(k) * s.width + column];
            }
            result = result / static_cast<T>(s.steps);
        }
        y[queries(query) * s.width + column] = result;
    }
    if (segment != 0 || tx != 0) return;
    numbers[2 * (head * s.time + query)] = largest == hidden ? T(0) : largest;
    numbers[2 * (head * s.time + query) + 1] = inverse;
}

/// delta: the sum of dy y of each query.
template <class T>
__global__ void attention_delta(attention_arguments<T> g, std::int64_t end, const T* y, T* delta) {
    const cpu::attention_shape& s = g.s;
    const std::int64_t i = g.first + thread_number();
    if (i >= end) return;
    const std::int64_t at = query_row(s, i / s.time, i % s.time) * s.width;
    T sum(0);
    for (std::int64_t c = 0; c < s.width; ++c) sum = multiply_add(g.dy[at + c], y[at + c], sum);
    delta[i] = sum;
}

/// A weight times its factor by dropout, and the derivative by its score, of what two products give.
template <class T>
__device__ void attention_slope(const attention_arguments<T>& g, std::int64_t head, std::int64_t query,
                                std::int64_t key, T product, T by_weight, T& weight, T& slope) {
    const cpu::attention_shape& s = g.s;
    weight = slope = T(0);
    if (query >= s.time || key >= s.steps) return;
    const std::int64_t i = head * s.time + query;
    const T kept = attention_kept(g, head, query, key), inverse = g.numbers[2 * i + 1];
    if (inverse == T(0)) {
        if (s.equal) weight = kept / static_cast<T>(s.steps);
        return;
    }
    const T plain = math::exp(attention_score(g, head, query, key, product) - g.numbers[2 * i]) * inverse;
    if (plain == T(0)) return;
    weight = plain * kept;
    slope = plain * ((kept == T(0) ? T(0) : by_weight * kept) - g.delta[i]);
}

template <class T>
__global__ void attention_by_queries(attention_arguments<T> g, T* dq) {
    __shared__ attention_tile<T> a, b, p;
    const cpu::attention_shape& s = g.s;
    const std::int64_t tiles = (s.time + attention_side - 1) / attention_side,
                       segments = (s.depth + attention_columns - 1) / attention_columns;
    const std::int64_t number = g.first + blockIdx.x, segment = number % segments,
                       begin = number / segments % tiles * attention_side, head = number / segments / tiles;
    const int ty = static_cast<int>(threadIdx.x) / attention_side, tx = static_cast<int>(threadIdx.x) % attention_side;
    const auto queries = [&](std::int64_t i) { return query_row(s, head, i); };
    const auto keys = [&](std::int64_t i) { return key_row(s, head, i); };
    const std::int64_t end = keys_end(s, begin + attention_side);
    T sums[attention_pieces]{};
    for (std::int64_t first = 0; first < end; first += attention_side) {
        const T product = tile_product(a, b, g.of.q, queries, begin, s.time, g.of.k, keys, first, s.steps, s.depth);
        const T by_weight = tile_product(a, b, g.dy, queries, begin, s.time, g.of.v, keys, first, s.steps, s.width);
        T weight, slope;
        attention_slope(g, head, begin + ty, first + tx, product, by_weight, weight, slope);
        p[ty][tx] = slope;
        TG_UNROLL
        for (int piece = 0; piece < attention_pieces; ++piece) {
            const std::int64_t column = segment * attention_columns + piece * attention_side;
            if (column >= s.depth) break;
            load_tile(b, g.of.k, keys, first, s.steps, column, s.depth);
            TG_UNROLL
            for (int i = 0; i < attention_side; ++i) add_weighted(sums[piece], p[ty][i], b[i][tx]);
        }
        __syncthreads();
    }
    TG_UNROLL
    for (int piece = 0; piece < attention_pieces; ++piece) {
        const std::int64_t column = segment * attention_columns + piece * attention_side + tx;
        if (column < s.depth && begin + ty < s.time)
            dq[queries(begin + ty) * s.depth + column] = sums[piece] * static_cast<T>(s.scale);
    }
}

/// With `Values` the derivative by values, otherwise by keys. A block has keys of one head of keys.
template <bool Values, class T>
__global__ void attention_by_keys(attention_arguments<T> g, T* to) {
    __shared__ attention_tile<T> a, b, p;
    const cpu::attention_shape& s = g.s;
    const std::int64_t size = Values ? s.width : s.depth;
    const std::int64_t tiles = (s.steps + attention_side - 1) / attention_side,
                       segments = (size + attention_columns - 1) / attention_columns;
    const std::int64_t number = g.first + blockIdx.x, segment = number % segments,
                       begin = number / segments % tiles * attention_side, of_keys = number / segments / tiles;
    const int ty = static_cast<int>(threadIdx.x) / attention_side, tx = static_cast<int>(threadIdx.x) % attention_side;
    const std::int64_t first_head = of_keys / s.kv_heads() * s.heads + of_keys % s.kv_heads() * s.shared;
    const auto keys = [&](std::int64_t i) { return key_row(s, first_head, i); };
    T sums[attention_pieces]{};
    for (std::int64_t head = first_head; head < first_head + s.shared; ++head)
        for (std::int64_t first = 0; first < s.time; first += attention_side) {
            if (!s.equal && keys_end(s, first + attention_side) <= begin) continue;
            const auto queries = [&](std::int64_t i) { return query_row(s, head, i); };
            const T product = tile_product(a, b, g.of.k, keys, begin, s.steps, g.of.q, queries, first, s.time, s.depth);
            const T by_weight = tile_product(a, b, g.of.v, keys, begin, s.steps, g.dy, queries, first, s.time, s.width);
            T weight, slope;
            attention_slope(g, head, first + tx, begin + ty, product, by_weight, weight, slope);
            p[ty][tx] = Values ? weight : slope;
            TG_UNROLL
            for (int piece = 0; piece < attention_pieces; ++piece) {
                const std::int64_t column = segment * attention_columns + piece * attention_side;
                if (column >= size) break;
                load_tile(b, Values ? g.dy : g.of.q, queries, first, s.time, column, size);
                TG_UNROLL
                for (int i = 0; i < attention_side; ++i) add_weighted(sums[piece], p[ty][i], b[i][tx]);
            }
            __syncthreads();
        }
    TG_UNROLL
    for (int piece = 0; piece < attention_pieces; ++piece) {
        const std::int64_t column = segment * attention_columns + piece * attention_side + tx;
        if (column < size && begin + ty < s.steps)
            to[keys(begin + ty) * size + column] = Values ? sums[piece] : sums[piece] * static_cast<T>(s.scale);
    }
}

template <class T>
__global__ void random_address(const random_state* state, std::uint32_t ordinal, std::int64_t count, T* to) {
    const std::int64_t i = thread_number();
    if (i < count) to[i] = static_cast<T>(random::address_part(*state, ordinal, i % random_address_op<T>::words));
}
template <class T>
__global__ void numbers_at(const T* address, std::int64_t first, std::int64_t end, T* to) {
    const std::int64_t i = first + thread_number();
    if (i >= end) return;
    to[i] = random::detail::at<random::detail::uniform, T>(random::address_of(address), static_cast<std::uint64_t>(i));
}

} // namespace tapegraph::cuda::kernels
