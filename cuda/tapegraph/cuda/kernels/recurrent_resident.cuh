#pragma once

#include <tapegraph/cuda/kernels/resident_parts.cuh>

/// Runs all steps of a recurrent layer in one launch (resident_parts.cuh explains the plan). Grid:
/// unit_blocks times parts of the batch along x. Dynamic shared memory: resident_shared_bytes.
/// Registers hold 8 * Resident weights and 32 sums per thread.

namespace tapegraph::cuda::kernels {

/// The most threads that a block of these kernels may have.
template <class T>
inline constexpr int resident_most_threads = sizeof(T) == 4 ? 512 : 256;

/// The position of a block and a warp.
struct resident_place {
    int lane, warp, warps, rank, first_sample;

    __device__ explicit resident_place(const recurrent_split& split)
        : lane(static_cast<int>(threadIdx.x) % 32),
          warp(static_cast<int>(threadIdx.x) / 32),
          warps(static_cast<int>(blockDim.x) / 32),
          rank(static_cast<int>(blockIdx.x) % split.unit_blocks),
          first_sample(static_cast<int>(blockIdx.x) / split.unit_blocks * split.rows) {}

    /// The index of a part's last tile; recomputed at each use to save registers.
    __device__ int last_tile(const recurrent_shape& s, const recurrent_split& split) const {
        const int left = s.batch - computed_here(first_sample), rows = left < split.rows ? left : split.rows;
        return (rows - 1) / resident_rows;
    }
    /// The number of samples of a part with one tile.
    __device__ int samples(const recurrent_shape& s) const {
        const int left = s.batch - first_sample;
        return left < resident_rows ? left : resident_rows;
    }
};

/// The unit and sample that a thread computes in a tile.
struct resident_cell_place {
    int slot, unit, row, sample;
};

/// A warp has 8 / slots units. Lane 8 r + slots u + slot ends up with one column of sample r and of
/// the warp's unit u; the lanes of a unit compute the cell together. xz of a step is fetched while
/// the blocks wait for the step before.
template <class Cell, class T, int Resident, class Exchange>
__global__ void __launch_bounds__(resident_most_threads<T>, 1)
    recurrent_forward_resident(recurrent_forward_operands<T> p, recurrent_shape s, recurrent_split split,
                               unsigned* counts) {
    TG_DYNAMIC_SHARED(T, shared);
    const resident_place at(split);
    constexpr int slots = Cell::columns, warp_units = resident_columns / slots;
    const int first_unit = (at.rank * at.warps + at.warp) * warp_units;
    const auto here = [&](int tile) { // recomputed at each use to save registers
        const int thread = computed_here(static_cast<int>(threadIdx.x)), lane = thread % 32;
        const int sample = computed_here(at.first_sample) + tile * resident_rows + lane / resident_columns;
        return resident_cell_place{lane % slots,
                                   (at.rank * at.warps + thread / 32) * warp_units + lane / slots % warp_units,
                                   lane / resident_columns, sample};
    };
    const recurrent_weights<T, Resident, columns_without_product<Cell>> weights(
        shared + 2 * resident_rows * resident_pitch(Exchange::one_tile, 1, split.padded), split.padded, at.warp,
        at.lane, [&](int k, int column) {
            const int u = first_unit + column / slots, gate = gate_of_slot<Cell>(column % slots);
            return k < s.units && u < s.units && gate >= 0
                       ? p.recurrent[(static_cast<std::int64_t>(k) * Cell::gates + gate) * s.units + u]
                       : T(0);
        });
    const int block_units = at.warps * warp_units;
    Exchange exchange(shared, s, split, (s.units + block_units - 1) / block_units, counts);
    exchange.begin(s.units, [&](int r, int, int u) {
        const int sample = at.first_sample + r;
        return sample < s.batch ? value_or_zero(p.h0, s.state(sample, u)) * value_or_one(p.dropped, s.state(sample, u))
                                : T(0);
    });
    if (Exchange::one_tile && first_unit >= s.units) return; // it has nothing to send

    T x = T(0), memory = T(0);
    bool counts_step = true;
    const auto fetch = [&](int step, int tile) {
        const resident_cell_place mine = here(tile);
        const int slot = mine.slot, unit = mine.unit, sample = mine.sample;
        if (unit >= s.units || sample >= s.batch || step >= s.time) return;
        const std::int64_t line = s.line(sample, step);
        if (slots == Cell::gates || slot < Cell::gates)
            x = p.xz[(line * Cell::gates + slot) * s.units + unit];
        else
            x = value_or_zero(p.bias, unit);
        counts_step = s.counts(p.mask, line);
    };
    fetch(0, 0);
    for (int step = 0; step < s.time; ++step) {
        for (int tile = 0, last = 0; tile <= last; ++tile) {
            last = Exchange::one_tile ? 0 : at.last_tile(s, split);
            const int first = computed_here(at.first_sample) + tile * resident_rows;
            const int turn = step * (last + 1) + tile;
            const T* const operand = exchange.operand(turn, s.units, [&](int r, int, int u) {
                const T* const h = first + r < s.batch ? s.before(p.h, p.h0, first + r, step, u) : nullptr;
                return h == nullptr ? T(0) : load_from_others(h) * value_or_one(p.dropped, s.state(first + r, u));
            });
            T sums[32];
            weights.multiply(operand, resident_pitch(Exchange::one_tile, 1, split.padded), sums);
            const T z = x + sum_across_lanes(sums, computed_here(static_cast<int>(threadIdx.x)) % 32);
            const resident_cell_place mine = here(tile);
            const int slot = mine.slot, unit = mine.unit, row = mine.row, sample = mine.sample;
            const bool live = unit < s.units && sample < s.batch;
            if (live && (!Exchange::one_tile || step == 0)) memory = memory_before<Cell>(s, p, sample, step, unit);
            const T y = Cell::column_value(s.activations, slot, z);
            const int base = computed_here(static_cast<int>(threadIdx.x)) % 32 & ~(slots - 1);
            typename Cell::template numbers<T> of_columns;
            TG_UNROLL
            for (int i = 0; i < slots; ++i) of_columns.v[i] = slots == 1 ? y : __shfl_sync(0xFFFFFFFFu, y, base + i);
            const auto values = Cell::joined(s.activations, of_columns);
            auto next = Cell::step(s.activations, values, memory);
            if (Cell::states == 1) {
                if (!counts_step) next = {memory, memory};
            } else if (p.mask != nullptr) { // h is passed on by the lane that wrote it, with no barrier in between
                T h = T(0);
                if (live && !counts_step && slot == 0) h = value_or_zero(s.before(p.h, p.h0, sample, step, unit), 0);
                h = __shfl_sync(0xFFFFFFFFu, h, base);
                if (!counts_step) next = {memory, h};
            }
            memory = next.memory;
            const bool last_step = step == s.time - 1, last_tile = tile == last;
            // First what the others wait for; the rest while they do.
            const std::int64_t line = s.line(sample, step);
            if (live && !Exchange::one_tile && slot == 0)
                store_for_others(p.h.data + s.row(p.h, sample, step) + unit, next.h);
            if (Exchange::one_tile && live && !last_step)
                exchange.publish(turn, row, 0, unit, next.h * value_or_one(p.dropped, s.state(sample, unit)), slot,
                                 slots);
            if (last_tile && !last_step) exchange.arrive(turn, at.samples(s) * s.units);
            if (live) {
                if (Exchange::one_tile && slot == 0) p.h.data[s.row(p.h, sample, step) + unit] = next.h;
                if (Cell::states == 2 && slot == 1) p.c.data[s.row(p.c, sample, step) + unit] = next.memory;
                if (Cell::kept > 0 && p.gates.data != nullptr) {
                    const T own = slots == Cell::gates ? y : one_of(values.v, slot);
                    p.gates.data[(line * Cell::kept + slot) * s.units + unit] = counts_step ? own : T(0);
                }
            }
            fetch(last_tile ? step + 1 : step, last_tile ? 0 : tile + 1);
        }
        if (step < s.time - 1) exchange.wait(step, step + 1);
    }
}

/// A group of eight units has as many warps as there are slots; a block has 8 / slots units per
/// warp. Lane 8 r + u has sample r and unit u in all warps of a group: each sums dz R^T over its
/// own column. If there are several, they exchange values in shared memory, twice [3 values, slots,
/// 32], where each stores its sum, what the cell kept for its column, and one of four numbers. Each
/// then computes the whole gradient of the cell and passes on its own column's dz. One extra step
/// writes the gradients of the initial states.
template <class Cell, class T, int Resident, class Exchange>
__global__ void __launch_bounds__(resident_most_threads<T>, 1)
    recurrent_backward_resident(recurrent_backward_operands<T> p, recurrent_shape s, recurrent_split split,
                                unsigned* counts) {
    TG_DYNAMIC_SHARED(T, shared);
    const resident_place at(split);
    constexpr int slots = Cell::columns, others = slots == 1 ? 3 : 1; // of four numbers, how many a thread fetches
    const int warp_slot = at.warp % slots, warp_gate = gate_of_slot<Cell>(warp_slot),
              first_unit = (at.rank * (at.warps / slots) + at.warp / slots) * resident_columns;
    const auto here = [&](int tile) { // recomputed at each use to save registers
        const int thread = computed_here(static_cast<int>(threadIdx.x)), lane = thread % 32, warp = thread / 32;
        const int sample = computed_here(at.first_sample) + tile * resident_rows + lane / resident_columns;
        const int rank = computed_here(static_cast<int>(blockIdx.x)) % split.unit_blocks;
        return resident_cell_place{
            warp % slots, (rank * (at.warps / slots) + warp / slots) * resident_columns + lane % resident_columns,
            lane / resident_columns, sample};
    };
    const int operand_size = resident_rows * resident_pitch(Exchange::one_tile, slots, split.padded);
    const int meeting_size = resident_meeting<Cell> * at.warps;
    const recurrent_weights<T, Resident> weights(
        shared + 2 * operand_size + meeting_size, split.padded, at.warp, at.lane, [&](int k, int column) {
            const int u = first_unit + column;
            return k < s.units && u < s.units && warp_gate >= 0
                       ? p.recurrent[(static_cast<std::int64_t>(u) * Cell::gates + warp_gate) * s.units + k]
                       : T(0);
        });
    const int block_units = at.warps / slots * resident_columns;
    Exchange exchange(shared, s, split, (s.units + block_units - 1) / block_units, counts);
    exchange.begin(s.units, [](int, int, int) { return T(0); });
    if (Exchange::one_tile && first_unit >= s.units) return; // nor have the others of its group anything to send

    const auto met_of = [&](int turn, const resident_cell_place& mine) {
        const int lane = mine.row * resident_columns + mine.unit % resident_columns,
                  group = mine.unit / resident_columns - at.rank * (at.warps / slots);
        return shared + 2 * operand_size + ((turn & 1) * at.warps + group * slots) * 3 * 32 + lane;
    };
    T dh_after = T(0), dc_after = T(0); // of the states after the step, apart from what passes through its gates
    // The memory, the memory before, dh and the factor: each of four warps fetches one for all of
    // them.
    T own_value = T(0), own_other[others];
    bool counts_step = false;
    const auto fetch = [&](int step, int tile) {
        const resident_cell_place mine = here(tile);
        const int slot = mine.slot, unit = mine.unit, sample = mine.sample;
        own_value = T(0), counts_step = false;
        TG_UNROLL
        for (T& x : own_other) x = T(0);
        if (unit >= s.units || sample >= s.batch || step < -1) return;
        const std::int64_t line = s.line(sample, step);
        TG_UNROLL
        for (int i = 0; i < others; ++i) {
            const int which = slots == 1 ? i : slot;
            T& x = own_other[i];
            if (which == 3) x = value_or_one(p.dropped, s.state(sample, unit));
            if (step < 0) {
                if (which == 2) x = value_or_zero(p.dh_first.data, s.row(p.dh_first, sample, 0) + unit);
                continue;
            }
            if (which == 0 && needs_memory<Cell>) x = p.memory[line * s.units + unit];
            if (which == 1) x = s.memory_before(p.memory, p.memory0, sample, step, unit);
            if (which == 2 && step < p.dh_steps) x = value_or_zero(p.dh.data, s.row(p.dh, sample, step) + unit);
        }
        if (step < 0) return;
        if (Cell::kept > 0) own_value = p.gates[(line * Cell::kept + slot) * s.units + unit];
        counts_step = s.counts(p.mask, line);
    };
    fetch(s.time - 1, 0);
    for (int step = s.time - 1; step >= -1; --step) {
        for (int tile = 0, last = 0; tile <= last; ++tile) {
            last = Exchange::one_tile ? 0 : at.last_tile(s, split);
            const int first = computed_here(at.first_sample) + tile * resident_rows;
            const bool last_step = step == s.time - 1;
            const bool last_tile = tile == last;
            const int turn = step * (last + 1) + tile;
            if constexpr (slots > 1) {
                const resident_cell_place mine = here(tile);
                T* const met = met_of(turn, mine);
                met[(slots + mine.slot) * 32] = own_value, met[(2 * slots + mine.slot) * 32] = own_other[0];
            }
            T sum = T(0);
            if (!last_step) {
                const T* const operand = exchange.operand(turn, s.units, [&](int r, int i, int u) {
                    if (first + r >= s.batch || !has_product<Cell>(i)) return T(0);
                    const std::int64_t of_column = static_cast<std::int64_t>(i) * s.units;
                    return load_from_others(p.dz.data + s.row(p.dz, first + r, step + 1, slots) + of_column + u);
                });
                if (has_product<Cell>(warp_slot)) {
                    T sums[32];
                    weights.multiply(operand + here(tile).slot * split.padded,
                                     resident_pitch(Exchange::one_tile, slots, split.padded), sums);
                    sum = sum_across_lanes(sums, computed_here(static_cast<int>(threadIdx.x)) % 32);
                }
            }
            const resident_cell_place mine = here(tile);
            const int slot = mine.slot, unit = mine.unit, row = mine.row, sample = mine.sample;
            const bool live = unit < s.units && sample < s.batch;
            const std::int64_t state = s.state(sample, unit);
            T* const met = met_of(turn, mine);
            if (slots > 1) met[slot * 32] = sum;
            if (live && last_step) {
                dh_after = value_or_zero(p.dh_last.data, s.row(p.dh_last, sample, 0) + unit);
                if (Cell::states == 2) dc_after = value_or_zero(p.dc_last.data, s.row(p.dc_last, sample, 0) + unit);
            } else if (live && !Exchange::one_tile) {
                dh_after = p.carried_dh[state];
                if (Cell::states == 2) dc_after = p.carried_dc[state];
            }
            const auto other = [&](int i) { return slots == 1 ? own_other[i] : met[(2 * slots + i) * 32]; };
            if constexpr (slots > 1) {
                __syncthreads();
                sum = (met[0] + met[32]) + (met[64] + met[96]);
            }
            T factor = T(0);
            if constexpr (slots > 1)
                factor = other(3);
            else if (live) // not fetched ahead, to save registers
                factor = value_or_one(p.dropped, state);
            const T dh = dh_after + other(2) + factor * sum;
            if (step < 0) {
                fetch(last_tile ? -2 : -1, tile + 1);
                if (live && slot == 0 && p.dh0.data != nullptr) p.dh0.data[s.row(p.dh0, sample, 0) + unit] = dh;
                if (Cell::states == 2 && live && slot == 1 && p.dc0.data != nullptr)
                    p.dc0.data[s.row(p.dc0, sample, 0) + unit] = dc_after;
                continue;
            }
            T dz = T(0);
            if (counts_step) {
                typename Cell::template numbers<T> y{{other(0)}};
                TG_UNROLL
                for (int i = 0; i < Cell::kept; ++i) y.v[i] = met[(slots + i) * 32];
                const auto d = Cell::backward(s.activations, y, other(1), other(0), dh, dc_after);
                dz = one_of(d.v, slot);
                if (Cell::states == 2)
                    dh_after = T(0), dc_after = d.passed;
                else
                    dh_after = d.passed;
            } else {
                dh_after = dh;
            }
            T* const to =
                p.dz.data + s.row(p.dz, sample, step, slots) + static_cast<std::int64_t>(slot) * s.units + unit;
            if (live && !Exchange::one_tile) store_for_others(to, dz);
            if (live && has_product<Cell>(slot)) exchange.publish(turn, row, slot, unit, dz, 0, 1);
            if (last_tile) exchange.arrive(turn, at.samples(s) * s.units * products<Cell>);
            if (live && Exchange::one_tile) *to = dz;
            if (live && !Exchange::one_tile && slot == 0) {
                p.carried_dh[state] = dh_after;
                if (Cell::states == 2) p.carried_dc[state] = dc_after;
            }
            fetch(last_tile ? step - 1 : step, last_tile ? 0 : tile + 1);
        }
        if (step >= 0) exchange.wait(step, s.time - step);
    }
}

} // namespace tapegraph::cuda::kernels
