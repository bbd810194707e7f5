#pragma once

#include <tapegraph/cuda/kernels/attention.cuh>
#include <tapegraph/cuda/kernels/flash_products.cuh>

/// What flash_attention.cuh does with a tile of scores between its products. Rows are a warp's 16
/// queries and columns 64 keys or, with `ByKeys`, the other way round.

namespace tapegraph::cuda::kernels {

struct flash_arguments : attention_arguments<float> {
    flash_rows depth, width, part; ///< part: columns of values that a block has results of
};

/// e^x for x up to 0.
__device__ inline float flash_exp(float x) { return exp2f(x * 1.44269504f); }

__device__ inline int flash_warp() { return static_cast<int>(threadIdx.x) / 32; }
__device__ inline int flash_bounded(std::int64_t x) {
    return static_cast<int>(x < -2 * flash_side ? -2 * flash_side : x > 2 * flash_side ? 2 * flash_side : x);
}

/// The block's number of (tile, head, segment of 64 columns), segments first.
struct flash_place {
    int tile, head, segment;

    __device__ flash_place(const flash_arguments& g, std::int64_t heads, int segments) {
        const auto number = static_cast<std::uint32_t>(g.first + blockIdx.x), rest = number / segments;
        segment = static_cast<int>(number % segments);
        tile = static_cast<int>(rest / static_cast<std::uint32_t>(heads));
        head = static_cast<int>(rest % static_cast<std::uint32_t>(heads));
    }
};
/// Where a head's operands begin: rows of its first query and key, and its bias.
struct flash_head {
    std::int64_t query, key;
    const float* bias;

    __device__ flash_head(const flash_arguments& g, int head) {
        const cpu::attention_shape& s = g.s;
        const auto batch = static_cast<std::uint32_t>(head) / static_cast<std::uint32_t>(s.heads),
                   own = static_cast<std::uint32_t>(head) % static_cast<std::uint32_t>(s.heads);
        query = batch * s.time * s.heads + own;
        key = batch * s.steps * s.kv_heads() + own / static_cast<std::uint32_t>(s.shared);
        bias = g.of.bias + batch * s.bias_strides[0] + own * s.bias_strides[1];
    }
};

/// Scales scores, adds the bias, and makes those of keys that are not seen -infinity.
template <class Products, bool ByKeys>
__device__ void finish_scores(const flash_arguments& g, typename Products::sums& x, int head, int first_row,
                              int first_column) {
    const cpu::attention_shape& s = g.s;
    const auto scale = static_cast<float>(s.scale);
    TG_UNROLL
    for (int r = 0; r < Products::rows; ++r) TG_UNROLL
    for (int c = 0; c < Products::columns; ++c) x.at(r, c) *= scale;
    constexpr int tile_queries = ByKeys ? flash_side : flash_rows_of_warp,
                  tile_keys = ByKeys ? flash_rows_of_warp : flash_side;
    const int first_query = ByKeys ? first_column : first_row, first_key = ByKeys ? first_row : first_column;
    const int queries = static_cast<int>(s.time) - first_query, keys = static_cast<int>(s.steps) - first_key;
    // Query i of the tile sees its keys up to i + diagonal.
    const int diagonal = s.causal ? flash_bounded(first_query + s.offset - first_key) : flash_side;
    if (!s.biased && queries >= tile_queries && keys >= tile_keys && diagonal >= tile_keys - 1) return;
    const float hidden = -math::detail::traits<float>::infinity;
    // Otherwise the compiler would keep all of the thread's places in registers through the loop over tiles.
    const int row = computed_here(Products::row(0)), column = computed_here(Products::column(0));
    const auto each = [&](const auto& f) {
        TG_UNROLL
        for (int r = 0; r < Products::rows; ++r) TG_UNROLL
        for (int c = 0; c < Products::columns; ++c) {
            const int further = Products::row(r) - Products::row(0), beside = Products::column(c) - Products::column(0);
            f(x.at(r, c), ByKeys ? column + beside : row + further, ByKeys ? row + further : column + beside);
        }
    };
    if (!s.biased) {
        each([&](float& score, int query, int key) {
            score = query >= queries || key >= keys || key - query > diagonal ? hidden : score;
        });
        return;
    }
    const float* const bias =
        flash_head(g, computed_here(head)).bias + first_query * s.bias_strides[2] + first_key * s.bias_strides[3];
    each([&](float& score, int query, int key) {
        if (query >= queries || key >= keys || key - query > diagonal) {
            score = hidden;
        } else {
            const float b = bias[query * s.bias_strides[2] + key * s.bias_strides[3]];
            score = b == hidden ? hidden : score + b;
        }
    });
}

/// Which of a thread's 32 weights dropout keeps: those numbered by row and column, one bit each.
template <class Products, bool ByKeys>
__device__ std::uint32_t kept_weights(const flash_arguments& g, int head, int first_row, int first_column) {
    const cpu::attention_shape& s = g.s;
    const random::address from = random::address_of(g.of.address);
    const auto rate = static_cast<float>(s.rate);
    std::uint32_t kept = 0;
    TG_ROLLED
    for (int i = 0; i < Products::rows * Products::columns; ++i) {
        const int row = first_row + Products::row(i / Products::columns),
                  column = first_column + Products::column(i % Products::columns);
        const auto index =
            static_cast<std::uint64_t>((head * s.time + (ByKeys ? column : row)) * s.steps + (ByKeys ? row : column));
        std::uint32_t w0 = 0, w1 = 0, w2 = 0, w3 = 0;
        random::detail::words(from, static_cast<std::uint32_t>(index / 4), static_cast<std::uint32_t>(index / 4 >> 32),
                              w0, w1, w2, w3);
        const std::uint32_t low = index % 2 == 0 ? w0 : w1, high = index % 2 == 0 ? w2 : w3;
        const float drawn = random::uniform01<float>(index % 4 < 2 ? low : high);
        kept |= static_cast<std::uint32_t>(drawn >= rate) << i;
    }
    return kept;
}
/// Brings what a tile of queries needs for its weights: the largest score, the inverse sum and delta.
__device__ inline void load_numbers(const flash_arguments& g, float* to, int head, int first) {
    for (int i = static_cast<int>(threadIdx.x); i < flash_side; i += flash_threads) {
        const bool exists = first + i < g.s.time;
        const std::int64_t at = head * g.s.time + first + i;
        to[i] = exists ? g.numbers[2 * at] : 0.0f;
        to[flash_side + i] = exists ? g.numbers[2 * at + 1] : 0.0f;
        to[2 * flash_side + i] = exists ? g.delta[at] : 0.0f;
    }
}
/// The factor that dropout has for a weight.
template <class Products>
__device__ float kept_factor(std::uint32_t kept, int r, int c, float factor) {
    return (kept >> (r * Products::columns + c) & 1u) != 0 ? factor : 0.0f;
}

/// The derivative by a score: from its weight, the derivative by the dropped weight and the factor of
/// dropout.
__device__ inline float flash_slope(float weight, float by_weight, float factor, float delta) {
    return weight == 0 ? 0.0f : weight * ((factor == 0 ? 0.0f : by_weight * factor) - delta);
}

/// Whether this thread's results are all finite.
template <class Products>
__device__ bool are_finite(typename Products::sums& x) {
    float zero = 0;
    TG_UNROLL
    for (int r = 0; r < Products::rows; ++r) TG_UNROLL
    for (int c = 0; c < Products::columns; ++c) zero = multiply_add(x.at(r, c), 0.0f, zero);
    return zero == 0;
}
template <class Products>
__device__ void clear(typename Products::sums& x) {
    TG_UNROLL
    for (int r = 0; r < Products::rows; ++r) TG_UNROLL
    for (int c = 0; c < Products::columns; ++c) x.at(r, c) = 0;
}
/// Calls store(r, c, result) for this thread's results, but for rows
/// whose bit of `left_out` is set.
template <class Products, class F>
__device__ void store_results(typename Products::sums& x, int rows, int columns, unsigned left_out, const F& store) {
    TG_UNROLL
    for (int r = 0; r < Products::rows; ++r) {
        if (Products::row(r) >= rows || (left_out >> r & 1u) != 0) continue;
        TG_UNROLL
        for (int c = 0; c < Products::columns; ++c)
            if (Products::result_column(c) < columns) store(r, c, x.at(r, c));
    }
}

/// delta of each query; `Lanes` neighbouring threads add a row.
template <int Lanes>
__global__ void flash_delta(flash_arguments g, std::int64_t rows, const float* y, float* delta) {
    const cpu::attention_shape& s = g.s;
    const std::int64_t row = g.first + thread_number() / Lanes, used = row < rows ? row : rows - 1;
    const std::int64_t at = query_row(s, used / s.time, used % s.time) * s.width;
    float sum = 0;
    for (std::int64_t c = threadIdx.x % Lanes; c < s.width; c += Lanes)
        sum = multiply_add(g.dy[at + c], y[at + c], sum);
    TG_UNROLL
    for (int bits = Lanes / 2; bits > 0; bits /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, bits);
    if (row < rows && threadIdx.x % Lanes == 0) delta[row] = sum;
}

} // namespace tapegraph::cuda::kernels
