#pragma once

#include <tapegraph/core/half.hpp>
#include <tapegraph/cuda/kernels/platform.cuh>
#include <tapegraph/cuda/kernels/swizzled_tile.hpp>
#include <tapegraph/cuda/kernels/warpgroup_instructions.cuh>
#include <tapegraph/cuda/ops/convolution/im2col_box.hpp>

#include <algorithm>
#include <cstdint>

/// A convolution as a product of wgmma instructions: rows are pixels of the results, columns their
/// channels, k taps and channels (im2col_box.hpp). TMA fetches both operands' tiles, pixels in its
/// im2col mode, into a ring of stages in shared memory; one thread of the first warpgroup issues
/// these and does nothing else. The other two warpgroups multiply, 64 rows or twice that each; sums
/// stay in their registers, for which the first warpgroup releases most of its own. Per stage one
/// barrier counts the bytes that arrive, and one the warps that have finished with them.

namespace tapegraph::cuda::kernels {

/// Rows, columns and stages of a block's tile; k is tile_row_bytes deep.
template <int Fragments_, int Columns_>
struct warpgroup_tile {
    static constexpr int Fragments = Fragments_, Columns = Columns_; ///< a warpgroup's rows, in multiples of 64
    static constexpr int rows_of_group = 64 * Fragments, Rows = 2 * rows_of_group, threads = 3 * 128;
    static constexpr int stage_bytes = (Rows + Columns) * tile_row_bytes;
    static constexpr int Stages = std::min(6, (227 * 1024 - 2 * tile_alignment) / stage_bytes);
    static constexpr int shared_bytes = Stages * stage_bytes + tile_alignment; ///< extra bytes to align it
    static_assert(Columns % 8 == 0 && Columns <= 256 && Stages >= 2);
};

template <class T, bool Innermost = false>
struct warpgroup_problem {
    im2col_walk walk;
    int m, n;
    int chain;        ///< steps of k summed in registers at once: longer sums would lose accuracy there
    float* partial;   ///< [m, n], of the chains before; used if there are several
    T* out;           ///< [m, n]
    const T* bias;    ///< [n], or null
    bool relu, pairs; ///< pairs: two results are contiguous and aligned

    static constexpr bool sliced = false, innermost = Innermost;
    __device__ im2col_taps taps(int tile_rows) const {
        return walk.taps_of<Innermost>(static_cast<int>(blockIdx.x) * tile_rows, tile_rows);
    }
    /// The steps of k of this block.
    __device__ int begin() const { return 0; }
    __device__ int end(const im2col_taps& of) const {
        return Innermost ? of.down * of.across * walk.steps_of_tap : walk.steps();
    }
    /// Whether sums of earlier steps are in memory already.
    __device__ bool continues(int step) const { return step > 0; }
    /// The position of a row of its results in memory.
    __device__ std::int64_t position(int row) const {
        return static_cast<std::int64_t>(walk.pixel_of<Innermost>(row)) * n;
    }
    __device__ void fetch_at(const tensor_map& pixels, const tensor_map& filters, tile_barrier* counted, void* rows,
                             void* columns, const im2col_start& from, int first_column, const im2col_fetch& f) const {
        fetch_pixels(pixels, counted, rows, f.channel, from.column, from.row,
                     Innermost ? from.image + f.offset_image : from.image, f.offset_column, f.offset_row);
        fetch_filters<true>(filters, counted, columns, f.channel, first_column, f.filter_tap);
    }
    __device__ void add_partial(std::int64_t row, int column, float* sum) const {
        sum[0] += partial[row + column];
        if (column + 1 < n) sum[1] += partial[row + column + 1];
    }
    __device__ void keep_partial(std::int64_t row, int column, const float* sum) const {
        partial[row + column] = sum[0];
        if (column + 1 < n) partial[row + column + 1] = sum[1];
    }
    __device__ T finished(float sum, int column) const {
        if constexpr (sizeof(T) == sizeof(float)) {
            if (bias != nullptr) sum += bias[column];
            return !relu || sum > 0 || sum != sum ? sum : 0.0f; // NaN stays NaN
        } else { // each step is rounded, like the operations it stands for
            T value = static_cast<T>(sum);
            if (bias != nullptr) value = static_cast<T>(static_cast<float>(value) + static_cast<float>(bias[column]));
            const float rounded = static_cast<float>(value);
            return !relu || rounded > 0 || rounded != rounded ? value : static_cast<T>(0.0f);
        }
    }
    /// Stores two results, of which the second may be outside.
    __device__ void finish(std::int64_t row, int column, const float* sum) const {
        T* const to = out + row + column;
        if (pairs) {
            *reinterpret_cast<neighbours*>(to) = {finished(sum[0], column), finished(sum[1], column + 1)};
        } else {
            to[0] = finished(sum[0], column);
            if (column + 1 < n) to[1] = finished(sum[1], column + 1);
        }
    }

private:
    struct alignas(2 * sizeof(T)) neighbours {
        T first, second;
    };
};

/// A product with few rows and columns and a long k: blocks blockIdx.z of the grid compute `part`
/// steps of k each, whose sums are left in a slice of memory. Other kernels add up the slices.
template <class T>
struct warpgroup_slices {
    im2col_walk walk;
    int m, n;
    int chain;
    int part;       ///< steps of a slice
    float* slices;  ///< [slices, m, n]
    bool continued; ///< sums are added to what the slices hold
    bool flat;      ///< the images are lines (map_of_images)
    bool pairs;     ///< n is even

    static constexpr bool sliced = true, innermost = false;
    __device__ im2col_taps taps(int) const { return walk.taps_of<false>(0, 1); }
    __device__ int begin() const { return static_cast<int>(blockIdx.z) * part; }
    __device__ int end(const im2col_taps&) const {
        const int left = walk.steps() - begin();
        return begin() + (left < part ? left : part);
    }
    __device__ bool continues(int step) const { return continued || step > begin(); }
    __device__ std::int64_t position(int row) const {
        return (std::int64_t{computed_here(static_cast<int>(blockIdx.z))} * m + row) * n;
    }
    __device__ void fetch_at(const tensor_map& pixels, const tensor_map& filters, tile_barrier* counted, void* rows,
                             void* columns, const im2col_start& from, int first_column, const im2col_fetch& f) const {
        if (flat)
            fetch_line(pixels, counted, rows, f.channel, from.column, from.image, f.offset_column);
        else
            fetch_pixels(pixels, counted, rows, f.channel, from.column, from.row, from.image, f.offset_column,
                         f.offset_row);
        fetch_filters<false>(filters, counted, columns, f.channel, first_column, f.filter_tap);
    }
    __device__ void add_partial(std::int64_t row, int column, float* sum) const {
        const float* const from = slices + row + column;
        if (pairs) {
            const auto both = *reinterpret_cast<const neighbours*>(from);
            sum[0] += both.first, sum[1] += both.second;
        } else {
            sum[0] += from[0];
            if (column + 1 < n) sum[1] += from[1];
        }
    }
    __device__ void keep_partial(std::int64_t row, int column, const float* sum) const {
        float* const to = slices + row + column;
        if (pairs) {
            *reinterpret_cast<neighbours*>(to) = {sum[0], sum[1]};
        } else {
            to[0] = sum[0];
            if (column + 1 < n) to[1] = sum[1];
        }
    }

private:
    struct alignas(2 * sizeof(float)) neighbours {
        float first, second;
    };
};

/// A position in the ring of stages, for reading or writing.
template <int Stages>
struct ring_place {
    int stage = 0;
    std::uint32_t phase = 0;

    __device__ void advance() {
        if (++stage < Stages) return;
        stage = 0;
        phase ^= 1;
    }
};

template <class Tile, class Problem>
__device__ void fetch_tiles(const tensor_map& pixels, const tensor_map& filters, const Problem& p, unsigned char* tiles,
                            tile_barrier* arrived, tile_barrier* released) {
    prefetch(pixels);
    prefetch(filters);
    const im2col_start start = p.walk.template start<Problem::innermost>(static_cast<int>(blockIdx.x) * Tile::Rows);
    const int first_column = static_cast<int>(blockIdx.y) * Tile::Columns;
    ring_place<Tile::Stages> at;
    const im2col_taps taps = p.taps(Tile::Rows);
    const int begin = p.begin(), end = p.end(taps);
    int tap = begin / p.walk.steps_of_tap, step = begin - tap * p.walk.steps_of_tap;
    for (int done = begin; done < end; ++done, at.advance()) {
        unsigned char* const to = tiles + at.stage * Tile::stage_bytes;
        tile_barrier* const counted = arrived + at.stage;
        wait_for_phase(released + at.stage, at.phase ^ 1); // no wait in the first round: nothing is in use
        expect_bytes_of(counted, Tile::stage_bytes);       // elements outside of an operand count, too
        p.fetch_at(pixels, filters, counted, to, to + Tile::Rows * tile_row_bytes, start, first_column,
                   p.walk.template fetch<Problem::innermost>(taps, tap, step));
        if (++step == p.walk.steps_of_tap) step = 0, ++tap;
    }
}

template <class T, class Tile, class Problem>
__device__ void multiply_tiles(const Problem& p, std::uint32_t tiles, tile_barrier* arrived, tile_barrier* released,
                               int group) {
    constexpr int sums = Tile::Columns / 2, Fragments = Tile::Fragments;
    const int thread = static_cast<int>(threadIdx.x) % 128;
    const std::uint64_t descriptor = tile_descriptor(tiles);
    float sum[Fragments][sums];
    const auto hold_sums = [&] {
        TG_UNROLL
        for (int f = 0; f < Fragments; ++f) TG_UNROLL
        for (int i = 0; i < sums; ++i) hold(sum[f][i]);
    };
    const auto release = [&](int stage) {
        if (thread % 32 == 0) arrive_at(released + stage);
    };
    const int steps = p.end(p.taps(Tile::Rows));
    ring_place<Tile::Stages> at;
    for (int done = p.begin(); done < steps;) {
        TG_UNROLL
        for (int f = 0; f < Fragments; ++f) TG_UNROLL
        for (int i = 0; i < sums; ++i) sum[f][i] = 0;
        const int first = done, end = steps - done < p.chain ? steps : done + p.chain;
        int previous = -1;
        TG_ROLLED
        for (; done < end; ++done) {
            wait_for_phase(arrived + at.stage, at.phase);
            const std::uint64_t a = moved_descriptor(descriptor, at.stage * (Tile::Rows + Tile::Columns), 0);
            const std::uint64_t of_group = moved_descriptor(a, group * Tile::rows_of_group, 0);
            const std::uint64_t b = moved_descriptor(a, Tile::Rows, 0);
            hold_sums();
            begin_products();
            TG_UNROLL
            for (int k = 0; k < tile_row_bytes; k += product_bytes) TG_UNROLL
            for (int f = 0; f < Fragments; ++f)
                warpgroup_product<T, Tile::Columns>::add(moved_descriptor(of_group, 64 * f, k),
                                                         moved_descriptor(b, 0, k), sum[f]);
            commit_products();
            wait_products<1>(); // those of the previous step are done
            hold_sums();
            if (previous >= 0) release(previous);
            previous = at.stage;
            at.advance();
        }
        wait_products<0>();
        hold_sums();
        release(previous);

        // With values known before the loop, the compiler would keep all addresses in registers
        // through it.
        const int begin_m = computed_here(static_cast<int>(blockIdx.x)) * Tile::Rows + group * Tile::rows_of_group;
        const int begin_n = computed_here(static_cast<int>(blockIdx.y)) * Tile::Columns;
        const auto each_pair = [&](const auto& f) { // f(row's position, column, two sums)
            TG_UNROLL
            for (int i = 0; i < sums; i += 4) {
                const int n = computed_here(begin_n) + column_of_sum(thread, i);
                TG_UNROLL
                for (int r = 0; r < 2 * Fragments; ++r) {
                    const int m = begin_m + r / 2 * 64 + row_of_sum(thread, r % 2 * 2);
                    if (m < p.m && n < p.n) f(p.position(m), n, &sum[r / 2][i + r % 2 * 2]);
                }
            }
        };
        const auto keep = [&] {
            each_pair([&](std::int64_t row, int n, const float* pair) { p.keep_partial(row, n, pair); });
        };
        if (p.continues(first)) each_pair([&](std::int64_t row, int n, float* pair) { p.add_partial(row, n, pair); });
        if constexpr (Problem::sliced)
            keep();
        else if (done < steps)
            keep();
        else
            each_pair([&](std::int64_t row, int n, const float* pair) { p.finish(row, n, pair); });
    }
}

template <class T, class Tile, class Problem = warpgroup_problem<T>>
__global__ void __launch_bounds__(Tile::threads, 1)
    warpgroup_convolution(const __grid_constant__ tensor_map pixels, const __grid_constant__ tensor_map filters,
                          const __grid_constant__ Problem p) {
    __shared__ tile_barrier arrived[Tile::Stages], released[Tile::Stages];
    TG_DYNAMIC_SHARED(unsigned char, shared);
    const std::uint32_t skipped = (0u - shared_address(shared)) % tile_alignment;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < Tile::Stages; ++stage) {
            begin_barrier(arrived + stage, 1);
            begin_barrier(released + stage, 8); // the warps that multiply
        }
        show_barriers();
    }
    __syncthreads();
    const int group = static_cast<int>(threadIdx.x) / 128;
    if (group == 0) {
        leave_registers<40>();
        if (threadIdx.x == 0) fetch_tiles<Tile>(pixels, filters, p, shared + skipped, arrived, released);
    } else {
        take_registers<232>();
        multiply_tiles<T, Tile>(p, shared_address(shared) + skipped, arrived, released, group - 1);
    }
}

} // namespace tapegraph::cuda::kernels
