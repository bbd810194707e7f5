#pragma once

#ifdef TG_SIMT
#include <simt/driver.hpp>
#else
#include <tapegraph/cuda/driver.cuh>
#endif
#include <tapegraph/cuda/kernels/recurrent_step.cuh>
#include <tapegraph/cuda/kernels/resident_parts.cuh>
#include <tapegraph/cuda/ops/recurrent/tensor_steps.cuh>

#include <cstdint>
#include <type_traits>

/// Plans how a recurrent layer's pass is run, and the scratch memory it takes.
///
/// There are three ways, all of which compute every state:
/// - one launch per step: any shape, any device; two launches for a cell with reset_before; for
///   floats on tensor cores where the math_mode allows it.
/// - one launch in which the whole grid is resident and synchronises on a counter at each step.
/// - one launch of clusters that pass h through each other's shared memory (sm_90).
/// They add in different orders, so their results differ by rounding; each of them alone always
/// gives the same bits. choose_recurrence's bounds are predictions from counts of cycles, to be
/// replaced by measurements.

namespace tapegraph::cuda {

enum class recurrent_stage { steps, grid, cluster };

/// The chosen way to run a pass, with its parameters.
struct recurrent_plan {
    recurrent_stage stage = recurrent_stage::steps;
    bool large_tile = false; ///< for a step's product
    bool tensor = false;     ///< a step's product runs on tensor cores
    bool exact = false;      ///< and in tf32x3
    // For one launch for all steps:
    bool more_resident = false; ///< twice the weights in registers
    int warps = 0;              ///< per block
    int parts = 0;              ///< of the batch
    kernels::recurrent_split split{};
    std::size_t shared = 0; ///< bytes

    unsigned blocks() const { return static_cast<unsigned>(parts * split.unit_blocks); }
};

namespace recurrent_detail {

template <class T>
constexpr int resident_k(bool more) {
    return (more ? 32 : 16) / static_cast<int>(sizeof(T)); // 32 or 64 registers of weights
}

/// The tile of a step's product: each thread computes all gates of some units.
template <int Gates, bool Large>
struct step_tile_choice {
    static constexpr bool threes = Gates % 3 == 0;
    using small =
        std::conditional_t<threes, kernels::step_tile<32, 24, 16, 2, 3>, kernels::step_tile<32, 32, 16, 2, 4>>;
    using large =
        std::conditional_t<threes, kernels::step_tile<64, 48, 16, 4, 3>, kernels::step_tile<64, 64, 16, 4, 4>>;
    using type = std::conditional_t<Large, large, small>;
};
template <int Gates, bool Large>
using step_tile_of = typename step_tile_choice<Gates, Large>::type;

/// Plans a block with at least this many units; returns false if it does not fit.
template <class Cell, class T>
bool set_block(recurrent_plan& plan, int units, int block_units, recurrent_pass pass, std::size_t limit) {
    const bool backward = pass == recurrent_pass::backward;
    plan.more_resident = units > 32 * resident_k<T>(false);
    const int resident = resident_k<T>(plan.more_resident);
    constexpr int slots = Cell::columns, warp_units = kernels::resident_columns / slots;
    plan.warps =
        backward ? quotient_up(block_units, kernels::resident_columns) * slots : quotient_up(block_units, warp_units);
    plan.split.padded = kernels::resident_padded_units<T>(units, resident);
    plan.split.unit_blocks = quotient_up(units, warp_units * plan.warps);
    plan.shared = kernels::resident_shared_bytes<Cell, T>(units, resident, plan.warps, backward,
                                                          plan.stage == recurrent_stage::cluster);
    return plan.warps * 32 <= kernels::resident_most_threads<T> && plan.shared <= limit;
}

} // namespace recurrent_detail

/// Plans clusters of the given size, at least 2, for four samples each. A cluster of one block is
/// excluded: an H200 reports an illegal instruction when a block sends to itself.
template <class Cell, class T>
bool plan_recurrent_clusters(recurrent_plan& plan, const recurrent_geometry& g, std::size_t shared_limit,
                             recurrent_pass pass, int size) {
    plan = {};
    if (size < 2) return false;
    plan.stage = recurrent_stage::cluster;
    const int units = static_cast<int>(g.units);
    if (!recurrent_detail::set_block<Cell, T>(plan, units, recurrent_detail::quotient_up(units, size), pass,
                                              shared_limit))
        return false;
    plan.split.unit_blocks = size; // some blocks may have no units
    plan.split.rows = kernels::resident_rows;
    plan.parts = recurrent_detail::quotient_up(g.batch, kernels::resident_rows);
    return true;
}

/// Plans a grid of at most `blocks` blocks of at least `block_units` units.
template <class Cell, class T>
bool plan_recurrent_grid(recurrent_plan& plan, const recurrent_geometry& g, std::size_t shared_limit,
                         recurrent_pass pass, int block_units, int blocks) {
    plan = {};
    plan.stage = recurrent_stage::grid;
    const int tiles = recurrent_detail::quotient_up(g.batch, kernels::resident_rows);
    if (!recurrent_detail::set_block<Cell, T>(plan, static_cast<int>(g.units), block_units, pass, shared_limit))
        return false;
    const int most_parts = blocks / plan.split.unit_blocks;
    if (most_parts == 0) return false;
    const int part_tiles = recurrent_detail::quotient_up(tiles, most_parts < tiles ? most_parts : tiles);
    plan.split.rows = part_tiles * kernels::resident_rows;
    plan.parts = recurrent_detail::quotient_up(tiles, part_tiles);
    return true;
}

/// Predicted cycles of a step of one launch for all steps. Blocks that are not resident wait until
/// others have done all their steps: clusters run in waves, a grid is one wave. A tile costs its
/// multiply-adds, 128 of floats per cycle, and its cell. Then the blocks synchronise: a value takes
/// some 200 cycles to reach another block of the cluster, and a counter in the L2 cache takes two
/// ways of 260 (HPMLL/NVIDIA-Hopper-Benchmark), in addition to the time to start and to notice it.
template <class Cell, class T>
double resident_cycles(const recurrent_plan& plan, const driver::device_properties& device, recurrent_pass pass) {
    const int per_cycle = sizeof(T) == 4 ? 128 : 64;
    const double columns = plan.warps * kernels::resident_columns;
    const double sums = kernels::resident_rows * columns * plan.split.padded / per_cycle;
    const double cell = 150 + (pass == recurrent_pass::backward ? 50 : 0);
    const bool cluster = plan.stage == recurrent_stage::cluster;
    const int at_once = cluster ? device.multiprocessors / plan.split.unit_blocks : plan.parts;
    const int waves = recurrent_detail::quotient_up(plan.parts, at_once > 0 ? at_once : 1);
    // A grid's tiles come from the L2 cache: a block reads the whole operand of its samples.
    const double loads = cluster ? 0 : 300;
    const int tiles = cluster ? 1 : plan.split.rows / kernels::resident_rows;
    return waves * (tiles * (sums + cell + loads) + (cluster ? 400 : 1400));
}

/// Plans one launch per step on tensor cores and sets `cycles` to the time of a step; returns false
/// where the device or the math_mode does not use them.
template <class Cell, class T>
bool plan_tensor_steps(recurrent_plan& plan, double& cycles, const recurrent_geometry& g,
                       const driver::device_properties& device, recurrent_pass pass, math_mode mode) {
    if constexpr (std::is_same_v<T, float>) {
        if (mode == math_mode::fp32 || device.major < 8) return false;
        plan = {};
        plan.tensor = true, plan.exact = mode == math_mode::tf32x3;
        const auto with = [&]<recurrent_pass Pass, bool Large>() {
            const std::size_t shared = std::max(recurrent_detail::tensor_parts<Cell, Pass, 0, Large>::bytes,
                                                recurrent_detail::tensor_parts<Cell, Pass, 1, Large>::bytes);
            const double these = recurrent_detail::tensor_step_cycles<Cell, Pass, Large>(
                g.batch, g.units, device.multiprocessors, plan.exact);
            if (shared > device.shared_per_block || (Large && (plan.exact || these >= cycles))) return false;
            plan.large_tile = Large, cycles = these;
            return true;
        };
        const auto both = [&]<recurrent_pass Pass>() {
            if (!with.template operator()<Pass, false>()) return false;
            with.template operator()<Pass, true>();
            return true;
        };
        return pass == recurrent_pass::forward ? both.template operator()<recurrent_pass::forward>()
                                               : both.template operator()<recurrent_pass::backward>();
    } else {
        return false;
    }
}

/// Chooses the way for a shape on a device, none beyond `most`. The choice depends on nothing else
/// but the math_mode; whether the device can hold the grid or cluster at once is checked at the
/// launch.
template <class Cell, class T>
recurrent_plan choose_recurrence(const recurrent_geometry& g, const driver::device_properties& device,
                                 recurrent_pass pass, recurrent_stage most = recurrent_stage::cluster,
                                 math_mode mode = math_mode::fp32) {
    recurrent_plan plan, grid, steps;
    double steps_cycles = 0;
    const bool tensor = plan_tensor_steps<Cell, T>(steps, steps_cycles, g, device, pass, mode);
    const auto resident = [&](const recurrent_plan& way) {
        return tensor && steps_cycles < resident_cycles<Cell, T>(way, device, pass) ? steps : way;
    };
    // A step's product with tiles of 64 samples keeps the whole device busy: keeping R resident
    // gains nothing.
    constexpr int many_tiles = 8;
    if constexpr (!kernels::runs_resident<Cell>) most = recurrent_stage::steps;
    if (most >= recurrent_stage::grid)
        for (const int block_units : {16, 8, 32})
            if (grid.stage != recurrent_stage::grid &&
                (!plan_recurrent_grid<Cell, T>(grid, g, device.shared_per_block, pass, block_units,
                                               device.multiprocessors) ||
                 grid.split.rows > many_tiles * kernels::resident_rows))
                grid = {};
    const bool has_grid = grid.stage == recurrent_stage::grid;
    if (most >= recurrent_stage::cluster && device.major >= 9) {
        // The fewest blocks that need at most two warps per scheduler; else the fewest that work at
        // all. Some devices do not support clusters of sixteen.
        int size = 0;
        for (const int c : {2, 4, 8})
            if (size == 0 && plan_recurrent_clusters<Cell, T>(plan, g, device.shared_per_block, pass, c) &&
                plan.warps <= 8)
                size = c;
        for (const int c : {2, 4, 8, 16})
            if (size == 0 && plan_recurrent_clusters<Cell, T>(plan, g, device.shared_per_block, pass, c)) size = c;
        if (size != 0 && plan_recurrent_clusters<Cell, T>(plan, g, device.shared_per_block, pass, size) &&
            static_cast<int>(plan.blocks()) <= many_tiles * device.multiprocessors &&
            (!has_grid || resident_cycles<Cell, T>(plan, device, pass) <= resident_cycles<Cell, T>(grid, device, pass)))
            return resident(plan);
    }
    if (has_grid) return resident(grid);
    if (tensor) return steps;
    plan = {};
    constexpr int gates = kernels::phase_gates<Cell, 0>::count;
    using large = recurrent_detail::step_tile_of<gates, true>;
    plan.large_tile = g.batch > 32 && static_cast<std::int64_t>(recurrent_detail::quotient_up(g.batch, large::BM)) *
                                              recurrent_detail::quotient_up(g.units, large::BN / gates) >=
                                          device.multiprocessors;
    return plan;
}

/// The offsets of the parts of scratch memory: counters, the operands of products on tensor cores
/// (for any math_mode, since it may change after the size was queried), and the carried states,
/// which end at `end`.
template <class Cell, class T>
struct recurrent_scratch {
    std::size_t products, carried, end;

    recurrent_scratch(const recurrent_geometry& g, recurrent_pass pass)
        : products(static_cast<std::size_t>(g.batch + kernels::resident_rows - 1) / kernels::resident_rows * 128),
          carried(products),
          end(0) {
        if constexpr (std::is_same_v<T, float>)
            carried +=
                static_cast<std::size_t>(recurrent_detail::tensor_scratch<Cell>(g.batch, g.units, pass).elements()) *
                sizeof(T);
        const auto states = static_cast<std::size_t>(g.batch * g.units) * sizeof(T);
        end = carried + (pass == recurrent_pass::backward ? Cell::states * states : 0);
    }
};

/// Bytes of scratch memory, aligned to 128, enough for every way.
template <class Cell, class T>
std::size_t recurrent_workspace(const recurrent_geometry& g, recurrent_pass pass) {
    return recurrent_scratch<Cell, T>(g, pass).end;
}

} // namespace tapegraph::cuda
