#pragma once

#include <tapegraph/cuda/kernels/operand.cuh>
#ifdef TG_SIMT
#include <simt/instructions.hpp>
#else
#include <tapegraph/cuda/kernels/instructions.cuh>
#endif

/// The products of flash_attention.cuh. Four warps own 64 rows, 16 each; a tile has 64 columns of
/// scores, and a block 64 columns of results. Both operands of scores lie along k in shared memory, and
/// the second operand of results across it, in rows that are a multiple of all banks and 16 bytes long:
/// eight rows of 16 bytes, or four pairs of rows with eight numbers each, then use all banks once.

namespace tapegraph::cuda::kernels {

inline constexpr std::uint32_t tf32_digits = ~std::uint32_t{0x1FFF}; ///< PTX does not say what the others are
inline constexpr int flash_side = 64, flash_threads = 128, flash_rows_of_warp = 16;

/// The length of rows in shared memory whose `columns` are padded to whole steps.
__host__ __device__ constexpr int flash_padded(int columns) { return (columns + 31) / 32 * 32; }
__host__ __device__ constexpr int flash_pitch(int columns) { return flash_padded(columns) + 4; }
inline constexpr int flash_weights_pitch = flash_pitch(flash_side);

/// What a thread has of 16 rows and 64 columns: sums[row][column]. TF32: the fragments of multiply_tf32.
/// Scores become the first operand of results without leaving registers: for products over keys, the
/// keys 2t and 2t + 1, which a lane has, are called t and t + 4 in both operands.
struct flash_tensor_products {
    static constexpr bool through_shared = false, rounded = true;
    static constexpr int rows = 2, columns = 16;

    struct sums {
        float of[8][4];
        __device__ float& at(int r, int c) { return of[c / 2][2 * r + c % 2]; }
    };
    __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
    __device__ static int row(int r) { return lane() / 4 + 8 * r; }
    __device__ static int column(int c) { return c / 2 * 8 + lane() % 4 * 2 + c % 2; }
    __device__ static int result_column(int c) { return column(c); }
    __device__ static bool begins_row() { return lane() % 4 == 0; }
    /// f(x, x of another lane of the row), for all of them.
    template <class F>
    __device__ static float over_row(float x, const F& f) {
        x = f(x, __shfl_xor_sync(0xFFFFFFFFu, x, 1));
        return f(x, __shfl_xor_sync(0xFFFFFFFFu, x, 2));
    }

    /// s = a b^T over `depth` features, a multiple of 32.
    __device__ static void scores(sums& s, const float* a, const float* b, int pitch, int depth) {
        TG_UNROLL
        for (int c = 0; c < 8; ++c) TG_UNROLL
        for (int i = 0; i < 4; ++i) s.of[c][i] = 0;
        a += lane() % 16 * pitch + lane() / 16 * 4;
        b += (lane() / 16 * 8 + lane() % 8) * pitch + lane() / 8 % 2 * 4;
        TG_ROLLED
        for (int k = 0; k < depth; k += 16, a += 16, b += 16) {
            TG_UNROLL
            for (int i = 0; i < 16; i += 8) {
                std::uint32_t of_a[4];
                load_matrices<4, false>(of_a, a + i);
                TG_UNROLL
                for (int c = 0; c < 8; c += 2) {
                    std::uint32_t of_b[2][2];
                    load_matrices<4, false>(&of_b[0][0], b + c * 8 * pitch + i);
                    multiply_tf32(s.of[c], of_a, of_b[0]);
                    multiply_tf32(s.of[c + 1], of_a, of_b[1]);
                }
            }
        }
    }
    /// to += weights b over 64 rows of b, for `size` columns.
    __device__ static void add_results(sums& to, sums& weights, const float*, const float* b, int pitch, int size) {
        std::uint32_t of_a[8][4];
        TG_UNROLL
        for (int k = 0; k < 8; ++k) {
            of_a[k][0] = to_tf32(weights.of[k][0]), of_a[k][1] = to_tf32(weights.of[k][2]);
            of_a[k][2] = to_tf32(weights.of[k][1]), of_a[k][3] = to_tf32(weights.of[k][3]);
        }
        b += lane() % 4 * 2 * pitch + lane() / 4;
        TG_UNROLL
        for (int c = 0; c < 8; c += 2) {
            if (c * 8 >= size) break;
            TG_UNROLL
            for (int k = 0; k < 8; ++k) TG_UNROLL
            for (int i = 0; i < 2; ++i) {
                const float* const at = b + k * 8 * pitch + (c + i) * 8;
                const std::uint32_t of_b[2]{to_bits(at[0]), to_bits(at[pitch])};
                multiply_tf32(to.of[c + i], of_a[k], of_b);
            }
        }
    }
};

/// Multiply-adds of floats: four rows by eight columns a thread, 32 for three reads of 16 bytes. Bits
/// 0, 2 and 3 of a lane are its column: lanes that differ in bit 0 read one row of the first operand,
/// and those that differ in bit 1 one of the second, which spares half of the turns. Weights go through
/// shared memory, 16 rows for each warp.
struct flash_multiply_adds {
    static constexpr bool through_shared = true, rounded = false;
    static constexpr int rows = 4, columns = 8;

    struct sums {
        float of[4][8];
        __device__ float& at(int r, int c) { return of[r][c]; }
    };
    __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
    __device__ static int lane_row() { return lane() / 2 % 2 + lane() / 16 * 2; }
    __device__ static int lane_column() { return lane() % 2 + lane() / 4 % 4 * 2; }
    __device__ static int row(int r) { return lane_row() + 4 * r; }
    __device__ static int column(int c) { return lane_column() + 8 * c; }
    __device__ static int result_column(int c) { return c / 4 * 32 + lane_column() * 4 + c % 4; }
    __device__ static bool begins_row() { return lane_column() == 0; }
    template <class F>
    __device__ static float over_row(float x, const F& f) {
        x = f(x, __shfl_xor_sync(0xFFFFFFFFu, x, 1));
        x = f(x, __shfl_xor_sync(0xFFFFFFFFu, x, 4));
        return f(x, __shfl_xor_sync(0xFFFFFFFFu, x, 8));
    }

    using quad = pack<float, 4>;
    __device__ static quad quad_at(const float* at) { return *reinterpret_cast<const quad*>(at); }

    __device__ static void scores(sums& s, const float* a, const float* b, int pitch, int depth) {
        TG_UNROLL
        for (int r = 0; r < rows; ++r) TG_UNROLL
        for (int c = 0; c < columns; ++c) s.of[r][c] = 0;
        a += lane_row() * pitch, b += lane_column() * pitch;
        TG_ROLLED
        for (int k = 0; k < depth; k += 8, a += 8, b += 8) {
            TG_UNROLL
            for (int i = 0; i < 8; i += 4) {
                quad of_a[rows];
                TG_UNROLL
                for (int r = 0; r < rows; ++r) of_a[r] = quad_at(a + r * 4 * pitch + i);
                TG_UNROLL
                for (int c = 0; c < columns; ++c) {
                    const quad of_b = quad_at(b + c * 8 * pitch + i);
                    TG_UNROLL
                    for (int j = 0; j < 4; ++j) TG_UNROLL
                    for (int r = 0; r < rows; ++r) s.of[r][c] = multiply_add(of_a[r].v[j], of_b.v[j], s.of[r][c]);
                }
            }
        }
    }
    __device__ static void add_results(sums& to, sums&, const float* weights, const float* b, int pitch, int size) {
        weights += lane_row() * flash_weights_pitch, b += lane_column() * 4;
        TG_ROLLED
        for (int k = 0; k < flash_side; k += 4, weights += 4, b += 4 * pitch) {
            quad of_a[rows];
            TG_UNROLL
            for (int r = 0; r < rows; ++r) of_a[r] = quad_at(weights + r * 4 * flash_weights_pitch);
            TG_UNROLL
            for (int part = 0; part < 2; ++part) {
                if (part * 32 >= size) break;
                TG_UNROLL
                for (int j = 0; j < 4; ++j) {
                    const quad of_b = quad_at(b + j * pitch + part * 32);
                    TG_UNROLL
                    for (int r = 0; r < rows; ++r) TG_UNROLL
                    for (int i = 0; i < 4; ++i)
                        to.of[r][part * 4 + i] = multiply_add(of_a[r].v[j], of_b.v[i], to.of[r][part * 4 + i]);
                }
            }
        }
    }
};

/// Rows of an operand as they are copied: `columns` of them, in pieces of 4 floats or, where addresses
/// are not aligned, of one. A thread keeps its column.
struct flash_rows {
    int columns = 0, pitch = 0, piece = 4;
    divisor pieces;  ///< in a row, padded; at most flash_threads
    int at_once = 0; ///< rows that all threads copy

    flash_rows() = default;
    flash_rows(int count, bool aligned)
        : columns(count),
          pitch(flash_pitch(count)),
          piece(aligned ? 4 : 1),
          pieces(static_cast<std::uint32_t>(flash_padded(count) / piece)),
          at_once(flash_threads / static_cast<int>(pieces.value)) {}

    __host__ __device__ int padded() const { return pitch - 4; }
    __device__ int first_row() const { return static_cast<int>(pieces.quotient(threadIdx.x)); }
    __device__ int column(int row) const {
        return static_cast<int>(pieces.remainder(threadIdx.x, static_cast<std::uint32_t>(row))) * piece;
    }

    /// Starts a copy of 64 rows, `apart` from each other, of which `there` exist; the others, and
    /// columns from `end` on, become zeros.
    __device__ void load(float* to, const float* from, std::int64_t apart, int there, int end) const {
        int row = first_row();
        const int own = column(row);
        if (row >= at_once) return;
        const bool inside = own < end;
        to += row * pitch + own, from += row * apart + own;
        for (; row < flash_side; row += at_once, to += at_once * pitch, from += at_once * apart) {
            if (piece == 4)
                copy_async<16>(to, from, inside && row < there);
            else
                copy_async<4>(to, from, inside && row < there);
        }
    }
    /// Rounds what this thread has copied to TF32.
    __device__ void round(float* tile) const {
        const auto rounded = [](float x) { return from_bits(to_tf32(x)); };
        int row = first_row();
        float* at = tile + row * pitch + column(row);
        if (row >= at_once) return;
        for (; row < flash_side; row += at_once, at += at_once * pitch) {
            if (piece == 4) {
                using quad = pack<float, 4>; // read and written at once
                const quad x = *reinterpret_cast<const quad*>(at);
                const quad y{rounded(x.v[0]), rounded(x.v[1]), rounded(x.v[2]), rounded(x.v[3])};
                *reinterpret_cast<quad*>(at) = y;
            } else {
                *at = rounded(*at);
            }
        }
    }
};

/// Stores weights for the rows of this warp.
template <class Products>
__device__ void keep_weights(float* to, typename Products::sums& weights) {
    TG_UNROLL
    for (int r = 0; r < Products::rows; ++r) TG_UNROLL
    for (int c = 0; c < Products::columns; ++c)
        to[Products::row(r) * flash_weights_pitch + Products::column(c)] = weights.at(r, c);
}

/// to += weights b, where a weight of 0 takes no notice of an infinite or NaN factor.
template <class Products>
__device__ void add_used_results(typename Products::sums& to, const float* weights, const float* b, int pitch,
                                 int size) {
    TG_ROLLED
    for (int k = 0; k < flash_side; ++k, b += pitch) {
        TG_UNROLL
        for (int r = 0; r < Products::rows; ++r) {
            const float weight = weights[Products::row(r) * flash_weights_pitch + k];
            if (weight == 0) continue;
            TG_UNROLL
            for (int c = 0; c < Products::columns; ++c) {
                const int column = Products::result_column(c);
                if (column >= size) continue;
                const float x = Products::rounded ? from_bits(to_bits(b[column]) & tf32_digits) : b[column];
                to.at(r, c) = multiply_add(weight, x, to.at(r, c));
            }
        }
    }
}

} // namespace tapegraph::cuda::kernels
