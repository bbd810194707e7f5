#pragma once

#include <tapegraph/cuda/kernels/convolution_shape.cuh>
#include <tapegraph/cuda/kernels/operand.cuh>

#include <type_traits>

/// How threads find their elements of a convolution's operands, step after step of k. k is walked
/// tap by tap, and within a tap some channels at a time: what depends on the tap (addresses, and
/// whether they are inside the image) is computed when the tap changes, and a step only adds to
/// addresses. The channels of a tap are padded to whole steps with zeros. In a filter gradient k
/// counts pixels; there a table in shared memory holds the next step's pixels, each computed by one
/// thread for all.
///
/// Problems (convolution.cuh) define taps(), kernel_width(), inner() (the elements of k in a tap)
/// and walks_pixels.

namespace tapegraph::cuda::kernels {

/// The position of a block in its part of k.
struct k_walk {
    int u, v, at, left; ///< tap, the first of its channels, remaining steps

    template <class Problem>
    __device__ k_walk(const Problem& p, int depth, int split) {
        const int each = (p.inner() + depth - 1) / depth;
        const std::int64_t all = static_cast<std::int64_t>(each) * p.taps();
        const auto begin = static_cast<int>(all * split / p.splits);
        const int tap = each > 0 ? begin / each : 0;
        left = static_cast<int>(all * (split + 1) / p.splits) - begin;
        at = (begin - tap * each) * depth;
        u = tap / p.kernel_width();
        v = tap - u * p.kernel_width();
    }
    /// Advances by a step; returns whether that leads to another tap.
    template <class Problem>
    __device__ bool next(const Problem& p, int depth) {
        --left;
        at += depth;
        if (at < p.inner()) return false;
        next_tap(p);
        return true;
    }
    /// Advances to the next tap that is needed, or to the end.
    template <class Problem>
    __device__ void skip(const Problem& p, const needed_taps& needed, int depth) {
        while (left > 0 && !needed(u, v)) {
            left -= (p.inner() - at + depth - 1) / depth;
            next_tap(p);
        }
    }

private:
    template <class Problem>
    __device__ void next_tap(const Problem& p) {
        at = 0;
        if (++v == p.kernel_width()) v = 0, ++u;
    }
};

/// The address of an element, and whether it is inside; an element outside is zero and has no
/// address.
template <class Element>
struct walked {
    const Element* at;
    bool there;
};

/// Operand A: the rows of a window, along the channels.
template <class Problem, class Load>
class gathered_rows {
    using Element = typename Problem::element;
    static_assert(Load::straight && Load::rows <= 32);

public:
    __device__ gathered_rows(const Problem& p, int thread, int first, int group) : step_(Load::step(thread, 0)) {
        TG_UNROLL
        for (int i = 0; i < Load::rows; ++i) {
            lines_[i] = p.line_a(first + Load::line(thread, i), group);
            lines_[i].offset += p.first_a(group) + step_;
        }
    }
    /// Moves to a tap, `at` channels into it.
    __device__ void enter(const Problem& p, int u, int v, int at) {
        inside_ = 0;
        TG_UNROLL
        for (int i = 0; i < Load::rows; ++i) {
            int within = 0;
            inside_ |= p.enter(lines_[i], u, v, within) ? 1u << i : 0u;
            now_[i] = p.source_a() + lines_[i].offset + (within + at);
        }
    }
    template <class Take>
    __device__ void load(const Problem&, int thread, int left, const Take& take) const {
        const unsigned there = step_ < left ? inside_ : 0;
        TG_UNROLL
        for (int i = 0; i < Load::each; ++i)
            if (Load::mine(thread, i)) take(i, walked<Element>{now_[i], (there & 1u << i) != 0});
    }
    __device__ void advance(int depth) {
        TG_UNROLL
        for (auto& now : now_) now += depth;
    }

private:
    gathered_line lines_[Load::rows];
    const Element* now_[Load::rows]{};
    int step_;
    unsigned inside_ = 0; ///< one bit per row
};

/// Operand A of a filter gradient: some channels of taps, pixel by pixel.
template <class Problem, class Load>
class gathered_pixels {
    using Element = typename Problem::element;

public:
    __device__ gathered_pixels(const Problem& p, int thread, int first, int group) {
        TG_UNROLL
        for (int i = 0; i < Load::each; ++i) lines_[i] = p.line_a(first + Load::line(thread, i), group);
    }
    /// `table` holds the pixels of the step.
    template <class Take>
    __device__ void load(const Problem& p, int thread, const gathered_line* table, const Take& take) const {
        const gathered_line pixel = table[Load::step(thread)];
        const Element* const from = p.x + pixel.offset;
        TG_UNROLL
        for (int i = 0; i < Load::each; ++i) {
            const gathered_step& line = lines_[i];
            const bool inside =
                static_cast<unsigned>(pixel.row + line.row) < static_cast<unsigned>(p.s.rows.in) &&
                static_cast<unsigned>(pixel.column + line.column) < static_cast<unsigned>(p.s.columns.in);
            if (Load::mine(thread, i)) take(i, walked<Element>{from + line.offset, inside});
        }
    }

private:
    gathered_step lines_[Load::each];
};

/// Operand B: a matrix in place.
template <class Problem, class Load>
class plain_rows {
    using Element = typename Problem::element;
    static_assert(Load::each <= 32);
    static constexpr bool along_k = Problem::b_along_k;

public:
    __device__ plain_rows(const Problem& p, int thread, int first) : step_(Load::step(thread, 0)) {
        const int line = first + Load::line(thread, 0);
        offset_ = along_k ? static_cast<std::int64_t>(line) * p.pitch_b() + step_
                          : static_cast<std::int64_t>(step_) * p.pitch_b() + line;
        TG_UNROLL
        for (int i = 0; i < Load::each; ++i)
            there_ |= first + Load::line(thread, i) < p.n && Load::mine(thread, i) ? 1u << i : 0u;
        there_ = static_cast<unsigned>(computed_here(static_cast<int>(there_))); // kept rather than recomputed
    }
    /// `from` is the step's first element of line 0.
    __device__ void enter(const Element* from) { now_ = from + offset_; }
    template <class Take>
    __device__ void load(const Problem& p, int thread, int left, const Take& take) const {
        const unsigned there = step_ < left ? there_ : 0;
        const std::int64_t apart = along_k ? static_cast<std::int64_t>(Load::apart) * p.pitch_b() : Load::apart;
        const Element* from = now_;
        TG_UNROLL
        for (int i = 0; i < Load::each; ++i, from += apart)
            if (Load::mine(thread, i)) take(i, walked<Element>{from, (there & 1u << i) != 0});
    }
    __device__ void advance(const Problem& p, int depth) {
        now_ += along_k ? depth : static_cast<std::int64_t>(depth) * p.pitch_b();
    }

private:
    std::int64_t offset_;
    const Element* now_ = nullptr;
    int step_;
    unsigned there_ = 0; ///< one bit per copy
};

/// Both operands of a product for one thread, and the block's walk along k. Each `load` takes one
/// step and passes (i, address and whether it is inside) to the takers of A and of B. If k counts
/// pixels, the block must synchronise before each `load`.
template <class Problem, class LoadA, class LoadB, int Depth>
class operand_walk {
    static constexpr bool pixels = Problem::walks_pixels;
    static constexpr int threads = LoadA::threads;

public:
    __device__ operand_walk(const Problem& p, int thread, int first_m, int first_n, int rows, int group, int split,
                            gathered_line (*table)[Depth])
        : walk_(p, Depth, split), a_(p, thread, first_m, group), b_(p, thread, first_n), table_(table) {
        if constexpr (pixels) {
            note_pixels(p, thread, group);
            b_.enter(p.b_at(0, 0, walk_.at, group));
        } else {
            needed_ = p.taps_of(first_m, rows);
            enter(p, group);
        }
    }
    __device__ bool more() const { return walk_.left > 0; }

    template <class A, class B>
    __device__ void load(const Problem& p, int thread, int group, const A& take_a, const B& take_b) {
        const int left = p.inner() - walk_.at;
        if constexpr (pixels)
            a_.load(p, thread, table_[turn_], take_a);
        else
            a_.load(p, thread, left, take_a);
        b_.load(p, thread, left, take_b);
        const bool other_tap = walk_.next(p, Depth);
        b_.advance(p, Depth);
        if constexpr (pixels) {
            turn_ ^= 1;
            note_pixels(p, thread, group);
        } else {
            a_.advance(Depth);
            if (other_tap) enter(p, group);
        }
    }

private:
    __device__ void enter(const Problem& p, int group) {
        walk_.skip(p, needed_, Depth);
        if (walk_.left <= 0) return;
        a_.enter(p, walk_.u, walk_.v, walk_.at);
        b_.enter(p.b_at(walk_.u, walk_.v, walk_.at, group));
    }
    __device__ void note_pixels(const Problem& p, int thread, int group) {
        for (int i = thread; i < Depth; i += threads) table_[turn_][i] = p.step_a(walk_.at + i, p.k, group);
    }

    k_walk walk_;
    std::conditional_t<pixels, gathered_pixels<Problem, LoadA>, gathered_rows<Problem, LoadA>> a_;
    plain_rows<Problem, LoadB> b_;
    needed_taps needed_{};
    gathered_line (*table_)[Depth]; ///< two, used alternately
    int turn_ = 0;
};

} // namespace tapegraph::cuda::kernels
