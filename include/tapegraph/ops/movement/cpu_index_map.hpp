#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/ops/movement/cpu.hpp>
#include <tapegraph/ops/movement/index_map.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// Tensors whose axes each follow an index_map (padding by reflection, tiling, repeating, rolling),
/// and the adjoint, which sums over the copies of each element. Both make one pass over the memory.

namespace tapegraph::cpu {

namespace index_map_detail {

/// The axes of one call: those before the last mapped one, that one, and one contiguous run of
/// elements after it.
struct plan {
    int outer = 0; ///< axes before it
    index_map map[8];
    std::int64_t amount[8], small[8], large[8], stride[8]; ///< stride: of the small tensor, in elements
    std::int64_t inner = 1, rows = 1, small_rows = 1;

    plan(int rank, const std::int64_t* extents, const std::int64_t* maps, const std::int64_t* amounts,
         const std::int64_t* mapped_extents) {
        int last = rank - 1;
        while (last > 0 && maps[last] == static_cast<std::int64_t>(index_map::keep)) inner *= extents[last--];
        outer = last < 0 ? 0 : last;
        std::int64_t step = inner;
        if (last < 0) {
            map[0] = index_map::keep;
            amount[0] = 0;
            small[0] = large[0] = 1;
            stride[0] = step;
        }
        for (int i = last; i >= 0; --i) {
            map[i] = static_cast<index_map>(maps[i]);
            amount[i] = amounts[i];
            small[i] = extents[i];
            large[i] = mapped_extents[i];
            stride[i] = step;
            step *= extents[i];
            if (i < last) {
                rows *= large[i];
                small_rows *= small[i];
            }
        }
    }
    std::int64_t row() const { return large[outer]; }
    std::int64_t source(int i, std::int64_t position) const {
        return run_at(map[i], small[i], amount[i], position, large[i]).first * stride[i];
    }
};

/// Moves blocks of one size: single elements or runs of them.
template <int Size>
struct blocks {
    using element = typename layout_detail::word<Size>::type;
    static constexpr std::int64_t bytes = Size;
    explicit blocks(std::int64_t) {}
    static void backwards(char* to, const char* from, std::int64_t count) {
        layout_detail::run_backwards<Size>(reinterpret_cast<const element*>(from), reinterpret_cast<element*>(to),
                                           count);
    }
    static void same(char* to, const char* from, std::int64_t count) {
        element* y = reinterpret_cast<element*>(to);
        const element v = *reinterpret_cast<const element*>(from);
        for (std::int64_t i = 0; i < count; ++i) y[i] = v;
    }
};
template <>
struct blocks<0> {
    std::int64_t bytes;
    explicit blocks(std::int64_t size) : bytes(size) {}
    void backwards(char* to, const char* from, std::int64_t count) const {
        for (std::int64_t i = 0; i < count; ++i, to += bytes, from -= bytes) layout_detail::move_bytes(to, from, bytes);
    }
    void same(char* to, const char* from, std::int64_t count) const {
        for (std::int64_t i = 0; i < count; ++i, to += bytes) layout_detail::move_bytes(to, from, bytes);
    }
};

/// Writes positions [first, last) of one row. `x` is the row of the small tensor, `y` the address
/// of position `first`.
template <int Size>
void write_row(const plan& p, const char* x, std::int64_t first, std::int64_t last, std::int64_t bytes, char* y) {
    const blocks<Size> b(bytes);
    const std::int64_t size = b.bytes;
    const int k = p.outer;
    const std::int64_t n = p.small[k], amount = p.amount[k];
    if (p.map[k] == index_map::repeat && first % amount == 0) {
        const char* from = x + first / amount * size;
        if constexpr (Size >= 4) { // like equal channels
            const std::int64_t n_here = (last - first) / amount;
            if (amount == 2) return layout_detail::channels<Size, 2>::template run<true>(from, y, 0, n_here);
            if (amount == 3) return layout_detail::channels<Size, 3>::template run<true>(from, y, 0, n_here);
            if (amount == 4) return layout_detail::channels<Size, 4>::template run<true>(from, y, 0, n_here);
        }
        for (std::int64_t at = first; at < last; at += amount, from += size) {
            b.same(y, from, std::min(amount, last - at));
            y += amount * size;
        }
        return;
    }
    // A repeating pattern is written once and then copied from the result.
    const std::int64_t period = period_of(p.map[k], n), count = last - first;
    const bool doubling = period > 0 && period * 2 < count && period < 4096;
    const std::int64_t written = doubling ? period : count;
    for (std::int64_t at = first; at < first + written;) {
        const index_run r = run_at(p.map[k], n, amount, at, first + written);
        char* const to = y + (at - first) * size;
        const char* const from = x + r.first * size;
        if (r.direction > 0)
            layout_detail::move_bytes(to, from, r.count * size);
        else if (r.direction < 0)
            b.backwards(to, from, r.count);
        else
            b.same(to, from, r.count);
        at += r.count;
    }
    for (std::int64_t done = written; done < count;) {
        const std::int64_t more = std::min({done, count - done, 8192 / period * period});
        std::memcpy(y + done * size, y, static_cast<std::size_t>(more * size));
        done += more;
    }
}

void require_elements(const plan& p);

/// row[q] += the sum over the copies of element q, in the order of positions.
template <class T>
struct fold_row_body {
    template <class Isa>
    TG_INLINE static void run(const plan* p, const T* dy, T* row) {
        const int k = p->outer;
        const std::int64_t n = p->small[k], inner = p->inner, large = p->large[k];
        for (std::int64_t at = 0; at < large;) {
            const index_run r = run_at(p->map[k], n, p->amount[k], at, large);
            const T* from = dy + at * inner;
            T* to = row + r.first * inner;
            if (r.direction > 0) {
                const std::int64_t count = r.count * inner;
                TG_SIMD
                for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
            } else if (inner == 1 && r.direction < 0) {
                for (std::int64_t i = 0; i < r.count; ++i) to[-i] += from[i];
            } else if (inner == 1) {
                T sum = *to;
                for (std::int64_t i = 0; i < r.count; ++i) sum += from[i];
                *to = sum;
            } else {
                for (std::int64_t i = 0; i < r.count; ++i, from += inner, to += r.direction * inner) {
                    TG_SIMD
                    for (std::int64_t c = 0; c < inner; ++c) to[c] += from[c];
                }
            }
            at += r.count;
        }
    }
};

/// Adds every row of dy that maps to the small tensor's row at `at`, with the first axis slowest.
template <class T>
void fold_rows(const plan& p, int axis, const std::int64_t* at, std::int64_t from, const T* dy, T* row) {
    if (axis == p.outer) return dispatch<fold_row_body<T>>(&p, dy + from * p.row() * p.inner, row);
    for_positions(p.map[axis], p.small[axis], p.amount[axis], at[axis], p.large[axis],
                  [&](std::int64_t position) { fold_rows(p, axis + 1, at, from * p.large[axis] + position, dy, row); });
}

} // namespace index_map_detail

/// out[i...] = in[map(i)...], with elements of `size` bytes (1, 2, 4 or 8), the extents of in and
/// out, and rank <= 8.
void apply_index_map(int rank, const std::int64_t* extents, const std::int64_t* maps, const std::int64_t* amounts,
                     const std::int64_t* out_extents, std::size_t size, const void* in, void* out);

/// The adjoint of `remap`: out (with the extents of `in` there) is the sum over the copies of each
/// element in dy, in dy's order for any number of threads.
template <class T>
void index_map_adjoint(int rank, const std::int64_t* extents, const std::int64_t* maps, const std::int64_t* amounts,
                       const std::int64_t* dy_extents, const T* dy, T* out) {
    using namespace index_map_detail;
    const plan p(rank, extents, maps, amounts, dy_extents);
    const std::int64_t width = p.small[p.outer] * p.inner, rows = p.small_rows;
    if (rows * width == 0) return;
    const std::int64_t elements = p.rows * p.row() * p.inner;
    const std::int64_t in_task = std::max<std::int64_t>(1, rows * layout_detail::piece_elements / (elements + 1));
    parallel_for((rows + in_task - 1) / in_task, elements >= layout_detail::parallel_elements, [&](std::int64_t task) {
        for (std::int64_t row = task * in_task, end = std::min(rows, row + in_task); row < end; ++row) {
            std::int64_t at[8]{};
            for (std::int64_t i = p.outer, rest = row; i-- > 0; rest /= p.small[i]) at[i] = rest % p.small[i];
            T* const to = out + row * width;
            std::fill(to, to + width, T(0));
            fold_rows(p, 0, at, 0, dy, to);
        }
    });
}

#if TG_DEFINES(movement)

TG_DEFINITION void apply_index_map(int rank, const std::int64_t* extents, const std::int64_t* maps,
                                   const std::int64_t* amounts, const std::int64_t* out_extents, std::size_t size,
                                   const void* in, void* out) {
    using namespace index_map_detail;
    const plan p(rank, extents, maps, amounts, out_extents);
    const std::int64_t elements = p.rows * p.row() * p.inner;
    if (elements == 0) return;
    require_elements(p);
    const std::int64_t block = static_cast<std::int64_t>(size) * p.inner;
    const auto write = block == 1   ? &write_row<1>
                       : block == 2 ? &write_row<2>
                       : block == 4 ? &write_row<4>
                       : block == 8 ? &write_row<8>
                                    : &write_row<0>;
    // Pieces of a row are whole repetitions each; short rows share a task.
    std::int64_t wide = std::max<std::int64_t>(1, 2 * layout_detail::piece_elements / p.inner);
    if (p.map[p.outer] == index_map::repeat && p.amount[p.outer] > 0)
        wide = std::max<std::int64_t>(1, wide / p.amount[p.outer]) * p.amount[p.outer];
    const std::int64_t pieces = (p.row() + wide - 1) / wide, units = p.rows * pieces;
    const std::int64_t in_task =
        std::max<std::int64_t>(1, 2 * layout_detail::piece_elements / (std::min(wide, p.row()) * p.inner));
    parallel_for((units + in_task - 1) / in_task, elements >= layout_detail::parallel_elements, [&](std::int64_t task) {
        std::int64_t unit = task * in_task, row = unit / pieces, piece = unit % pieces;
        std::int64_t at[8]{}, source[8]{}, from = 0;
        for (std::int64_t i = p.outer, rest = row; i-- > 0; rest /= p.large[i]) at[i] = rest % p.large[i];
        for (int i = 0; i < p.outer; ++i) from += source[i] = p.source(i, at[i]);
        for (const std::int64_t end = std::min(units, unit + in_task); unit < end; ++unit) {
            const std::int64_t first = piece * wide;
            write(p, static_cast<const char*>(in) + from * static_cast<std::int64_t>(size), first,
                  std::min(p.row(), first + wide), block, static_cast<char*>(out) + (row * p.row() + first) * block);
            if (++piece < pieces) continue;
            piece = 0;
            ++row;
            for (int i = p.outer; i-- > 0;) {
                const bool wraps = ++at[i] == p.large[i];
                if (wraps) at[i] = 0;
                from -= source[i];
                from += source[i] = p.source(i, at[i]);
                if (!wraps) break;
            }
        }
    });
}

TG_DEFINITION void index_map_detail::require_elements(const plan& p) {
    for (int i = 0; i <= p.outer; ++i)
        if (p.small[i] == 0 && p.large[i] > 0) throw shape_error(nothing_to_repeat);
}

#endif

} // namespace tapegraph::cpu
