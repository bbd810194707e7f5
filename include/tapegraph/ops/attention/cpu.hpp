#pragma once

#include <tapegraph/ops/attention/cpu_tile.hpp>

/// softmax(scale Q K^T + bias) V tile by tile (Dao et al. 2022, "FlashAttention"): a block of queries
/// goes through the keys with the largest score of each query so far and the sum of exponentials
/// relative to it. Memory is linear in the lengths. Blocks follow from the shape, so that the bits do
/// not depend on threads. Several blocks of queries go through the keys side by side: copying keys and
/// values of long sequences, whose rows lie far apart, from the last cache once for each block of
/// queries took a quarter of the time.

namespace tapegraph::cpu {

/// What attention reads. `address`: random::address as ten numbers of 16 bits (attention.hpp).
template <class T>
struct attention_operands {
    const T *q, *k, *v, *bias, *address;
};

namespace attention_detail {

using cpu::detail::divide_up, cpu::detail::workspace_cutter;

/// Blocks of queries that go through the keys side by side: what is kept of them shall stay in L2.
template <class T>
std::int64_t query_group(const attention_shape& s) {
    const std::int64_t bytes = most_queries * (s.depth + s.width) * static_cast<std::int64_t>(sizeof(T));
    return std::clamp<std::int64_t>(
        std::min((std::int64_t{1} << 19) / std::max<std::int64_t>(bytes, 1), divide_up(s.time, most_queries)), 1,
        most_grouped);
}

/// The same of blocks of keys, in the derivative: keys, values and their derivatives.
template <class T>
std::int64_t key_group(const attention_shape& s) {
    const std::int64_t bytes = most_keys * 2 * (s.depth + s.width) * static_cast<std::int64_t>(sizeof(T));
    return std::clamp<std::int64_t>(
        std::min((std::int64_t{1} << 19) / std::max<std::int64_t>(bytes, 1), divide_up(s.steps, most_keys)), 1,
        most_grouped);
}

/// What one thread needs: a block of queries, one of keys, and their scores. What the forward pass keeps of
/// queries, and the derivative of keys, is there for each block of a group, one after the other.
template <class T>
struct scratch {
    T *q, *dy;               ///< rows of the queries and of derivatives by results, padded to vectors
    T *q_panels, *dy_panels; ///< the same transposed and packed
    T *k, *v;                ///< rows of keys times the scale, and of values, padded
    T *scores, *slopes, *other, *line;
    T *sums, *v_sums; ///< of results, or of derivatives by keys and values
    T *largest, *total, *factor, *delta;

    scratch(const attention_shape& s, bool gradient, workspace_cutter& cut) {
        constexpr std::int64_t lanes = tile_kernels<T>::most_lanes;
        const std::int64_t depth = panel_layout::padded(s.depth, lanes), width = panel_layout::padded(s.width, lanes);
        const std::int64_t back = gradient ? 1 : 0, tile = most_queries * most_keys;
        q = cut.take<T>(most_queries * depth);
        const std::int64_t group = gradient ? 1 : query_group<T>(s), key_blocks = gradient ? key_group<T>(s) : 1;
        q_panels = cut.take<T>(group * most_queries * s.depth);
        dy = cut.take<T>(back * most_queries * width);
        dy_panels = cut.take<T>(back * most_queries * s.width);
        k = cut.take<T>(key_blocks * most_keys * depth);
        v = cut.take<T>(key_blocks * most_keys * width);
        scores = cut.take<T>(tile);
        slopes = cut.take<T>(back * tile);
        other = cut.take<T>(s.biased || s.drops ? tile : 0);
        line = cut.take<T>(s.drops ? tile : 0);
        sums = cut.take<T>(gradient ? key_blocks * most_keys * depth : group * most_queries * width);
        v_sums = cut.take<T>(back * key_blocks * most_keys * width);
        largest = cut.take<T>(group * most_queries);
        total = cut.take<T>(group * most_queries);
        factor = cut.take<T>(most_queries);
        delta = cut.take<T>(most_queries);
    }
};

/// A block of queries of one head beside a block of keys.
template <class T>
struct tile_worker {
    const attention_shape& s;
    const attention_operands<T>& of;
    const tile_kernels<T>& kernels;
    scratch<T> at;
    std::int64_t depth, width; ///< padded to whole vectors

    std::int64_t batch = 0, head = 0, first_query = 0, queries = 0, columns = 0; ///< columns: padded queries
    std::int64_t first_key = 0, keys = 0;
    bool careful = false; ///< an infinity or NaN may be where it does not count

    tile_worker(const attention_shape& shape, const attention_operands<T>& operands, const scratch<T>& memory)
        : s(shape),
          of(operands),
          kernels(active_tile_kernels<T>()),
          at(memory),
          depth(panel_layout::padded(shape.depth, kernels.lanes)),
          width(panel_layout::padded(shape.width, kernels.lanes)) {}

    static std::int64_t query_blocks(const attention_shape& s) { return divide_up(s.time, most_queries); }
    static std::int64_t key_blocks(const attention_shape& s) { return divide_up(s.steps, most_keys); }
    /// Keys before `end` may be seen by a query of the block.
    std::int64_t end() const {
        return s.causal ? std::clamp<std::int64_t>(first_query + queries + s.offset, 0, s.steps) : s.steps;
    }
    /// Keys before `first` and from `last` on have the bias -infinity for every query of the block.
    struct key_range {
        std::int64_t first, last;
    };
    /// Looks through the bias only where that costs little beside the products: where all queries
    /// share it, as under a mask of padded steps, and where the queries are few, as in generation.
    key_range seen() const {
        key_range range{0, end()};
        const std::int64_t rows = s.bias_strides[2] == 0 ? 1 : queries;
        if (!s.biased || rows > most_scanned) return range;
        const auto hidden = [&](std::int64_t key) {
            const T* const from = of.bias + batch * s.bias_strides[0] + head * s.bias_strides[1] +
                                  first_query * s.bias_strides[2] + key * s.bias_strides[3];
            for (std::int64_t c = 0; c < rows; ++c)
                if (from[c * s.bias_strides[2]] != not_seen<T>) return false;
            return true;
        };
        while (range.last > 0 && hidden(range.last - 1)) --range.last;
        while (range.first < range.last && hidden(range.first)) ++range.first;
        return range;
    }
    const T* query_rows(const T* x, std::int64_t size) const {
        return x + ((batch * s.time + first_query) * s.heads + head) * size;
    }
    /// Where keys and values have the first of these rows.
    std::int64_t key_row() const { return (batch * s.steps + first_key) * s.kv_heads() + head / s.shared; }

    void set_queries(std::int64_t b, std::int64_t h, std::int64_t block) {
        batch = b, head = h, first_query = block * most_queries;
        queries = std::min(most_queries, s.time - first_query);
        columns = panel_layout::padded(queries, kernels.lanes);
        dispatch<load_body<T>>(at.q, depth, query_rows(of.q, s.depth), s.heads * s.depth, queries, s.depth, T(1));
        pack(at.q_panels, at.q, depth, s.depth);
    }
    void pack(T* to, const T* rows, std::int64_t row, std::int64_t size) const {
        const panel_layout layout{queries, kernels.lanes};
        for (std::int64_t p = 0; p < layout.count(); ++p)
            pack_panel(to + layout.offset(p, size), layout, p, rows, row, true, size);
    }
    /// Keys of a block that come before `last`.
    void set_keys(std::int64_t block, std::int64_t last) {
        first_key = block * most_keys;
        end_keys(last);
        const std::int64_t row = key_row(), heads = s.kv_heads();
        dispatch<load_body<T>>(at.k, depth, of.k + row * s.depth, heads * s.depth, keys, s.depth,
                               static_cast<T>(s.scale));
        dispatch<load_body<T>>(at.v, width, of.v + row * s.width, heads * s.width, keys, s.width, T(1));
    }
    void end_keys(std::int64_t last) { keys = std::min(most_keys, last - first_key); }

    /// scores = scale K Q^T + bias, -infinity where a key is not seen.
    void make_scores() const {
        tile_product<T>{keys, columns, s.depth, at.k, depth, 1, at.q_panels, 0, at.scores, columns, false}.run(kernels);
        if (s.biased) add_bias();
        if (!s.causal) return;
        for (std::int64_t k = 0; k < keys; ++k) {
            const std::int64_t unseen = std::clamp<std::int64_t>(first_key + k - s.offset - first_query, 0, queries);
            std::fill_n(at.scores + k * columns, unseen, not_seen<T>);
        }
    }
    void add_bias() const {
        const std::int64_t *const stride = s.bias_strides, row = stride[2], step = stride[3];
        const T* const from = of.bias + batch * stride[0] + head * stride[1] + first_query * row + first_key * step;
        if (row == 0) {
            dispatch<add_bias_body<T>>(at.scores, from, step, false, keys, columns);
            return;
        }
        if (step == 1) {
            cpu::detail::transpose(at.other, columns, from, row, queries, keys);
        } else {
            for (std::int64_t k = 0; k < keys; ++k)
                for (std::int64_t c = 0; c < queries; ++c) at.other[k * columns + c] = from[c * row + k * step];
        }
        for (std::int64_t k = 0; k < keys; ++k) std::fill_n(at.other + k * columns + queries, columns - queries, T(0));
        dispatch<add_bias_body<T>>(at.scores, static_cast<const T*>(at.other), columns, true, keys, columns);
    }
    /// The numbers that decide which weights are dropped, [keys, columns], those of dropout of weights
    /// [batch, heads, time, steps].
    void draw() const {
        const random::address from = random::address_of(of.address);
        for (std::int64_t c = 0; c < queries; ++c)
            dispatch<draw_body<T>>(at.line + c * keys,
                                   ((batch * s.heads + head) * s.time + first_query + c) * s.steps + first_key, keys,
                                   &from);
        cpu::detail::transpose(at.other, columns, static_cast<const T*>(at.line), keys, queries, keys);
        for (std::int64_t k = 0; k < keys; ++k) std::fill_n(at.other + k * columns + queries, columns - queries, T(0));
    }
    void drop(T* weights) const {
        dispatch<drop_body<T>>(weights, static_cast<const T*>(at.other), keys * columns, static_cast<T>(s.rate),
                               static_cast<T>(1 / (1 - s.rate)));
    }
    void multiply(const tile_product<T>& product) const {
        bool finite = true;
        if (careful) dispatch<finite_body<T>>(product.b, product.b_row, product.k, product.n, &finite);
        finite ? product.run(kernels) : product.run_where_used();
    }

    /// Takes block `i` of a group for the current one.
    void use(std::int64_t group_first, std::int64_t i, const scratch<T>& all) {
        first_query = (group_first + i) * most_queries;
        queries = std::min(most_queries, s.time - first_query);
        columns = panel_layout::padded(queries, kernels.lanes);
        at.q_panels = all.q_panels + i * most_queries * s.depth;
        at.sums = all.sums + i * most_queries * width;
        at.largest = all.largest + i * most_queries;
        at.total = all.total + i * most_queries;
    }
    /// Results of `count` blocks of queries, and the numbers [queries, 2] of which the derivative makes weights.
    void forward(std::int64_t b, std::int64_t h, std::int64_t group_first, std::int64_t count, T* y, T* numbers) {
        const scratch<T> all = at;
        key_range ranges[most_grouped];
        std::int64_t begin = key_blocks(s), end = 0, last = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            use(group_first, i, all);
            set_queries(b, h, group_first + i);
            // A key that is not seen changes no sum, so that those at both ends are not even read.
            ranges[i] = seen();
            std::fill_n(at.largest, most_queries, not_seen<T>);
            std::fill_n(at.total, most_queries, T(0));
            std::fill_n(at.sums, queries * width, T(0));
            if (ranges[i].first == ranges[i].last) continue;
            begin = std::min(begin, ranges[i].first / most_keys);
            last = std::max(last, ranges[i].last);
            end = std::max(end, divide_up(ranges[i].last, most_keys));
        }
        for (std::int64_t block = begin; block < end; ++block) {
            set_keys(block, last);
            for (std::int64_t i = 0; i < count; ++i) {
                if (block < ranges[i].first / most_keys || block * most_keys >= ranges[i].last) continue;
                use(group_first, i, all);
                end_keys(ranges[i].last);
                take_keys(block == ranges[i].first / most_keys);
            }
        }
        for (std::int64_t i = 0; i < count; ++i) {
            use(group_first, i, all);
            finish(ranges[i], y, numbers + 2 * (i * most_queries));
        }
        at = all;
    }
    /// The current keys for the current queries.
    void take_keys(bool are_first) {
        make_scores();
        cpu::detail::dispatch_fused<raise_body<T>>(at.scores, keys, columns, at.largest, at.total, at.factor);
        if (s.drops) draw(), drop(at.scores);
        if (!are_first && std::any_of(at.factor, at.factor + queries, [](T x) { return x != T(1); }))
            dispatch<scale_rows_body<T>>(at.sums, width, static_cast<const T*>(at.sums), width, queries, width,
                                         static_cast<const T*>(at.factor));
        multiply({queries, width, keys, at.scores, 1, columns, at.v, width, at.sums, width});
    }
    /// The block once more, where an infinity or NaN may be one that does not count.
    void take_all_carefully(const key_range& range) {
        careful = true;
        std::fill_n(at.largest, most_queries, not_seen<T>);
        std::fill_n(at.total, most_queries, T(0));
        std::fill_n(at.sums, queries * width, T(0));
        for (std::int64_t block = range.first / most_keys; block * most_keys < range.last; ++block) {
            set_keys(block, range.last);
            take_keys(block == range.first / most_keys);
        }
        careful = false;
    }
    void finish(const key_range& range, T* y, T* numbers) {
        bool unseen = false, finite = true;
        dispatch<finite_body<T>>(static_cast<const T*>(at.sums), width, queries, width, &finite);
        if (!finite) take_all_carefully(range);
        for (std::int64_t c = 0; c < queries; ++c) {
            at.factor[c] = at.total[c] == T(0) ? T(0) : T(1) / at.total[c];
            numbers[2 * c] = at.largest[c] == not_seen<T> ? T(0) : at.largest[c];
            numbers[2 * c + 1] = at.factor[c];
            unseen = unseen || at.total[c] == T(0);
        }
        if (unseen && s.equal) weigh_alike();
        T* const to = y + (query_rows(of.q, s.width) - of.q);
        dispatch<scale_rows_body<T>>(to, s.heads * s.width, static_cast<const T*>(at.sums), width, queries, s.width,
                                     static_cast<const T*>(at.factor));
    }
    /// Queries that see nothing: the mean of all values.
    void weigh_alike() {
        for (std::int64_t block = 0; block < key_blocks(s); ++block) {
            set_keys(block, s.steps);
            if (s.drops) draw();
            std::fill_n(at.scores, keys * columns, T(0));
            for (std::int64_t c = 0; c < queries; ++c)
                if (at.total[c] == T(0))
                    for (std::int64_t k = 0; k < keys; ++k) at.scores[k * columns + c] = T(1);
            if (s.drops) drop(at.scores);
            tile_product<T>{queries, width, keys, at.scores, 1, columns, at.v, width, at.sums, width}.run_where_used();
        }
        for (std::int64_t c = 0; c < queries; ++c)
            if (at.total[c] == T(0)) at.factor[c] = T(1) / static_cast<T>(s.steps);
    }
};

template <class T>
std::size_t scratch_bytes(const attention_shape& s, bool gradient) {
    workspace_cutter cut(nullptr);
    const scratch<T> needed(s, gradient, cut);
    return cut.used();
}
template <class T>
scratch<T> scratch_of(const attention_shape& s, bool gradient, void* workspace, int thread) {
    workspace_cutter cut(static_cast<std::byte*>(workspace) +
                         scratch_bytes<T>(s, gradient) * static_cast<std::size_t>(thread));
    return scratch<T>(s, gradient, cut);
}

} // namespace attention_detail

template <class T>
std::size_t attention_bytes(const attention_shape& s) {
    return attention_detail::scratch_bytes<T>(s, false) * static_cast<std::size_t>(thread_count());
}

/// y [batch, time, heads, width], and for each query [batch, heads, time] the largest score and one by
/// the sum of exponentials relative to it: 0 and 0 where it sees nothing.
template <class T>
void attention(const attention_shape& s, const attention_operands<T>& of, T* y, T* numbers, void* workspace) {
    using namespace attention_detail;
    const std::int64_t blocks = tile_worker<T>::query_blocks(s), heads = s.batch * s.heads;
    const bool parallel = cpu::detail::worth_threads(s.products());
    // Some tasks for each thread.
    const std::int64_t threads = parallel ? thread_count() : 1;
    const std::int64_t group =
        std::clamp<std::int64_t>(threads == 1 ? blocks : heads * blocks / (4 * threads), 1, query_group<T>(s));
    const std::int64_t groups = divide_up(blocks, group);
    for_tasks(heads * groups, parallel, [&](std::int64_t task, int thread) {
        tile_worker<T> worker(s, of, scratch_of<T>(s, false, workspace, thread));
        // The last blocks of a causal mask are the longest: they come first.
        const std::int64_t first = (groups - 1 - task % groups) * group, head = task / groups;
        worker.forward(head / s.heads, head % s.heads, first, std::min(group, blocks - first), y,
                       numbers + 2 * (head * s.time + first * most_queries));
    });
}

} // namespace tapegraph::cpu
