#pragma once

#include <tapegraph/cuda/kernels/recurrent_step.cuh>
#include <tapegraph/cuda/kernels/tensor_gemm.cuh>

/// One step of a recurrent layer on tensor cores, in TF32: the problems of recurrent_step.cuh, with
/// samples as rows, units and gates as columns, and the cell computed in the thread that has the
/// sums. plan.cuh describes the ways to run a layer.
///
/// A is not read from the states but from scratch memory: rows [samples, pitch] of the products'
/// operands (h d, r h d, or dz), already rounded by the step that made them, and padded with zeros
/// to whole tiles. B is R in place or, where units are not a multiple of four, a copy with padded
/// rows; so all copies are of 16 bytes. Columns form groups of eight units, each with all gates of
/// the phase one after the other, so that groups never straddle warps.
///
/// Sums go through shared memory to threads that each have a unit of a sample: eight neighbouring
/// units and four samples per warp, which uses all banks once and whole sectors of memory. A thread
/// loads the inputs of four cells before it computes the first.

namespace tapegraph::cuda::kernels {

/// Steps of k in a tile; rows of A are padded to a multiple of it.
inline constexpr int tensor_step_depth = 32;

/// What the products read, and leave for the next ones: rows of A of this step and of the next,
/// those of the product with the last gate (reset_before), and R [units, gates, `units`], whose
/// last extent is padded.
struct tensor_operands {
    float *now, *next, *of_last;
    int pitch, last_pitch;
    const float* weights;
    int units;
    bool whole; ///< not rounded: tf32x3 needs both parts

    __device__ float rounded(float x) const { return whole ? x : from_bits(to_tf32(x)); }
    template <int Phase>
    __device__ const float* row_of_a(int sample) const {
        return Phase == 1 ? of_last + static_cast<std::int64_t>(sample) * last_pitch
                          : now + static_cast<std::int64_t>(sample) * pitch;
    }
};

template <class Cell, int Phase_>
struct tensor_forward_step : recurrent_forward_step<Cell, float, Phase_> {
    using base = recurrent_forward_step<Cell, float, Phase_>;
    static constexpr int Phase = Phase_;
    static constexpr bool b_along_k = false;
    tensor_operands o;

    tensor_forward_step(const recurrent_shape& shape, const recurrent_forward_operands<float>& operands, int step,
                        const tensor_operands& rows)
        : base(shape, operands, step, 8 * base::gates), o(rows) {}

    /// R is read down its columns: the distance from one row to the next.
    __device__ std::int64_t line_of_b() const { return static_cast<std::int64_t>(Cell::gates) * o.units; }
    /// The offset of a column in a row of R, or -1.
    __device__ int column_of_b(int n) const {
        const int unit = n / (8 * base::gates) * 8 + n % 8, gate = n / 8 % base::gates;
        return unit < this->s.units ? (phase_gates<Cell, Phase>::first + gate) * o.units + unit : -1;
    }
    __device__ void finish(const typename base::inputs& in, int sample, int unit,
                           const float (&sums)[base::gates]) const {
        base::finish(in, sample, unit, sums, [&](float value) {
            if constexpr (base::makes_reset)
                o.of_last[static_cast<std::int64_t>(sample) * o.last_pitch + unit] = o.rounded(value);
            else
                o.next[static_cast<std::int64_t>(sample) * o.pitch + unit] = o.rounded(value);
        });
    }
};

template <class Cell, int Phase_>
struct tensor_backward_step : recurrent_backward_step<Cell, float, Phase_> {
    using base = recurrent_backward_step<Cell, float, Phase_>;
    static constexpr int Phase = Phase_, gates = 1; ///< sums per unit
    static constexpr bool b_along_k = true;
    tensor_operands o;

    tensor_backward_step(const recurrent_shape& shape, const recurrent_backward_operands<float>& operands, int step,
                         const tensor_operands& rows)
        : base(shape, operands, step), o(rows) {
        if (this->k > 0) this->k = base::gates * o.units;
    }

    /// R is read along its rows: the distance from one row to the next.
    __device__ std::int64_t line_of_b() const { return static_cast<std::int64_t>(Cell::gates) * o.units; }
    __device__ int column_of_b(int) const { return base::first_gate * o.units; }
    __device__ void finish(const typename base::inputs& in, int sample, int unit, const float (&sums)[1]) const {
        base::finish(in, sample, unit, sums, [&](int gate, float value) {
            if (Cell::reset_before && gate == Cell::gates - 1)
                o.of_last[static_cast<std::int64_t>(sample) * o.last_pitch + unit] = o.rounded(value);
            else
                o.next[static_cast<std::int64_t>(sample) * o.pitch + gate * o.units + unit] = o.rounded(value);
        });
    }
};

/// Copies a thread's part of the tiles of A, one after the other along k. Nothing is copied for
/// samples beyond the batch, since nothing computed from them is kept.
template <class Problem, class Operand>
class copied_states {
    using walk = typename Operand::walk;

public:
    __device__ copied_states(const Problem& problem, int thread, int first)
        : at_(problem.o.template row_of_a<Problem::Phase>(first + walk::line(thread, 0)) + walk::step(thread, 0)),
          apart_(walk::apart * (Problem::Phase == 1 ? problem.o.last_pitch : problem.o.pitch)),
          lines_(problem.m - first - walk::line(thread, 0)) {}
    __device__ void load(int thread, float* to) {
        TG_UNROLL
        for (int i = 0; i < walk::each; ++i)
            if (i * walk::apart < lines_) copy_async<16>(to + Operand::copied_to(thread, i), at_ + i * apart_, true);
        at_ += Operand::depth;
    }

private:
    const float* at_;
    std::int64_t apart_;
    int lines_; ///< samples from the thread's first on
};
/// Copies a thread's part of R, whose lines are columns or rows of it.
template <class Problem, class Operand>
class copied_weights {
    using walk = typename Operand::walk;
    static constexpr bool along_k = Problem::b_along_k;

public:
    __device__ copied_weights(const Problem& problem, int thread, int first)
        : step_(walk::step(thread, 0)), apart_(problem.line_of_b() * (along_k ? walk::apart : Operand::depth)) {
        if constexpr (along_k) {
            const int line = first + walk::line(thread, 0);
            at_ = problem.o.weights + line * problem.line_of_b() + problem.column_of_b(0) + step_;
            columns_[0] = problem.s.units - line;
        } else {
            at_ = problem.o.weights + step_ * problem.line_of_b();
            TG_UNROLL
            for (int i = 0; i < walk::each; ++i) columns_[i] = problem.column_of_b(first + walk::line(thread, i));
        }
    }
    __device__ void load(const Problem& problem, int thread, float* to) {
        const bool inside = step_ < problem.k;
        TG_UNROLL
        for (int i = 0; i < walk::each; ++i) {
            if (!walk::mine(thread, i)) continue;
            float* const copy = to + Operand::copied_to(thread, i);
            if constexpr (along_k)
                copy_async<16>(copy, at_ + i * apart_, inside && i * walk::apart < columns_[0]);
            else
                copy_async<16>(copy, at_ + columns_[i], inside && columns_[i] >= 0);
        }
        step_ += Operand::depth;
        at_ += along_k ? Operand::depth : apart_;
    }

private:
    const float* at_;
    int step_; ///< of the thread, in k
    std::int64_t apart_;
    int columns_[along_k ? 1 : walk::each]; ///< or the number of units from the thread's first on
};

template <class Problem, class Tile>
struct tensor_step_parts {
    using of_a = staged_operand<Tile, float, Tile::BM, true, 4>;
    using of_b = staged_operand<Tile, float, Tile::BN, Problem::b_along_k, 4>;
    static constexpr int stage = of_a::size + of_b::size;
    static constexpr int sums_pitch = Tile::BN + 8; ///< four rows of pairs in sequence use all banks
    static_assert(sums_pitch % 16 == 8 && Tile::BN / Tile::WN % (8 * Problem::gates) == 0);
    static constexpr int bytes =
        4 * (Tile::Stages * stage > Tile::BM * sums_pitch ? Tile::Stages * stage : Tile::BM * sums_pitch);
};

/// Grid: x tiles of samples, y tiles of columns. Dynamic shared memory: tensor_step_parts::bytes.
template <class Problem, class Tile, tensor_precision Precision>
__global__ void __launch_bounds__(Tile::threads, 1) tensor_step(Problem problem) {
    using parts = tensor_step_parts<Problem, Tile>;
    using operand_a = typename parts::of_a;
    using operand_b = typename parts::of_b;
    constexpr int depth = operand_a::depth, Stages = Tile::Stages, gates = Problem::gates;
    static_assert(depth == tensor_step_depth);
    TG_DYNAMIC_SHARED(float, shared);

    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const int begin_m = static_cast<int>(blockIdx.x) * Tile::BM, begin_n = static_cast<int>(blockIdx.y) * Tile::BN;
    copied_states<Problem, operand_a> rows(problem, thread, begin_m);
    copied_weights<Problem, operand_b> weights(problem, thread, begin_n);
    const auto load = [&](int stage) {
        float* const to = shared + stage * parts::stage;
        rows.load(thread, to);
        weights.load(problem, thread, to + operand_a::size);
    };

    const int warp_m = warp / Tile::WN * (Tile::rows * 16), warp_n = warp % Tile::WN * (Tile::columns * 8);
    const fragment_reader<operand_a, float, true> read_a(warp_m, lane, false);
    const fragment_reader<operand_b, float, Problem::b_along_k> read_b(warp_n, lane, true);
    float sum[Tile::rows][Tile::columns][4], total[Tile::rows][Tile::columns][4]{};
    const auto end_chain = [&] {
        TG_UNROLL
        for (int r = 0; r < Tile::rows; ++r) TG_UNROLL
        for (int c = 0; c < Tile::columns; ++c) TG_UNROLL
        for (int i = 0; i < 4; ++i) total[r][c][i] += sum[r][c][i], sum[r][c][i] = 0;
    };
    const int tiles = (problem.k + depth - 1) / depth;
    for (int i = 0; i < Stages - 1; ++i) {
        if (i < tiles) load(i);
        commit_copies(); // empty groups too, so that counting groups counts stages
    }
    int stage = 0, left = longest_chain / depth;
    TG_UNROLL
    for (int r = 0; r < Tile::rows; ++r) TG_UNROLL
    for (int c = 0; c < Tile::columns; ++c) TG_UNROLL
    for (int i = 0; i < 4; ++i) sum[r][c][i] = 0;
    TG_ROLLED
    for (int tile = 0; tile < tiles; ++tile) {
        wait_copies<Stages - 2>();
        __syncthreads();
        if (tile + Stages - 1 < tiles) load(stage == 0 ? Stages - 1 : stage - 1);
        commit_copies();
        const float* const a = shared + stage * parts::stage;
        multiply_tiles<Tile, Precision, Precision == tensor_precision::tf32x3>(sum, read_a, a, read_b,
                                                                               a + operand_a::size);
        stage = stage + 1 == Stages ? 0 : stage + 1;
        if (--left == 0) {
            end_chain();
            left = longest_chain / depth;
        }
    }
    end_chain();

    __syncthreads();
    TG_UNROLL
    for (int r = 0; r < 2 * Tile::rows; ++r) TG_UNROLL
    for (int c = 0; c < Tile::columns; ++c) {
        float* const to = shared + (warp_m + r / 2 * 16 + lane / 4 + r % 2 * 8) * parts::sums_pitch + warp_n + c * 8;
        *reinterpret_cast<pack<float, 2>*>(to + 2 * (lane % 4)) = {total[r / 2][c][r % 2 * 2],
                                                                   total[r / 2][c][r % 2 * 2 + 1]};
    }
    __syncthreads();
    constexpr int groups = Tile::BN / (8 * gates), at_once = 4, pairs = Tile::BM * groups * 8 / Tile::threads;
    static_assert(pairs % at_once == 0);
    TG_ROLLED
    for (int first = 0; first < pairs; first += at_once) {
        typename Problem::inputs in[at_once];
        int samples[at_once], units[at_once];
        TG_UNROLL
        for (int i = 0; i < at_once; ++i) {
            const int place = (first + i) * (Tile::threads / 8) + thread / 8;
            samples[i] = begin_m + place % Tile::BM;
            units[i] = begin_n / gates + place / Tile::BM * 8 + thread % 8;
            if (samples[i] < problem.m && units[i] < problem.s.units) in[i] = problem.fetch(samples[i], units[i]);
        }
        TG_UNROLL
        for (int i = 0; i < at_once; ++i) {
            if (samples[i] >= problem.m || units[i] >= problem.s.units) continue;
            const float* const at = shared + (samples[i] - begin_m) * parts::sums_pitch +
                                    (units[i] - begin_n / gates) / 8 * (8 * gates) + thread % 8;
            float sums[gates];
            TG_UNROLL
            for (int gate = 0; gate < gates; ++gate) sums[gate] = at[gate * 8];
            problem.finish(in[i], samples[i], units[i], sums);
        }
    }
}

/// The operands of the first step's products: h0 d, followed by zeros; zeros in all other `rows`.
/// The pitch is a multiple of 32.
template <class T>
__global__ void begin_tensor_steps(recurrent_shape s, const T* h0, const T* dropped, tensor_operands o,
                                   std::int64_t rows) {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * o.pitch;
         i += stride) {
        const auto row = i / o.pitch;
        const auto unit = static_cast<int>(i - row * o.pitch);
        T x = T(0);
        if (h0 != nullptr && row < s.batch && unit < s.units) {
            const std::int64_t state = s.state(static_cast<int>(row), unit);
            x = o.rounded(h0[state] * value_or_one(dropped, state));
        }
        o.now[i] = x;
    }
}

/// Copies rows of `units` to rows of `padded`, filled with zeros.
template <class T>
__global__ void pad_units(const T* from, T* to, std::int64_t rows, int units, int padded) {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * padded;
         i += stride) {
        const auto row = i / padded;
        const auto unit = static_cast<int>(i - row * padded);
        to[i] = unit < units ? from[row * units + unit] : T(0);
    }
}

} // namespace tapegraph::cuda::kernels
