#pragma once

#include <tapegraph/cuda/kernels/recurrent_cell.cuh>
#include <tapegraph/cuda/kernels/synchronization.cuh>

/// The parts of kernels that run all steps of a recurrent layer in one launch with R resident on
/// the chip.
///
/// A "part" of the batch is processed by `unit_blocks` blocks, each of which owns some units. A
/// warp owns eight columns: forward all columns of some units, backward one column of eight units.
/// Its lanes share k, each with its weights in registers (the first Resident of its k) and in
/// shared memory (the others), and keep 4 by 8 sums for a tile of four samples; the lanes then
/// exchange sums so that lane 8 r + c ends up with that of sample r and column c. Samples of a part
/// beyond four form further tiles.
/// The operand, which every block needs from the step before, is [4 samples, segments, padded units]
/// in shared memory: forward h (one segment), backward dz (one per column), twice, so that one
/// barrier per step suffices. The exchange brings it there. In a cluster samples are eight elements
/// further apart, so that the units of four samples that a warp writes into another block end in
/// different banks there (tools/bank_conflicts: one cycle, not four).

namespace tapegraph::cuda::kernels {

inline constexpr int resident_rows = 4, resident_columns = 8; ///< of a warp's tile: in the end one sum per lane

/// Whether these kernels can run a cell: it needs one product per step, and a "slot" in a warp's
/// tile for each of its columns.
template <class Cell>
inline constexpr bool runs_resident = !Cell::reset_before && (Cell::columns == 1 || Cell::columns == 4);

/// The gate whose product with R belongs to a slot, or -1 for none.
template <class Cell>
__host__ __device__ constexpr int gate_of_slot(int slot) {
    for (int gate = 0; gate < Cell::gates; ++gate)
        if (Cell::product_column(gate) == slot) return gate;
    return -1;
}
template <class Cell>
__host__ __device__ constexpr bool has_product(int slot) {
    return Cell::columns == Cell::gates || gate_of_slot<Cell>(slot) >= 0;
}
/// The number of slots that have one.
template <class Cell>
inline constexpr int products = [] {
    int count = 0;
    for (int slot = 0; slot < Cell::columns; ++slot) count += has_product<Cell>(slot) ? 1 : 0;
    return count;
}();
/// A bit for each of a warp's eight forward columns whose slot has none.
template <class Cell>
inline constexpr unsigned columns_without_product = [] {
    unsigned bits = 0;
    for (int c = 0; c < resident_columns; ++c) bits |= has_product<Cell>(c % Cell::columns) ? 0u : 1u << c;
    return bits;
}();
/// Whether the memory after a step is part of its derivative: c is, and h where nothing else is
/// kept.
template <class Cell>
inline constexpr bool needs_memory = Cell::states == 2 || Cell::kept == 0;
/// The size of backward's exchange area in shared memory, in elements per warp.
template <class Cell>
inline constexpr int resident_meeting = Cell::columns == 1 ? 0 : 2 * 3 * 32;

/// v[i] by selections: an index would move v into memory.
template <class T, int N>
__device__ T one_of(const T (&v)[N], int i) {
    T x = v[N - 1];
    TG_UNROLL
    for (int j = N - 2; j >= 0; --j) x = i == j ? v[j] : x;
    return x;
}

struct recurrent_split {
    int unit_blocks; ///< blocks that share a part of the batch: neighbours along x
    int rows;        ///< samples of a part
    int padded;      ///< units of an operand's segment
};

/// The number of elements of an operand that a lane reads at once.
template <class T>
inline constexpr int resident_vector = 8 / static_cast<int>(sizeof(T));

/// The number of units that an operand's segment is padded to.
template <class T>
constexpr int resident_padded_units(int units, int resident) {
    const int span = 32 * resident_vector<T>, padded = (units + span - 1) / span * span;
    return padded > 32 * resident ? padded : 32 * resident;
}

/// The number of elements from one sample of an operand to the next.
__host__ __device__ constexpr int resident_pitch(bool in_cluster, int segments, int padded) {
    return segments * padded + (in_cluster ? 8 : 0);
}

/// Bytes of dynamic shared memory: two operands, the weights that are not in registers, backward's
/// exchange area.
template <class Cell, class T>
constexpr std::size_t resident_shared_bytes(int units, int resident, int warps, bool backward, bool in_cluster) {
    const auto padded = static_cast<std::size_t>(resident_padded_units<T>(units, resident));
    const auto all_warps = static_cast<std::size_t>(warps);
    const std::size_t operands =
        2 * resident_rows *
        static_cast<std::size_t>(resident_pitch(in_cluster, backward ? Cell::columns : 1, static_cast<int>(padded)));
    const std::size_t weights = (padded - 32 * static_cast<std::size_t>(resident)) * resident_columns * all_warps;
    return sizeof(T) * (operands + weights + (backward ? resident_meeting<Cell> * all_warps : 0));
}

/// The weights of a lane. `Zeros` has a bit for each of the columns whose weights are all 0.
template <class T, int Resident, unsigned Zeros = 0>
class recurrent_weights {
    static constexpr int vector = resident_vector<T>, pack = 16 / static_cast<int>(sizeof(T)),
                         packs = resident_columns / pack;
    static_assert(Resident % vector == 0);
    struct alignas(16) packed {
        T v[pack];
    };
    struct alignas(8) pair {
        T v[vector];
    };

public:
    /// `weight(k, column)` returns one of this warp's weights; `shared` has room for those of all
    /// warps.
    template <class F>
    __device__ recurrent_weights(T* shared, int padded, int warp, int lane, const F& weight)
        : rest_(padded / 32 - Resident) {
        in_shared_ = reinterpret_cast<packed*>(shared) + static_cast<std::size_t>(warp) * rest_ * packs * 32 + lane;
        TG_UNROLL
        for (int i = 0; i < Resident; ++i) TG_UNROLL
        for (int c = 0; c < resident_columns; ++c)
            if (!zero(c)) in_registers_[i][c] = weight(place(i, lane), c);
        for (int i = 0; i < rest_; ++i) TG_UNROLL
        for (int q = 0; q < packs; ++q) {
            packed x;
            TG_UNROLL
            for (int j = 0; j < pack; ++j) x.v[j] = weight(place_in_shared(i, lane), q * pack + j);
            in_shared_[(i * packs + q) * 32] = x; // read by this lane only, so no barrier is needed
        }
    }

    /// sums[8 r + c] = sum over this lane's k of operand[r * pitch + k] * weight(k, c)
    __device__ void multiply(const T* operand, int pitch, T (&sums)[32]) const {
        const int lane = computed_here(static_cast<int>(threadIdx.x)) % 32; // not kept, to save registers
        TG_UNROLL
        for (T& sum : sums) sum = T(0);
        TG_UNROLL
        for (int i = 0; i < Resident; i += vector) {
            pair a[resident_rows];
            fetch(operand, pitch, i, lane, a);
            TG_UNROLL
            for (int j = 0; j < vector; ++j) add(a, j, in_registers_[i + j], sums);
        }
        TG_ROLLED
        for (int i = 0; i < rest_; ++i) { // one k at a time: the weights leave no registers for pairs
            T a[resident_rows];
            TG_UNROLL
            for (int r = 0; r < resident_rows; ++r) a[r] = operand[r * pitch + place_in_shared(i, lane)];
            TG_UNROLL
            for (int q = 0; q < packs; ++q) {
                const packed x = in_shared_[(i * packs + q) * 32];
                TG_UNROLL
                for (int r = 0; r < resident_rows; ++r) TG_UNROLL
                for (int e = 0; e < pack; ++e) {
                    if (zero(q * pack + e)) continue;
                    T& sum = sums[r * resident_columns + q * pack + e];
                    sum = multiply_add(a[r], x.v[e], sum);
                }
            }
        }
    }

private:
    __device__ static constexpr bool zero(int column) { return (Zeros >> column & 1) != 0; }
    /// The k of this lane's i-th weight in registers: pairs of neighbours, lane by lane; then the
    /// same in shared memory.
    __device__ static int place(int i, int lane) { return (i / vector * 32 + lane) * vector + i % vector; }
    __device__ static int place_in_shared(int i, int lane) { return (Resident + i) * 32 + lane; }

    __device__ static void fetch(const T* operand, int pitch, int i, int lane, pair (&a)[resident_rows]) {
        TG_UNROLL
        for (int r = 0; r < resident_rows; ++r)
            a[r] = *reinterpret_cast<const pair*>(operand + r * pitch + place(i, lane));
    }
    __device__ static void add(const pair (&a)[resident_rows], int j, const T (&w)[resident_columns], T (&sums)[32]) {
        TG_UNROLL
        for (int r = 0; r < resident_rows; ++r) TG_UNROLL
        for (int c = 0; c < resident_columns; ++c)
            if (!zero(c))
                sums[r * resident_columns + c] = multiply_add(a[r].v[j], w[c], sums[r * resident_columns + c]);
    }

    int rest_; ///< this lane's k that are in shared memory
    T in_registers_[Resident][resident_columns];
    packed* in_shared_;
};

/// Returns, in lane l, the sum of all lanes' v[l]: each exchange halves what a lane is responsible
/// for. v is overwritten.
template <int Distance = 16, class T>
__device__ T sum_across_lanes(T (&v)[32], int lane) {
    const bool upper = (lane & Distance) != 0;
    TG_UNROLL
    for (int i = 0; i < Distance; ++i) {
        const T kept = upper ? v[i + Distance] : v[i], given = upper ? v[i] : v[i + Distance];
        v[i] = kept + __shfl_xor_sync(0xFFFFFFFFu, given, Distance);
    }
    if constexpr (Distance > 1)
        return sum_across_lanes<Distance / 2>(v, lane);
    else
        return v[0];
}

// Exchanges keep no state from step to step, to save registers: buffers alternate with the parity
// of `turn`, and the caller counts how many `times` it has waited.

/// The blocks of a part form a cluster: each value is sent into every block's shared memory, where
/// it is counted as it arrives. A part has one tile. Two alternating operands suffice: a block is
/// sent the operand after the next only after all its warps have sent their part of the next, so
/// after they have read this one. Hence warps that send nothing must not take part, and blocks that
/// consist of such warps are sent nothing.
template <class T, int Segments>
class cluster_exchange {
public:
    static constexpr bool one_tile = true;

    /// `blocks` is the number of blocks that have units.
    __device__ cluster_exchange(T* shared, const recurrent_shape&, const recurrent_split& split, int blocks, unsigned*)
        : operands_(shared), padded_(split.padded), blocks_(blocks) {}

    /// Initialises the first operand: first(row, segment, unit). No block sends to another before
    /// that one is initialised.
    template <class F>
    __device__ void begin(int units, const F& first) {
        const int pitch = resident_pitch(one_tile, Segments, padded_);
        for (int i = static_cast<int>(threadIdx.x); i < Segments * padded_; i += static_cast<int>(blockDim.x)) TG_UNROLL
        for (int r = 0; r < resident_rows; ++r) {
            const int unit = i % padded_;
            operands_[r * pitch + i] = unit < units ? first(r, i / padded_, unit) : T(0);
            operands_[(resident_rows + r) * pitch + i] = T(0);
        }
        if (threadIdx.x == 0) begin_arrivals(arrived(0)), begin_arrivals(arrived(1));
        arrive_at_cluster();
        wait_for_cluster();
    }
    template <class F>
    __device__ const T* operand(int turn, int, const F&) const {
        return buffer(turn);
    }
    /// Sends part of the next operand. Of `roles` threads that have the same value, each sends it
    /// to its share of the blocks.
    __device__ void publish(int turn, int row, int segment, int unit, T value, int role, int roles) const {
        T* const own = buffer(turn + 1) + row * resident_pitch(one_tile, Segments, padded_) + segment * padded_ + unit;
        for (int block = role; block < blocks_; block += roles)
            send_to_cluster(own, static_cast<unsigned>(block), value, arrived(turn + 1));
    }
    /// `elements` is the number of elements of an operand that all blocks together send.
    __device__ void arrive(int turn, int elements) const {
        if (threadIdx.x == 0) expect_bytes(arrived(turn + 1), static_cast<unsigned>(elements * sizeof(T)));
    }
    __device__ void wait(int turn, int times) const {
        wait_for_arrivals(arrived(turn + 1), static_cast<unsigned>(times - 1) / 2 % 2);
    }

private:
    __device__ T* buffer(int turn) const {
        return operands_ + (turn & 1) * resident_rows * resident_pitch(one_tile, Segments, padded_);
    }
    /// The counter of an operand, which lies between its first two samples.
    __device__ arrivals* arrived(int turn) const {
        return reinterpret_cast<arrivals*>(buffer(turn) + Segments * padded_);
    }

    T* operands_;
    int padded_, blocks_;
};

/// Blocks of a part wait for each other at a counter in global memory, and read what the others
/// wrote there, so the whole grid must be resident. Counters begin with 0, one per part, 128 bytes
/// apart.
template <class T, int Segments>
class grid_exchange {
public:
    static constexpr bool one_tile = false;

    __device__ grid_exchange(T* shared, const recurrent_shape&, const recurrent_split& split, int, unsigned* counts)
        : operands_(shared),
          padded_(split.padded),
          blocks_(static_cast<unsigned>(split.unit_blocks)),
          counts_(counts) {}

    template <class F>
    __device__ void begin(int, const F&) const {}
    /// Loads a tile: from(row, segment, unit). Threads may still read the previous tile, but not
    /// the one before it.
    template <class F>
    __device__ const T* operand(int turn, int units, const F& from) const {
        const int pitch = resident_pitch(one_tile, Segments, padded_);
        T* const to = operands_ + (turn & 1) * resident_rows * pitch;
        for (int unit = static_cast<int>(threadIdx.x); unit < padded_; unit += static_cast<int>(blockDim.x)) TG_UNROLL
        for (int r = 0; r < resident_rows; ++r) TG_UNROLL
        for (int g = 0; g < Segments; ++g) to[r * pitch + g * padded_ + unit] = unit < units ? from(r, g, unit) : T(0);
        __syncthreads();
        return to;
    }
    __device__ void publish(int, int, int, int, T, int, int) const {}
    __device__ void arrive(int, int) const {
        __syncthreads();
        if (threadIdx.x == 0) add_to_count(count());
    }
    __device__ void wait(int, int times) const {
        if (threadIdx.x == 0) wait_for_count(count(), static_cast<unsigned>(times) * blocks_);
        __syncthreads();
    }

private:
    __device__ unsigned* count() const {
        return counts_ + static_cast<unsigned>(computed_here(static_cast<int>(blockIdx.x))) / blocks_ * 32;
    }

    T* operands_;
    int padded_;
    unsigned blocks_;
    unsigned* counts_; // an argument of the kernel, so that it takes no registers
};

} // namespace tapegraph::cuda::kernels
