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
    __host__ __device__ int by_queries() const { return flash_side * (2 * depth + width + 3) + flash_tile_size(width); }
    template <class Products>
    __host__ __device__ int by_keys() const {
        return by_queries() + (Products::through_shared ? flash_tile_size(0) : 0);
    }
};

/// Results of a segment of columns of 64 queries, and the numbers of the queries.
template <class Products>
__global__ void __launch_bounds__(flash_threads, 3)
    flash_forward(flash_arguments g, int segments, float* y, float* numbers) {
    TG_DYNAMIC_SHARED(float, shared);
    const cpu::attention_shape& s = g.s;
    const flash_place place(g, s.batch * s.heads, segments);
    const flash_head head(g, place.head);
    const int time = static_cast<int>(s.time), depth = static_cast<int>(s.depth), width = static_cast<int>(s.width);
    const int begin = ((time + flash_side - 1) / flash_side - 1 - place.tile) * flash_side; // longest first
    const int end = static_cast<int>(keys_end(s, begin + flash_side)), steps = static_cast<int>(s.steps);
    const int own = begin + flash_warp() * flash_rows_of_warp, column = place.segment * flash_side;
    float *const q = shared, *const v = q + flash_side * g.depth.pitch, *const k = v + flash_side * g.part.pitch;
    const float* const own_q = q + flash_warp() * flash_rows_of_warp * g.depth.pitch;
    float* const weights = k + flash_warp() * flash_rows_of_warp * flash_weights_pitch;
    const std::int64_t keys_apart = s.kv_heads() * s.depth, values_apart = s.kv_heads() * s.width;
    const float *const keys = g.of.k + head.key * s.depth, *const values = g.of.v + head.key * s.width + column;
    const auto load_keys = [&](int first) {
        g.depth.load(k, keys + first * keys_apart, keys_apart, steps - first, depth);
    };
    const auto load_values = [&](int first) {
        g.part.load(v, values + first * values_apart, values_apart, steps - first, width - column);
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
            g.depth.load(q, g.of.q + (head.query + begin * s.heads) * s.depth, s.heads * s.depth, time - begin, depth);
            load_keys(0);
            commit_copies();
            load_values(0);
            commit_copies();
        }
        TG_ROLLED
        for (int first = 0; first < end; first += flash_side) {
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
            finish_scores<Products, false>(g, x, place.head, own, first);
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
                const std::uint32_t kept = kept_weights<Products, false>(g, place.head, own, first);
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
        const int query = own + Products::row(r);
        if (query >= time || place.segment != 0 || !Products::begins_row()) continue;
        float* const number = numbers + 2 * (place.head * s.time + query);
        number[0] = largest[r] == hidden ? 0.0f : largest[r];
        number[1] = inverse;
    }
    float* const to = y + (head.query + own * s.heads) * s.width + column;
    store_results<Products>(out, time - own, width - column, unseeing, [&](int r, int c, float result) {
        to[Products::row(r) * s.heads * s.width + Products::result_column(c)] = result;
    });
    if (unseeing == 0) return;
    TG_ROLLED
    for (int i = 0; i < Products::rows * Products::columns; ++i) {
        const int row = Products::row(i / Products::columns), at = Products::result_column(i % Products::columns);
        if ((unseeing >> i / Products::columns & 1u) == 0 || row >= time - own || at >= width - column) continue;
        float sum = 0;
        TG_ROLLED
        for (int step = 0; step < steps; ++step) {
            const float kept = attention_kept(g, place.head, own + row, step);
            if (kept != 0) sum = multiply_add(kept, values[step * values_apart + at], sum);
        }
        to[row * s.heads * s.width + at] = sum / static_cast<float>(steps);
    }
}

/// The derivative by a segment of columns of 64 queries.
template <class Products>
__global__ void __launch_bounds__(flash_threads, Products::through_shared ? 2 : 3)
    flash_by_queries(flash_arguments g, int segments, float* dq) {
    TG_DYNAMIC_SHARED(float, shared);
    const cpu::attention_shape& s = g.s;
    const flash_place place(g, s.batch * s.heads, segments);
    const flash_head head(g, place.head);
    const int time = static_cast<int>(s.time), depth = static_cast<int>(s.depth), width = static_cast<int>(s.width);
    const int begin = ((time + flash_side - 1) / flash_side - 1 - place.tile) * flash_side; // longest first
    const int end = static_cast<int>(keys_end(s, begin + flash_side)), steps = static_cast<int>(s.steps);
    const int warp_row = flash_warp() * flash_rows_of_warp, own = begin + warp_row, column = place.segment * flash_side;
    const int tile = flash_side * g.depth.pitch;
    float *const q = shared, *const k = q + tile, *const dy = k + tile, *const v = dy + flash_side * g.width.pitch;
    float* const of_queries = v + flash_tile_size(g.width.pitch);
    float* const weights = v + warp_row * flash_weights_pitch;
    const std::int64_t keys_apart = s.kv_heads() * s.depth, values_apart = s.kv_heads() * s.width;
    const auto load_keys = [&](int first) {
        g.depth.load(k, g.of.k + head.key * s.depth + first * keys_apart, keys_apart, steps - first, depth);
    };
    const auto load_values = [&](int first) {
        g.width.load(v, g.of.v + head.key * s.width + first * values_apart, values_apart, steps - first, width);
    };
    load_numbers(g, of_queries, place.head, begin);
    typename Products::sums out;
    for (bool careful = false;; careful = true) {
        const bool spares = Products::through_shared || careful;
        clear<Products>(out);
        if (end > 0) {
            g.width.load(dy, g.dy + (head.query + begin * s.heads) * s.width, s.heads * s.width, time - begin, width);
            load_values(0);
            commit_copies();
            g.depth.load(q, g.of.q + (head.query + begin * s.heads) * s.depth, s.heads * s.depth, time - begin, depth);
            load_keys(0);
            commit_copies();
        }
        TG_ROLLED
        for (int first = 0; first < end; first += flash_side) {
            const bool more = first + flash_side < end;
            wait_copies<1>();
            if constexpr (Products::rounded) {
                if (first == 0) g.width.round(dy);
                g.width.round(v);
            }
            __syncthreads();
            typename Products::sums x, by_weight;
            Products::scores(by_weight, dy + warp_row * g.width.pitch, v, g.width.pitch, g.width.padded());
            if (more && !spares) {
                __syncthreads();
                load_values(first + flash_side);
            }
            commit_copies();
            wait_copies<1>();
            if constexpr (Products::rounded) {
                if (first == 0) g.depth.round(q);
                g.depth.round(k);
            }
            __syncthreads();
            Products::scores(x, q + warp_row * g.depth.pitch, k, g.depth.pitch, g.depth.padded());
            finish_scores<Products, false>(g, x, place.head, own, first);
            std::uint32_t kept = ~0u;
            if (s.drops) kept = kept_weights<Products, false>(g, place.head, own, first);
            const float scale = s.drops ? static_cast<float>(1 / (1 - s.rate)) : 1.0f;
            TG_UNROLL
            for (int r = 0; r < Products::rows; ++r) {
                const float* const of_query = of_queries + warp_row + Products::row(r);
                const float largest = of_query[0], inverse = of_query[flash_side], delta = of_query[2 * flash_side];
                TG_UNROLL
                for (int c = 0; c < Products::columns; ++c)
                    x.at(r, c) = flash_slope(flash_exp(x.at(r, c) - largest) * inverse, by_weight.at(r, c),
                                             kept_factor<Products>(kept, r, c, scale), delta);
            }
            if (spares) keep_weights<Products>(weights, x);
            __syncwarp();
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
    float* const to = dq + (head.query + own * s.heads) * s.depth + column;
    store_results<Products>(out, time - own, depth - column, 0, [&](int r, int c, float sum) {
        to[Products::row(r) * s.heads * s.depth + Products::result_column(c)] = sum * static_cast<float>(s.scale);
    });
}

/// The derivatives by a segment of columns of 64 keys, and of their values.
template <class Products>
__global__ void __launch_bounds__(flash_threads, 2)
    flash_by_keys(flash_arguments g, int segments, float* dk, float* dv) {
    TG_DYNAMIC_SHARED(float, shared);
    const cpu::attention_shape& s = g.s;
    const flash_place place(g, s.batch * s.kv_heads(), segments);
    const int shared_by = static_cast<int>(s.shared), first_head = place.head * shared_by;
    const flash_head of_keys(g, first_head);
    const int time = static_cast<int>(s.time), depth = static_cast<int>(s.depth), width = static_cast<int>(s.width);
    const int begin = place.tile * flash_side, steps = static_cast<int>(s.steps);
    const int warp_row = flash_warp() * flash_rows_of_warp, own = begin + warp_row, column = place.segment * flash_side;
    const int tile = flash_side * g.depth.pitch;
    float *const k = shared, *const q = k + tile, *const dy = q + tile, *const v = dy + flash_side * g.width.pitch;
    float* const of_queries = v + flash_tile_size(g.width.pitch);
    float* const spare = Products::through_shared ? of_queries + 3 * flash_side : v;
    float* const weights = spare + warp_row * flash_weights_pitch;

    // Queries before the first that sees a key here have weights only where they see nothing.
    const int tiles = (time + flash_side - 1) / flash_side;
    const bool all = !s.causal || begin <= s.offset || (s.equal && (s.biased || s.offset < 0));
    const std::int64_t first_tile = all ? 0 : (begin - s.offset) / flash_side;
    const int first_query = first_tile < tiles ? static_cast<int>(first_tile) * flash_side : time;
    const auto load_queries = [&](int head, int first) {
        g.depth.load(q, g.of.q + (of_keys.query + head + first * s.heads) * s.depth, s.heads * s.depth, time - first,
                     depth);
    };
    const auto load_slopes = [&](int head, int first) {
        g.width.load(dy, g.dy + (of_keys.query + head + first * s.heads) * s.width, s.heads * s.width, time - first,
                     width);
    };
    const std::int64_t row = of_keys.key + begin * s.kv_heads();
    const auto load_values = [&] {
        g.width.load(v, g.of.v + row * s.width, s.kv_heads() * s.width, steps - begin, width);
    };
    const float even = s.equal ? 1 / static_cast<float>(s.steps) : 0.0f; // weights of queries that see nothing
    typename Products::sums of_k, of_v;
    for (bool careful = false;; careful = true) {
        const bool spares = Products::through_shared || careful, reloads = !Products::through_shared && careful;
        clear<Products>(of_k);
        clear<Products>(of_v);
        if (first_query < time) {
            g.depth.load(k, g.of.k + row * s.depth, s.kv_heads() * s.depth, steps - begin, depth);
            load_queries(0, first_query);
            commit_copies();
            load_values();
            load_slopes(0, first_query);
            commit_copies();
        }
        int head = first_query < time ? 0 : shared_by, first = first_query; // head: of those that share the keys
        TG_ROLLED
        for (bool begins = true; head < shared_by; begins = false) {
            load_numbers(g, of_queries, first_head + head, first);
            wait_copies<1>();
            if constexpr (Products::rounded) {
                if (begins) g.depth.round(k);
                g.depth.round(q);
            }
            __syncthreads();
            typename Products::sums x, by_weight;
            Products::scores(x, k + warp_row * g.depth.pitch, q, g.depth.pitch, g.depth.padded());
            finish_scores<Products, true>(g, x, first_head + head, own, first);
            wait_copies<0>();
            if constexpr (Products::rounded) {
                if (begins || reloads) g.width.round(v);
                g.width.round(dy);
            }
            __syncthreads();
            Products::scores(by_weight, v + warp_row * g.width.pitch, dy, g.width.pitch, g.width.padded());
            std::uint32_t kept = ~0u;
            if (s.drops) kept = kept_weights<Products, true>(g, first_head + head, own, first);
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
                if (reloads) __syncthreads(); // other warps read values here
                if (spares) keep_weights<Products>(weights, slopes);
                __syncwarp();
                if (careful)
                    add_used_results<Products>(to, weights, by + column, rows.pitch, rows.padded() - column);
                else
                    Products::add_results(to, slopes, weights, by + column, rows.pitch, rows.padded() - column);
                __syncthreads();
            };
            add(of_k, by_weight, q, g.depth);
            first += flash_side;
            if (first >= time) first = first_query, ++head;
            const bool more = head < shared_by;
            if (more) load_queries(head, first);
            commit_copies();
            add(of_v, x, dy, g.width);
            if (more && reloads) load_values();
            if (more) load_slopes(head, first);
            commit_copies();
        }
        if (__syncthreads_and(careful || (are_finite<Products>(of_k) && are_finite<Products>(of_v)))) break;
    }
    float* const k_to = dk + (row + warp_row * s.kv_heads()) * s.depth + column;
    float* const v_to = dv + (row + warp_row * s.kv_heads()) * s.width + column;
    store_results<Products>(of_k, steps - own, depth - column, 0, [&](int r, int c, float sum) {
        k_to[Products::row(r) * s.kv_heads() * s.depth + Products::result_column(c)] =
            sum * static_cast<float>(s.scale);
    });
    store_results<Products>(of_v, steps - own, width - column, 0, [&](int r, int c, float sum) {
        v_to[Products::row(r) * s.kv_heads() * s.width + Products::result_column(c)] = sum;
    });
}

} // namespace tapegraph::cuda::kernels
