#pragma once

#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/cpu/reduce_plan.hpp>
#include <tapegraph/ops/cumulative/cpu_product_lanes.hpp>
#include <tapegraph/ops/cumulative/product_line.hpp>

/// The gradient of prod and cumulative_product on the CPU: lines are cut into blocks, one per lane.

namespace tapegraph::cpu {

template <class T>
struct product_gradient {
    using wide = tapegraph::detail::wide_number;
    using tile = product_detail::tile;
    static constexpr int lanes = product_detail::lanes;
    static constexpr std::int64_t rows = product_detail::rows;
    static_assert(rows == tapegraph::detail::product_block);

    reduce_detail::groups outer, along; ///< lines, and their elements
    bool total, reverse, exclusive;

    std::int64_t blocks() const { return (along.size + rows - 1) / rows; }
    /// For each block, the product of its elements and what flows back into it from the elements after.
    std::size_t workspace_bytes() const {
        return blocks() > 1 ? static_cast<std::size_t>(2 * outer.size * blocks()) * sizeof(wide) : 0;
    }
    void run(const T* dy, const T* x, void* workspace, T* result) const {
        if (total && along.count <= 1 && outer.size * along.size <= few_elements && run_few(dy, x, result)) return;
        const std::int64_t count = outer.size * blocks(), tasks = (count + in_task - 1) / in_task;
        const bool parallel = outer.size * along.size >= 16384;
        auto* const before = static_cast<wide*>(workspace);
        wide* const after = before + count;
        if (blocks() > 1) {
            parallel_for(tasks, parallel, [&](std::int64_t task) {
                tile t;
                for (std::int64_t l = task * in_task, end = std::min(count, l + in_task); l < end; l += lanes) {
                    const places at(*this, l);
                    load(t, at, dy, x);
                    dispatch<product_detail::block_products>(&t);
                    for (int c = 0; c < at.used; ++c) before[l + c] = t.before.get(c), after[l + c] = t.after.get(c);
                }
            });
            const std::int64_t in_part = std::max<std::int64_t>(1, 1024 / blocks());
            parallel_for((outer.size + in_part - 1) / in_part, parallel, [&](std::int64_t part) {
                for (std::int64_t u = part * in_part, end = std::min(outer.size, u + in_part); u < end; ++u)
                    join(u, dy, before, after);
            });
        }
        parallel_for(tasks, parallel, [&](std::int64_t task) {
            tile t;
            for (std::int64_t l = task * in_task, end = std::min(count, l + in_task); l < end; l += lanes) {
                const places at(*this, l);
                load(t, at, dy, x);
                for (int c = 0; c < lanes; ++c) {
                    t.before.set(c, 1, 0), t.after.set(c, 0, 0);
                    if (c >= at.used) continue;
                    if (blocks() > 1) {
                        t.before.set(c, before[l + c].part, before[l + c].exponent);
                        t.after.set(c, after[l + c].part, after[l + c].exponent);
                    } else if (total) {
                        const wide first = normalized(wide(static_cast<double>(dy[l + c])));
                        t.after.set(c, first.part, first.exponent);
                    }
                }
                dispatch<product_detail::block_gradients>(&t);
                store(t, at, result);
            }
        });
    }

private:
    // So few elements take less time one after the other than filling the lanes does.
    static constexpr std::int64_t few_elements = rows;
    static constexpr int safe_exponent = 400;

    /// The derivatives of a few totals without exponents beside the numbers: the bits are the same where no product of
    /// the elements' sizes can leave the range of double. Returns false otherwise.
    bool run_few(const T* dy, const T* x, T* result) const {
        const std::int64_t n = along.size, step = along.count == 0 ? 0 : along.stride[0];
        double left[rows];
        for (std::int64_t line = 0; line < outer.size; ++line) {
            const std::int64_t origin = outer.offset(line);
            const double first = static_cast<double>(dy[line]);
            double high = 1, low = 1, so_far = 1;
            const auto look = [&](double value) {
                const double size = tile::size_of(value);
                high = size <= high ? high : size; // NaN too
                low = size < low && size != 0 ? size : low;
            };
            look(first);
            for (std::int64_t j = 0; j < n; ++j) {
                const double factor = static_cast<double>(x[origin + element(j) * step]);
                look(factor);
                left[j] = so_far;
                so_far *= factor;
            }
            const std::int64_t largest = std::max(tile::exponent_of(high) + 1, 1 - tile::exponent_of(low));
            if (!(high <= tile::most) || (n + 1) * largest > safe_exponent) return false;
            double right = first;
            for (std::int64_t j = n; j-- > 0;) {
                const std::int64_t place = origin + element(j) * step;
                const double factor = static_cast<double>(x[place]);
                result[place] = static_cast<T>(left[j] * right);
                right *= factor;
            }
        }
        return true;
    }
    static wide normalized(const wide& x) { return wide::of(x.part, x.exponent); }

    static constexpr std::int64_t in_task = 8 * lanes;

    /// Lanes that are neighbours in memory follow each other: blocks of one line, or, where lines are columns, lines.
    bool by_lines() const { return along.count == 0 || along.stride[along.count - 1] == 1; }
    std::int64_t lane_of(std::int64_t line, std::int64_t block) const {
        return by_lines() ? line * blocks() + block : block * outer.size + line;
    }

    /// Where the elements of 16 lanes stand.
    struct places {
        std::int64_t first[lanes], block[lanes], origin[lanes], step = 0;
        int length[lanes], used, count = 0;
        bool linear, columns; ///< columns: lane c is c elements after the first one

        places(const product_gradient& g, std::int64_t lane) : linear(g.along.count <= 1) {
            const std::int64_t n = g.along.size, lines = g.outer.size, all = lines * g.blocks();
            used = static_cast<int>(std::min<std::int64_t>(lanes, all - lane));
            columns = linear && used == lanes;
            step = g.along.count == 0 ? 0 : g.reverse ? -g.along.stride[0] : g.along.stride[0];
            // Divisions are slow, so the next lane's line and block are counted.
            const bool by_lines = g.by_lines();
            std::int64_t line = by_lines ? lane / g.blocks() : lane % lines;
            std::int64_t number = by_lines ? lane % g.blocks() : lane / lines;
            for (int c = 0; c < used; ++c) {
                block[c] = number;
                origin[c] = g.outer.offset(line);
                first[c] = origin[c] + g.along.offset(g.element(number * rows));
                const bool on = by_lines ? ++number == g.blocks() : ++line == lines;
                if (on && by_lines) number = 0, ++line;
                if (on && !by_lines) line = 0, ++number;
                length[c] = static_cast<int>(std::min(rows, n - block[c] * rows));
                count = std::max(count, length[c]);
                columns = columns && first[c] == first[0] + c && length[c] == length[0];
            }
        }
    };
    std::int64_t element(std::int64_t j) const { return reverse ? along.size - 1 - j : j; }

    /// f(place in memory, row, lane) for all elements.
    template <class F>
    void for_each(const places& at, const F& f) const {
        for (int c = 0; c < at.used; ++c)
            if (at.linear)
                for (int j = 0; j < at.length[c]; ++j) f(at.first[c] + j * at.step, j, c);
            else
                for (int j = 0; j < at.length[c]; ++j)
                    f(at.origin[c] + along.offset(element(at.block[c] * rows + j)), j, c);
    }
    void read(const T* from, const places& at, double (&to)[rows][lanes], double otherwise) const {
        if (at.columns) {
            for (int j = 0; j < at.count; ++j) {
                const T* const row = from + at.first[0] + j * at.step;
                for (int c = 0; c < lanes; ++c) to[j][c] = static_cast<double>(row[c]);
            }
            return;
        }
        for (int c = 0; c < lanes; ++c)
            for (int j = c < at.used ? at.length[c] : 0; j < at.count; ++j) to[j][c] = otherwise;
        for_each(at, [&](std::int64_t place, int j, int c) { to[j][c] = static_cast<double>(from[place]); });
    }
    void load(tile& t, const places& at, const T* dy, const T* x) const {
        t.count = at.count;
        t.running = !total;
        t.exclusive = exclusive;
        read(x, at, t.x, 1);
        if (!total) read(dy, at, t.dy, -0.0);
    }
    void store(const tile& t, const places& at, T* result) const {
        if (!at.columns)
            return for_each(at,
                            [&](std::int64_t place, int j, int c) { result[place] = static_cast<T>(t.result[j][c]); });
        for (int j = 0; j < at.count; ++j) {
            T* const row = result + at.first[0] + j * at.step;
            for (int c = 0; c < lanes; ++c) row[c] = static_cast<T>(t.result[j][c]);
        }
    }
    /// For each block of a line, the product before it and what flows back into it from the elements after.
    void join(std::int64_t line, const T* dy, wide* before, wide* after) const {
        wide flowing = total ? wide(static_cast<double>(dy[line])) : wide(), so_far(1);
        for (std::int64_t b = blocks(); b-- > 0;) {
            const std::int64_t l = lane_of(line, b);
            const wide own = after[l];
            after[l] = normalized(flowing);
            flowing = tapegraph::detail::before_block(flowing, before[l], own, total);
        }
        for (std::int64_t b = 0; b < blocks(); ++b) {
            wide& product = before[lane_of(line, b)];
            const wide next = so_far * product;
            product = normalized(so_far);
            so_far = next;
        }
    }
};

} // namespace tapegraph::cpu
