#pragma once

#include <tapegraph/ops/attention/cpu.hpp>

/// The derivative of attention, by tiles whose weights are computed again from the largest score and
/// the sum that the forward pass keeps for each query.

namespace tapegraph::cpu {

template <class T>
struct attention_slopes {
    T *q, *k, *v;
};

namespace attention_detail {

/// With P the weights and dP = dY V^T: dV = P^T dY, dS = P (dP - delta), delta = rows(dY Y), dK =
/// scale dS^T Q, dQ = dS scale K. Sums over queries and over keys run in the order of blocks, whoever
/// adds them.
template <class T>
struct gradient_worker : tile_worker<T> {
    using base = tile_worker<T>;
    using base::s, base::of, base::at, base::kernels, base::queries, base::keys, base::columns, base::depth,
        base::width;
    const T *numbers, *dy, *delta;
    attention_slopes<T> to;
    bool unseen = false;

    gradient_worker(const attention_shape& shape, const attention_operands<T>& operands, const scratch<T>& memory,
                    const T* of_queries, const T* adjoint, const T* products, const attention_slopes<T>& slopes)
        : base(shape, operands, memory), numbers(of_queries), dy(adjoint), delta(products), to(slopes) {}

    void set_queries(std::int64_t b, std::int64_t h, std::int64_t block) {
        base::set_queries(b, h, block);
        dispatch<load_body<T>>(at.dy, width, this->query_rows(dy, s.width), s.heads * s.width, queries, s.width, T(1));
        base::pack(at.dy_panels, at.dy, width, s.width);
        const std::int64_t first = (b * s.heads + h) * s.time + this->first_query;
        unseen = false;
        for (std::int64_t c = 0; c < columns; ++c) {
            const bool exists = c < queries;
            at.largest[c] = exists ? numbers[2 * (first + c)] : T(0);
            at.factor[c] = exists ? numbers[2 * (first + c) + 1] : T(0);
            at.delta[c] = exists ? delta[first + c] : T(0);
            unseen = unseen || (exists && s.equal && at.factor[c] == T(0));
        }
    }
    /// Keys before it have a weight.
    std::int64_t end() const { return unseen ? s.steps : base::end(); }

    /// The weights in `scores` and dS in `slopes`.
    void make_slopes() {
        base::make_scores();
        tile_product<T>{keys, columns, s.width, at.v, width, 1, at.dy_panels, 0, at.slopes, columns, false}.run(
            kernels);
        if (s.drops) base::draw(), base::drop(at.slopes);
        cpu::detail::dispatch_fused<slopes_body<T>>(at.scores, at.slopes, keys, columns,
                                                    static_cast<const T*>(at.largest), static_cast<const T*>(at.factor),
                                                    static_cast<const T*>(at.delta));
        for (std::int64_t c = 0; unseen && c < queries; ++c)
            for (std::int64_t k = 0; at.factor[c] == T(0) && k < keys; ++k)
                at.scores[k * columns + c] = T(1) / static_cast<T>(s.steps);
        if (s.drops) base::drop(at.scores);
    }
    void add_to_keys() const {
        base::multiply({keys, width, queries, at.scores, columns, 1, at.dy, width, at.v_sums, width});
        base::multiply({keys, depth, queries, at.slopes, columns, 1, at.q, depth, at.sums, depth});
    }
    void add_to_queries() const {
        base::multiply({queries, s.depth, keys, at.slopes, 1, columns, at.k, depth,
                        to.q + (this->query_rows(of.q, s.depth) - of.q), s.heads * s.depth});
    }

    /// Takes block `i` of a group of keys for the current one.
    void use_keys(std::int64_t group_first, std::int64_t i, const scratch<T>& group) {
        this->first_key = (group_first + i) * most_keys;
        base::end_keys(s.steps);
        at.k = group.k + i * most_keys * depth;
        at.v = group.v + i * most_keys * width;
        at.sums = group.sums + i * most_keys * depth;
        at.v_sums = group.v_sums + i * most_keys * width;
    }
    /// `count` blocks of keys, for which a block of queries is copied once, and with `all` what queries get of them.
    void keys_of(std::int64_t b, std::int64_t kv_head, std::int64_t group_first, std::int64_t count, bool all) {
        const scratch<T> group = at;
        this->batch = b, this->head = kv_head * s.shared;
        for (std::int64_t j = 0; j < count; ++j) {
            use_keys(group_first, j, group);
            base::set_keys(group_first + j, s.steps);
            std::fill_n(at.sums, keys * depth, T(0));
            std::fill_n(at.v_sums, keys * width, T(0));
        }
        for (std::int64_t h = kv_head * s.shared; h < (kv_head + 1) * s.shared; ++h)
            for (std::int64_t i = 0; i < base::query_blocks(s); ++i) {
                const bool sees = !s.causal || (i + 1) * most_queries + s.offset > group_first * most_keys;
                if (!sees && !s.equal) continue;
                set_queries(b, h, i);
                for (std::int64_t j = 0; j < count && end() > (group_first + j) * most_keys; ++j) {
                    use_keys(group_first, j, group);
                    base::end_keys(end());
                    make_slopes();
                    add_to_keys();
                    if (all) add_to_queries();
                }
            }
        const std::int64_t heads = s.kv_heads();
        this->head = kv_head * s.shared;
        for (std::int64_t j = 0; j < count; ++j) {
            use_keys(group_first, j, group);
            const std::int64_t row = base::key_row();
            for (std::int64_t k = 0; k < keys; ++k) {
                const T *const dk = at.sums + k * depth, *const dv = at.v_sums + k * width;
                T *const k_to = to.k + (row + k * heads) * s.depth, *const v_to = to.v + (row + k * heads) * s.width;
                for (std::int64_t c = 0; c < s.depth; ++c) k_to[c] = dk[c] * static_cast<T>(s.scale);
                std::copy_n(dv, s.width, v_to);
            }
        }
        at = group;
    }
    void queries_of(std::int64_t b, std::int64_t h, std::int64_t block) {
        set_queries(b, h, block);
        for (std::int64_t j = 0; j * most_keys < end(); ++j) {
            base::set_keys(j, end());
            make_slopes();
            add_to_queries();
        }
    }
};

/// delta [batch, heads, time].
template <class T>
void delta_of(const attention_shape& s, const T* y, const T* dy, T* delta, bool parallel) {
    const std::int64_t blocks = divide_up(s.time, most_queries);
    parallel_for(s.batch * s.heads * blocks, parallel, [&](std::int64_t task) {
        const std::int64_t head = task / blocks, first = task % blocks * most_queries, row = s.heads * s.width;
        const std::int64_t at = ((head / s.heads * s.time + first) * s.heads + head % s.heads) * s.width;
        dispatch<row_products_body<T>>(dy + at, row, y + at, row, std::min(most_queries, s.time - first), s.width,
                                       delta + head * s.time + first);
    });
}
template <class T>
bool all_finite(const T* x, std::int64_t count) {
    bool finite = true;
    dispatch<finite_body<T>>(x, count, std::int64_t{1}, count, &finite);
    return finite;
}

} // namespace attention_detail

template <class T>
std::size_t attention_gradient_bytes(const attention_shape& s) {
    return attention_detail::scratch_bytes<T>(s, true) * static_cast<std::size_t>(thread_count()) +
           static_cast<std::size_t>(s.batch * s.heads * s.time) * sizeof(T);
}

/// Derivatives by queries, keys and values, which have their shapes, from dy, y and the numbers of
/// queries (attention, in cpu.hpp).
template <class T>
void attention_gradient(const attention_shape& s, const attention_operands<T>& of, const T* y, const T* numbers,
                        const T* dy, const attention_slopes<T>& to, void* workspace) {
    using namespace attention_detail;
    const bool parallel = cpu::detail::worth_threads(s.products());
    const std::int64_t queries = s.batch * s.heads * s.time * s.depth, rows = s.batch * s.steps * s.kv_heads();
    T* const delta = reinterpret_cast<T*>(static_cast<std::byte*>(workspace) +
                                          scratch_bytes<T>(s, true) * static_cast<std::size_t>(thread_count()));
    delta_of(s, y, dy, delta, parallel);
    bool careful = false;
    const auto each = [&](std::int64_t tasks, const auto& f) {
        for_tasks(tasks, parallel, [&](std::int64_t task, int thread) {
            gradient_worker<T> worker(s, of, scratch_of<T>(s, true, workspace, thread), numbers, dy, delta, to);
            worker.careful = careful;
            f(worker, task);
        });
    };
    // Five products for each head; or, where there are few, three for each block of queries and four
    // for each block of keys, which add in the same order.
    const std::int64_t heads = s.batch * s.kv_heads(), threads = thread_count();
    const bool apart = parallel && divide_up(heads, threads) * threads * 5 > heads * 7;
    const std::int64_t group = key_group<T>(s);
    const std::int64_t query_blocks = tile_worker<T>::query_blocks(s), key_blocks = tile_worker<T>::key_blocks(s);
    const auto run = [&] {
        std::fill_n(to.q, queries, T(0));
        if (!apart) {
            each(heads, [&](auto& worker, std::int64_t head) {
                for (std::int64_t j = 0; j < key_blocks; j += group)
                    worker.keys_of(head / s.kv_heads(), head % s.kv_heads(), j, std::min(group, key_blocks - j), true);
            });
            return;
        }
        each(s.batch * s.heads * query_blocks, [&](auto& worker, std::int64_t task) {
            const std::int64_t head = task / query_blocks;
            worker.queries_of(head / s.heads, head % s.heads, query_blocks - 1 - task % query_blocks);
        });
        // Some tasks for each thread.
        const std::int64_t part = std::clamp<std::int64_t>(heads * key_blocks / (4 * threads), 1, group);
        const std::int64_t parts = divide_up(key_blocks, part);
        each(heads * parts, [&](auto& worker, std::int64_t task) {
            const std::int64_t head = task / parts, first = task % parts * part;
            worker.keys_of(head / s.kv_heads(), head % s.kv_heads(), first, std::min(part, key_blocks - first), false);
        });
    };
    run();
    if (all_finite<T>(to.q, queries) && all_finite<T>(to.k, rows * s.depth) && all_finite<T>(to.v, rows * s.width))
        return;
    careful = true;
    run();
}

} // namespace tapegraph::cpu
