#pragma once

#include <tapegraph/cuda/kernels/flash_scores.cuh>

/// Attention and its derivative by tiles of 64 queries and 64 keys (Dao et al. 2022, "FlashAttention"),
/// on tensor cores in TF32 or by multiply-adds of floats (flash_products.cuh). Scores are computed again
/// for each derivative, which a block adds for its own queries or keys alone, so every sum has one
/// order.
///
/// A tile is fetched while the other operand's products run. `spare` is where weights lie that go
/// through shared memory: a tile that has been used and is fetched again.
///
/// A key that is not seen does not count even if it is infinite or NaN, but zero times infinity is NaN
/// in a product. A block whose results are not finite computes them once more, `careful`, with products
/// that leave out weights of zero.

namespace tapegraph::cuda::kernels {

/// The size of a tile in which weights may lie.
__host__ __device__ constexpr int flash_tile_size(int pitch) {
    return flash_side * (pitch < flash_weights_pitch ? flash_weights_pitch : pitch);
}
struct flash_shared_floats {
    int depth, width, part; ///< pitches
    __host__ __device__ int forward() const { return flash_side * (depth + part) + flash_tile_size(depth); }
    __host__ __device__ int by_queries() const {
        return flash_side * (2 * depth + width) + flash_tile_size(width);
    }
    template <class Products>
    __host__ __device__ int by_keys() const {
        return flash_side * (2 * depth + width) + flash_tile_size(width) +
               (Products::through_shared ? flash_tile_size(0) : 0) + 3 * flash_side;
    }
};

/// Results of a segment of columns of 64 queries, and the numbers of the queries.
template <class Products>
__global__ void __launch_bounds__(flash_threads, 3) flash_forward(flash_arguments g, int segments, float* y,
                                                                  float* numbers) {
    TG_DYNAMIC_SHARED(float, shared);
    const cpu::attention_shape& s = g.s;
    const flash_place place(g.first + blockIdx.x, s.batch * s.heads, segments);
    const std::int64_t begin = ((s.time + flash_side - 1) / flash_side - 1 - place.tile) * flash_side; // longest first
    const std::int64_t head = place.head, end = keys_end(s, begin + flash_side);
    const std::int64_t own = begin + flash_warp() * flash_rows_of_warp, column = place.segment * flash_side;
    float *const q = shared, *const v = q + flash_side * g.depth.pitch, *const k = v + flash_side * g.part.pitch;
    const float* const own_q = q + flash_warp() * flash_rows_of_warp * g.depth.pitch;
    float* const weights = k + flash_warp() * flash_rows_of_warp * flash_weights_pitch;
    const auto load_keys = [&](std::int64_t first) {
        g.depth.load(k, g.of.k + key_row(s, head, first) * s.depth, s.kv_heads() * s.depth, s.steps - first, s.depth);
    };
    const auto load_values = [&](std::int64_t first) {
        g.part.load(v, g.of.v + key_row(s, head, first) * s.width + column, s.kv_heads() * s.width, s.steps - first,
                    s.width - column);
    };
    const float hidden = -math::detail::traits<float>::infinity;
    typename Products::sums out;
    float largest[Products::rows], total[Products::rows];
    for (bool careful = false;; careful = true) {
        const bool spares = Products::through_shared || careful;
        clear<Products>(out);
        TG_UNROLL
        for (int r = 0; r < Products::rows; ++r) largest[r] = hidden, total[r] = 0;
        if (end > 0) {
            g.depth.load(q, query_rows(g, g.of.q, g.depth, head, begin), s.heads * s.depth, s.time - begin, s.depth);
            load_keys(0);
            commit_copies();
            load_values(0);
            commit_copies();
        }
        TG_ROLLED
        for (std::int64_t first = 0; first < end; first += flash_side) {
            const bool more = first + flash_side < end;
            wait_copies<1>();
            if constexpr (Products::rounded) {
                if (first == 0) g.depth.round(q);
                g.depth.round(k);
            }
            __syncthreads();
            typename Products::sums x;
            Products::scores(x, own_q, k, g.depth.pitch, g.depth.padded());
            __syncthreads();
            if (more && !spares) load_keys(first + flash_side);
            commit_copies(); // empty groups too, so that counting groups counts tiles
            finish_scores<Products, false>(g, x, head, own, first);
            TG_UNROLL
            for (int r = 0; r < Products::rows; ++r) {
                float best = largest[r], sum = 0;
                TG_UNROLL
                for (int c = 0; c < Products::columns; ++c) best = fmaxf(best, x.at(r, c));
                best = Products::over_row(best, [](float a, float b) { return fmaxf(a, b); });
                const float shift = best == hidden ? 0.0f : best, factor = flash_exp(largest[r] - shift);
                largest[r] = best;
                TG_UNROLL
                for (int c = 0; c < Products::columns; ++c) {
                    x.at(r, c) = flash_exp(x.at(r, c) - shift);
                    sum += x.at(r, c);
                }
                sum = Products::over_row(sum, [](float a, float b) { return a + b; });
                total[r] = multiply_add(total[r], factor, sum);
                TG_UNROLL
                for (int c = 0; c < Products::columns; ++c) out.at(r, c) *= factor;
            }
            if (s.drops) {
                const std::uint32_t kept = kept_weights<Products, false>(g, head, own, first);
                const auto scale = static_cast<float>(1 / (1 - s.rate));
                TG_UNROLL
                for (int r = 0; r < Products::rows; ++r) TG_UNROLL
                for (int c = 0; c < Products::columns; ++c) {
                    const float factor = kept_factor<Products>(kept, r, c, scale);
                    x.at(r, c) = factor == 0 ? 0.0f : x.at(r, c) * factor;
                }
            }
            if (spares) keep_weights<Products>(weights, x);
            wait_copies<1>();
            if constexpr (Products::rounded) g.part.round(v);
            __syncthreads();
            if (careful)
                add_used_results<Products>(out, weights, v, g.part.pitch, g.part.padded());
            else
                Products::add_results(out, x, weights, v, g.part.pitch, g.part.padded());
            __syncthreads();
            if (more && spares) load_keys(first + flash_side);
            commit_copies();
            if (more) load_values(first + flash_side);
            commit_copies();
        }
        if (__syncthreads_and(careful || are_finite<Products>(out))) break;
    }
    unsigned unseeing = 0; // rows that weigh all values alike
    TG_UNROLL
    for (int r = 0; r < Products::rows; ++r) {
        const float inverse = total[r] == 0 ? 0.0f : 1 / total[r];
        if (s.equal && total[r] == 0) unseeing |= 1u << r;
        TG_UNROLL
        for (int c = 0; c < Products::columns; ++c) out.at(r, c) *= inverse;
        const std::int64_t query = own + Products::row(r), i = 2 * (head * s.time + query);
        if (query >= s.time || place.segment != 0 || !Products::begins_row()) continue;
        numbers[i] = largest[r] == hidden ? 0.0f : largest[r];
        numbers[i + 1] = inverse;
    }
    float* const to = y + query_row(s, head, own) * s.width + column;
    store_results<Products>(out, s.time - own, s.width - column, unseeing, [&](int r, int c, float result) {
        to[Products::row(r) * s.heads * s.width + Products::result_column(c)] = result;
    });
    if (unseeing == 0) return;
    TG_ROLLED
    for (int i = 0; i < Products::rows * Products::columns; ++i) {
        const int row = Products::row(i / Products::columns), at = Products::result_column(i % Products::columns);
        if ((unseeing >> i / Products::columns & 1u) == 0 || row >= s.time - own || at >= s.width - column) continue;
        float sum = 0;
        TG_ROLLED
        for (std::int64_t step = 0; step < s.steps; ++step) {
            const float kept = attention_kept(g, head, own + row, step);
            if (kept != 0) sum = multiply_add(kept, g.of.v[key_row(s, head, step) * s.width + column + at], sum);
        }
        to[row * s.heads * s.width + at] = sum / static_cast<float>(s.steps);
    }
}

/// The derivative by a segment of columns of 64 queries.
template <class Products>
__global__ void __launch_bounds__(flash_threads, 3) flash_by_queries(flash_arguments g, int segments, float* dq) {
    TG_DYNAMIC_SHARED(float, shared);
    const cpu::attention_shape& s = g.s;
    const flash_place place(g.first + blockIdx.x, s.batch * s.heads, segments);
    const std::int64_t begin = ((s.time + flash_side - 1) / flash_side - 1 - place.tile) * flash_side;
    const std::int64_t head = place.head, end = keys_end(s, begin + flash_side);
    const int warp_row = flash_warp() * flash_rows_of_warp, column = place.segment * flash_side;
    const std::int64_t own = begin + warp_row;
    const int tile = flash_side * g.depth.pitch;
    float *const q = shared, *const k = q + tile, *const dy = k + tile, *const v = dy + flash_side * g.width.pitch;
    float* const weights = v + warp_row * flash_weights_pitch;
    const auto load_keys = [&](std::int64_t first) {
        g.depth.load(k, g.of.k + key_row(s, head, first) * s.depth, s.kv_heads() * s.depth, s.steps - first, s.depth);
    };
    const auto load_values = [&](std::int64_t first) {
        g.width.load(v, g.of.v + key_row(s, head, first) * s.width, s.kv_heads() * s.width, s.steps - first, s.width);
    };
    float largest[Products::rows], inverse[Products::rows], delta[Products::rows];
    TG_UNROLL
    for (int r = 0; r < Products::rows; ++r) {
        const std::int64_t query = own + Products::row(r), i = head * s.time + query;
        const bool exists = query < s.time;
        largest[r] = exists ? g.numbers[2 * i] : 0.0f;
        inverse[r] = exists ? g.numbers[2 * i + 1] : 0.0f;
        delta[r] = exists ? g.delta[i] : 0.0f;
    }
    typename Products::sums out;
    for (bool careful = false;; careful = true) {
        const bool spares = Products::through_shared || careful;
        clear<Products>(out);
        if (end > 0) {
            g.width.load(dy, query_rows(g, g.dy, g.width, head, begin), s.heads * s.width, s.time - begin, s.width);
            load_values(0);
            commit_copies();
            g.depth.load(q, query_rows(g, g.of.q, g.depth, head, begin), s.heads * s.depth, s.time - begin, s.depth);
            load_keys(0);
            commit_copies();
        }
        TG_ROLLED
        for (std::int64_t first = 0; first < end; first += flash_side) {
            const bool more = first + flash_side < end;
            wait_copies<1>();
            if constexpr (Products::rounded) {
                if (first == 0) g.width.round(dy);
                g.width.round(v);
            }
            __syncthreads();
            typename Products::sums x, by_weight;
            Products::scores(by_weight, dy + warp_row * g.width.pitch, v, g.width.pitch, g.width.padded());
            __syncthreads();
            if (more && !spares) load_values(first + flash_side);
            commit_copies();
            wait_copies<1>();
            if constexpr (Products::rounded) {
                if (first == 0) g.depth.round(q);
                g.depth.round(k);
            }
            __syncthreads();
            Products::scores(x, q + warp_row * g.depth.pitch, k, g.depth.pitch, g.depth.padded());
            finish_scores<Products, false>(g, x, head, own, first);
            std::uint32_t kept = ~0u;
            if (s.drops) kept = kept_weights<Products, false>(g, head, own, first);
            const float scale = s.drops ? static_cast<float>(1 / (1 - s.rate)) : 1.0f;
            TG_UNROLL
            for (int r = 0; r < Products::rows; ++r) TG_UNROLL
            for (int c = 0; c < Products::columns; ++c)
                x.at(r, c) = flash_slope(flash_exp(x.at(r, c) - largest[r]) * inverse[r], by_weight.at(r, c),
                                         kept_factor<Products>(kept, r, c, scale), delta[r]);
            if (spares) {
                keep_weights<Products>(weights, x);
                __syncwarp();
            }
            if (careful)
                add_used_results<Products>(out, weights, k + column, g.depth.pitch, g.depth.padded() - column);
            else
                Products::add_results(out, x, weights, k + column, g.depth.pitch, g.depth.padded() - column);
            __syncthreads();
            if (more && spares) load_values(first + flash_side);
            commit_copies();
            if (more) load_keys(first + flash_side);
            commit_copies();
        }
        if (__syncthreads_and(careful || are_finite<Products>(out))) break;
    }
    float* const to = dq + query_row(s, head, own) * s.depth + column;
    store_results<Products>(out, s.time - own, s.depth - column, 0, [&](int r, int c, float sum) {
        to[Products::row(r) * s.heads * s.depth + Products::result_column(c)] = sum * static_cast<float>(s.scale);
    });
}

/// The derivatives by a segment of columns of 64 keys, and of their values.
template <class Products>
__global__ void __launch_bounds__(flash_threads, 2) flash_by_keys(flash_arguments g, int segments, float* dk,
                                                                  float* dv) {
    TG_DYNAMIC_SHARED(float, shared);
    const cpu::attention_shape& s = g.s;
    const flash_place place(g.first + blockIdx.x, s.batch * s.kv_heads(), segments);
    const std::int64_t begin = place.tile * flash_side;
    const std::int64_t first_head = place.head / s.kv_heads() * s.heads + place.head % s.kv_heads() * s.shared;
    const int warp_row = flash_warp() * flash_rows_of_warp, column = place.segment * flash_side;
    const std::int64_t own = begin + warp_row;
    const int tile = flash_side * g.depth.pitch;
    float *const k = shared, *const q = k + tile, *const dy = q + tile, *const v = dy + flash_side * g.width.pitch;
    float* const after = v + flash_tile_size(g.width.pitch);
    float* const spare = Products::through_shared ? after : v;
    float* const of_queries = Products::through_shared ? after + flash_tile_size(0) : after;
    float* const weights = spare + warp_row * flash_weights_pitch;

    // Queries before the first that sees a key here have weights only where they see nothing.
    const std::int64_t tiles = (s.time + flash_side - 1) / flash_side;
    const bool all = !s.causal || begin <= s.offset || (s.equal && (s.biased || s.offset < 0));
    const std::int64_t first_tile = all ? 0 : (begin - s.offset) / flash_side, each = tiles - first_tile;
    const std::int64_t items = each > 0 ? each * s.shared : 0;
    const auto load_queries = [&](std::int64_t item) {
        const std::int64_t head = first_head + item / each, first = (first_tile + item % each) * flash_side;
        g.depth.load(q, query_rows(g, g.of.q, g.depth, head, first), s.heads * s.depth, s.time - first, s.depth);
    };
    const auto load_slopes = [&](std::int64_t item) {
        const std::int64_t head = first_head + item / each, first = (first_tile + item % each) * flash_side;
        g.width.load(dy, query_rows(g, g.dy, g.width, head, first), s.heads * s.width, s.time - first, s.width);
    };
    const auto load_values = [&] {
        g.width.load(v, g.of.v + key_row(s, first_head, begin) * s.width, s.kv_heads() * s.width, s.steps - begin,
                     s.width);
    };
    const float even = s.equal ? 1 / static_cast<float>(s.steps) : 0.0f; // weights of queries that see nothing
    typename Products::sums of_k, of_v;
    for (bool careful = false;; careful = true) {
        const bool spares = Products::through_shared || careful, reloads = !Products::through_shared && careful;
        clear<Products>(of_k);
        clear<Products>(of_v);
        if (items > 0) {
            g.depth.load(k, g.of.k + key_row(s, first_head, begin) * s.depth, s.kv_heads() * s.depth, s.steps - begin,
                         s.depth);
            load_queries(0);
            commit_copies();
            load_values();
            load_slopes(0);
            commit_copies();
        }
        TG_ROLLED
        for (std::int64_t item = 0; item < items; ++item) {
            const std::int64_t head = first_head + item / each, first = (first_tile + item % each) * flash_side;
            for (int i = static_cast<int>(threadIdx.x); i < flash_side; i += flash_threads) {
                const bool exists = first + i < s.time;
                const std::int64_t at = head * s.time + first + i;
                of_queries[i] = exists ? g.numbers[2 * at] : 0.0f;
                of_queries[flash_side + i] = exists ? g.numbers[2 * at + 1] : 0.0f;
                of_queries[2 * flash_side + i] = exists ? g.delta[at] : 0.0f;
            }
            wait_copies<1>();
            if constexpr (Products::rounded) {
                if (item == 0) g.depth.round(k);
                g.depth.round(q);
            }
            __syncthreads();
            typename Products::sums x, by_weight;
            Products::scores(x, k + warp_row * g.depth.pitch, q, g.depth.pitch, g.depth.padded());
            finish_scores<Products, true>(g, x, head, own, first);
            wait_copies<0>();
            if constexpr (Products::rounded) {
                if (item == 0 || reloads) g.width.round(v);
                g.width.round(dy);
            }
            __syncthreads();
            Products::scores(by_weight, v + warp_row * g.width.pitch, dy, g.width.pitch, g.width.padded());
            std::uint32_t kept = ~0u;
            if (s.drops) kept = kept_weights<Products, true>(g, head, own, first);
            const float scale = s.drops ? static_cast<float>(1 / (1 - s.rate)) : 1.0f;
            TG_UNROLL
            for (int c = 0; c < Products::columns; ++c) {
                const float* const of_query = of_queries + Products::column(c);
                const float largest = of_query[0], inverse = of_query[flash_side], delta = of_query[2 * flash_side];
                TG_UNROLL
                for (int r = 0; r < Products::rows; ++r) {
                    const float factor = kept_factor<Products>(kept, r, c, scale);
                    const float weight = flash_exp(x.at(r, c) - largest) * inverse;
                    by_weight.at(r, c) = flash_slope(weight, by_weight.at(r, c), factor, delta);
                    x.at(r, c) = factor == 0 ? 0.0f : weight * factor;
                    if (inverse == 0) x.at(r, c) = factor * even;
                }
            }
            const auto add = [&](typename Products::sums& to, typename Products::sums& slopes, const float* by,
                                 const flash_rows& rows) {
                if (spares) {
                    __syncthreads();
                    keep_weights<Products>(weights, slopes);
                    __syncthreads();
                }
                if (careful)
                    add_used_results<Products>(to, weights, by + column, rows.pitch, rows.padded() - column);
                else
                    Products::add_results(to, slopes, weights, by + column, rows.pitch, rows.padded() - column);
                __syncthreads();
            };
            add(of_k, by_weight, q, g.depth);
            if (item + 1 < items) load_queries(item + 1);
            commit_copies();
            add(of_v, x, dy, g.width);
            if (item + 1 < items) {
                if (reloads) load_values();
                load_slopes(item + 1);
            }
            commit_copies();
        }
        if (__syncthreads_and(careful || (are_finite<Products>(of_k) && are_finite<Products>(of_v)))) break;
    }
    const std::int64_t row = key_row(s, first_head, own), apart = s.kv_heads();
    store_results<Products>(of_k, s.steps - own, s.depth - column, 0, [&](int r, int c, float sum) {
        dk[(row + Products::row(r) * apart) * s.depth + column + Products::result_column(c)] =
            sum * static_cast<float>(s.scale);
    });
    store_results<Products>(of_v, s.steps - own, s.width - column, 0, [&](int r, int c, float sum) {
        dv[(row + Products::row(r) * apart) * s.width + column + Products::result_column(c)] = sum;
    });
}

} // namespace tapegraph::cuda::kernels
