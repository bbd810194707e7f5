#pragma once

#include <tapegraph/cuda/kernels/resident_parts.cuh>

/// All steps of an LSTM in one launch (resident_parts.cuh has the plan). Grid: unit_blocks times parts of the batch along
/// x. Dynamic shared memory: resident_shared_bytes. Registers hold 8 * Resident weights and 32 sums a thread.

namespace tapegraph::cuda::kernels {

/// Threads that a block of these kernels may have.
template <class T>
inline constexpr int resident_most_threads = sizeof(T) == 4 ? 512 : 256;

/// Where a block and a warp stand.
struct resident_place {
    int lane, warp, warps, rank, first_sample, tiles;

    __device__ resident_place(const recurrent_shape& s, const recurrent_split& split, bool one_tile)
        : lane(static_cast<int>(threadIdx.x) % 32),
          warp(static_cast<int>(threadIdx.x) / 32),
          warps(static_cast<int>(blockDim.x) / 32),
          rank(static_cast<int>(blockIdx.x) % split.unit_blocks),
          first_sample(static_cast<int>(blockIdx.x) / split.unit_blocks * split.rows) {
        const int left = s.batch - first_sample, rows = left < split.rows ? left : split.rows;
        tiles = one_tile ? 1 : (rows + resident_rows - 1) / resident_rows;
    }
};

/// What a thread computes of a tile.
struct resident_cell_place {
    int gate, unit, row, sample;
};

/// A block has 2 * warps units. Lane 8 r + 4 u + gate ends with a gate of sample r and of the warp's unit u; the four lanes
/// of a unit compute the cell together. xz of a step is fetched while the blocks wait for the step before.
template <class Cell, class T, int Resident, class Exchange>
__global__ void __launch_bounds__(resident_most_threads<T>)
    recurrent_forward_resident(recurrent_forward_operands<T> p, recurrent_shape s, recurrent_split split,
                               unsigned* counts) {
    TG_DYNAMIC_SHARED(T, shared);
    const resident_place at(s, split, Exchange::one_tile);
    const int first_unit = (at.rank * at.warps + at.warp) * 2;
    const auto here = [&](int tile) { // computed anew where it is used, for want of registers
        const int thread = computed_here(static_cast<int>(threadIdx.x)), lane = thread % 32;
        const int sample = computed_here(at.first_sample) + tile * resident_rows + lane / 8;
        return resident_cell_place{lane % 4, (at.rank * at.warps + thread / 32) * 2 + lane / 4 % 2, lane / 8, sample};
    };
    const recurrent_weights<T, Resident> weights(
        shared + 2 * resident_rows * split.padded, split.padded, at.warp, at.lane, [&](int k, int column) {
            const int u = first_unit + column / 4;
            return k < s.units && u < s.units
                       ? p.recurrent[(static_cast<std::int64_t>(k) * 4 + column % 4) * s.units + u]
                       : T(0);
        });
    Exchange exchange(shared, s, split, counts);
    exchange.begin(s.units, [&](int r, int, int u) {
        const int sample = at.first_sample + r;
        return sample < s.batch ? value_or_zero(p.h0, s.state(sample, u)) * value_or_one(p.dropped, s.state(sample, u))
                                : T(0);
    });

    T x = T(0), c = T(0);
    bool counts_step = true;
    const auto fetch = [&](int step, int tile) {
        const resident_cell_place mine = here(tile);
        const int gate = mine.gate, unit = mine.unit, sample = mine.sample;
        if (unit >= s.units || sample >= s.batch || step >= s.time) return;
        const std::int64_t line = s.line(sample, step);
        x = p.xz[(line * 4 + gate) * s.units + unit];
        counts_step = s.counts(p.mask, line);
    };
    fetch(0, 0);
    for (int step = 0; step < s.time; ++step) {
        for (int tile = 0; tile < at.tiles; ++tile) {
            const int first = computed_here(at.first_sample) + tile * resident_rows;
            const int turn = step * at.tiles + tile;
            const T* const operand = exchange.operand(turn, s.units, [&](int r, int, int u) {
                const T* const at = first + r < s.batch ? s.before(p.h, p.h0, first + r, step, u) : nullptr;
                return at == nullptr ? T(0) : load_from_others(at) * value_or_one(p.dropped, s.state(first + r, u));
            });
            T sums[32];
            weights.multiply(operand, split.padded, sums);
            const T z = x + sum_across_lanes(sums, at.lane);
            const resident_cell_place mine = here(tile);
            const int gate = mine.gate, unit = mine.unit, row = mine.row, sample = mine.sample;
            const bool live = unit < s.units && sample < s.batch;
            if (live && (!Exchange::one_tile || step == 0))
                c = value_or_zero(s.before(p.c, p.c0, sample, step, unit), 0);
            const T y = gate == 2 ? s.activations.squash(z) : s.activations.gate(z);
            const int base = at.lane & ~3;
            const T i = __shfl_sync(0xFFFFFFFFu, y, base), f = __shfl_sync(0xFFFFFFFFu, y, base + 1);
            const T g = __shfl_sync(0xFFFFFFFFu, y, base + 2), o = __shfl_sync(0xFFFFFFFFu, y, base + 3);
            auto next = Cell::step(s.activations, typename Cell::template numbers<T>{{i, f, g, o}}, c);
            if (p.mask != nullptr) { // h goes on: from the lane that wrote it, with no barrier in between
                T h = T(0);
                if (live && !counts_step && gate == 0) h = value_or_zero(s.before(p.h, p.h0, sample, step, unit), 0);
                h = __shfl_sync(0xFFFFFFFFu, h, base);
                if (!counts_step) next = {c, h};
            }
            c = next.memory;
            const bool last_step = step == s.time - 1, last_tile = tile == at.tiles - 1;
            // First what the others wait for; the rest while they do.
            const std::int64_t line = s.line(sample, step);
            if (live && !Exchange::one_tile && gate == 0) p.h.data[s.row(p.h, sample, step) + unit] = next.h;
            if (Exchange::one_tile && live && !last_step)
                exchange.publish(turn, row, 0, unit, next.h * value_or_one(p.dropped, s.state(sample, unit)), gate, 4);
            if (last_tile && !last_step) exchange.arrive();
            if (live) {
                if (Exchange::one_tile && gate == 0) p.h.data[s.row(p.h, sample, step) + unit] = next.h;
                if (gate == 1) p.c.data[s.row(p.c, sample, step) + unit] = next.memory;
                if (p.gates.data != nullptr) p.gates.data[(line * 4 + gate) * s.units + unit] = counts_step ? y : T(0);
            }
            fetch(last_tile ? step + 1 : step, last_tile ? 0 : tile + 1);
        }
        if (step < s.time - 1) exchange.wait(step + 1);
    }
}

/// Four warps a group of eight units, one a gate; a block has 2 * warps units. Lane 8 r + u has sample r and unit u in all
/// four warps: each sums dz R^T over its own gate; the four meet in shared memory, twice [3 values, 4 warps, 32], where each
/// brings its sum, its gate and one of the states; and each computes the whole gradient of the cell and passes on its own
/// gate's dz. A step more than there are writes the first states' gradients.
template <class Cell, class T, int Resident, class Exchange>
__global__ void __launch_bounds__(resident_most_threads<T>)
    recurrent_backward_resident(recurrent_backward_operands<T> p, recurrent_shape s, recurrent_split split,
                                unsigned* counts) {
    TG_DYNAMIC_SHARED(T, shared);
    const resident_place at(s, split, Exchange::one_tile);
    const int warp_gate = at.warp % 4, first_unit = (at.rank * (at.warps / 4) + at.warp / 4) * resident_columns;
    const auto here = [&](int tile) { // computed anew where it is used, for want of registers
        const int thread = computed_here(static_cast<int>(threadIdx.x)), lane = thread % 32, warp = thread / 32;
        const int sample = computed_here(at.first_sample) + tile * resident_rows + lane / resident_columns;
        return resident_cell_place{warp % 4,
                                   (at.rank * (at.warps / 4) + warp / 4) * resident_columns + lane % resident_columns,
                                   lane / resident_columns, sample};
    };
    const int operand_size = resident_rows * 4 * split.padded;
    const recurrent_weights<T, Resident> weights(
        shared + 2 * operand_size + 2 * 3 * 32 * at.warps, split.padded, at.warp, at.lane, [&](int k, int column) {
            const int u = first_unit + column;
            return k < s.units && u < s.units
                       ? p.recurrent[(static_cast<std::int64_t>(u) * 4 + warp_gate) * s.units + k]
                       : T(0);
        });
    Exchange exchange(shared, s, split, counts);
    exchange.begin(s.units, [](int, int, int) { return T(0); });

    const auto met_of = [&](int turn, const resident_cell_place& mine) {
        const int lane = mine.row * resident_columns + mine.unit % resident_columns,
                  group = mine.unit / resident_columns - at.rank * (at.warps / 4);
        return shared + 2 * operand_size + ((turn & 1) * at.warps + group * 4) * 3 * 32 + lane;
    };
    T dh_after = T(0), dc_after = T(0); // of the states after the step, apart from what goes through its gates
    // Each of the four warps fetches its own gate and one of c, c before, dh and the factor, for all of them.
    T own_gate = T(0), own_state = T(0);
    bool counts_step = false;
    const auto fetch = [&](int step, int tile) {
        const resident_cell_place mine = here(tile);
        const int gate = mine.gate, unit = mine.unit, sample = mine.sample;
        own_gate = own_state = T(0), counts_step = false;
        if (unit >= s.units || sample >= s.batch || step < -1) return;
        const std::int64_t line = s.line(sample, step);
        if (gate == 3) own_state = value_or_one(p.dropped, s.state(sample, unit));
        if (step < 0) {
            if (gate == 2) own_state = value_or_zero(p.dh_first.data, s.row(p.dh_first, sample, 0) + unit);
            return;
        }
        own_gate = p.gates[(line * 4 + gate) * s.units + unit];
        if (gate == 0) own_state = p.memory[line * s.units + unit];
        if (gate == 1) own_state = s.memory_before(p.memory, p.memory0, sample, step, unit);
        if (gate == 2 && step < p.dh_steps) own_state = value_or_zero(p.dh.data, s.row(p.dh, sample, step) + unit);
        counts_step = s.counts(p.mask, line);
    };
    fetch(s.time - 1, 0);
    for (int step = s.time - 1; step >= -1; --step) {
        for (int tile = 0; tile < at.tiles; ++tile) {
            const int first = computed_here(at.first_sample) + tile * resident_rows;
            const bool last_step = step == s.time - 1;
            const bool last_tile = tile == at.tiles - 1;
            const int turn = step * at.tiles + tile;
            {
                const resident_cell_place mine = here(tile);
                T* const met = met_of(turn, mine);
                met[(4 + mine.gate) * 32] = own_gate, met[(8 + mine.gate) * 32] = own_state;
            }
            T sum = T(0);
            if (!last_step) {
                const T* const operand = exchange.operand(turn, s.units, [&](int r, int i, int u) {
                    if (first + r >= s.batch) return T(0);
                    const std::int64_t of_gate = static_cast<std::int64_t>(i) * s.units;
                    return load_from_others(p.dz.data + s.row(p.dz, first + r, step + 1, 4) + of_gate + u);
                });
                T sums[32];
                weights.multiply(operand + here(tile).gate * split.padded, 4 * split.padded, sums);
                sum = sum_across_lanes(sums, at.lane);
            }
            const resident_cell_place mine = here(tile);
            const int gate = mine.gate, unit = mine.unit, row = mine.row, sample = mine.sample;
            const bool live = unit < s.units && sample < s.batch;
            const std::int64_t state = s.state(sample, unit);
            T* const met = met_of(turn, mine);
            met[gate * 32] = sum;
            if (live && last_step) {
                dh_after = value_or_zero(p.dh_last.data, s.row(p.dh_last, sample, 0) + unit);
                dc_after = value_or_zero(p.dc_last.data, s.row(p.dc_last, sample, 0) + unit);
            } else if (live && !Exchange::one_tile) {
                dh_after = p.carried_dh[state], dc_after = p.carried_dc[state];
            }
            __syncthreads();
            const T dh = dh_after + met[10 * 32] + met[11 * 32] * ((met[0] + met[32]) + (met[64] + met[96]));
            if (step < 0) {
                fetch(last_tile ? -2 : -1, tile + 1);
                if (live && gate == 0 && p.dh0.data != nullptr) p.dh0.data[s.row(p.dh0, sample, 0) + unit] = dh;
                if (live && gate == 1 && p.dc0.data != nullptr) p.dc0.data[s.row(p.dc0, sample, 0) + unit] = dc_after;
                continue;
            }
            T dz = T(0);
            if (counts_step) {
                const auto d = Cell::backward(
                    s.activations,
                    typename Cell::template numbers<T>{{met[4 * 32], met[5 * 32], met[6 * 32], met[7 * 32]}},
                    met[9 * 32], met[8 * 32], dh, dc_after);
                dz = gate == 0 ? d.v[0] : gate == 1 ? d.v[1] : gate == 2 ? d.v[2] : d.v[3];
                dh_after = T(0), dc_after = d.passed;
            } else {
                dh_after = dh;
            }
            T* const to = p.dz.data + s.row(p.dz, sample, step, 4) + static_cast<std::int64_t>(gate) * s.units + unit;
            if (live && !Exchange::one_tile) *to = dz;
            if (live) exchange.publish(turn, row, gate, unit, dz, 0, 1);
            if (last_tile) exchange.arrive();
            if (live && Exchange::one_tile) *to = dz;
            if (live && !Exchange::one_tile && gate == 0)
                p.carried_dh[state] = dh_after, p.carried_dc[state] = dc_after;
            fetch(last_tile ? step - 1 : step, last_tile ? 0 : tile + 1);
        }
        if (step >= 0) exchange.wait(s.time - step);
    }
}

} // namespace tapegraph::cuda::kernels
