#pragma once

#ifdef TG_SIMT
#include <simt/driver.hpp>
#else
#include <tapegraph/cuda/driver.cuh>
#endif
#include <tapegraph/cuda/kernels/lstm_resident.cuh>
#include <tapegraph/cuda/kernels/lstm_step.cuh>

#include <cstdint>
#include <limits>
#include <string>

/// LSTM layers on the device: what follows x W + b forward, and what comes before the products with dz backward.
///
/// Three ways, all of which give every state: one launch a step (any shape, any device); one launch in which the whole
/// grid runs together and meets at a counter each step; one launch of clusters that pass h through each other's shared
/// memory (sm_90). They add in different orders, so their results differ by rounding; each alone always gives the same
/// bits. choose_lstm's bounds are predictions from counts of cycles, to be replaced by measurements.
///
/// Nothing here waits for the device or allocates, so all of it may be captured into a graph. The counters of the second
/// way only ever count up during a launch; a fill in front of the launch, captured with it, sets them to zero, so the
/// workspace may hold anything before every replay.

namespace tapegraph::cuda {

enum class lstm_stage { steps, grid, cluster };
enum class lstm_pass { forward, backward };

/// How a pass is run.
struct lstm_plan {
    lstm_stage stage = lstm_stage::steps;
    bool large_tile = false; ///< of a step's product
    // Of one launch for all steps:
    bool more_resident = false; ///< twice the weights in registers
    int warps = 0;              ///< of a block
    int parts = 0;              ///< of the batch
    kernels::lstm_split split{};
    std::size_t shared = 0; ///< bytes

    unsigned blocks() const { return static_cast<unsigned>(parts * split.unit_blocks); }
};

namespace lstm_detail {

template <class T>
constexpr int lstm_resident(bool more) {
    return (more ? 32 : 16) / static_cast<int>(sizeof(T)); // 32 or 64 registers of weights
}
inline int quotient_up(std::int64_t a, std::int64_t b) { return static_cast<int>((a + b - 1) / b); }

/// A block with at least so many units, if it can be.
template <class T>
bool set_lstm_block(lstm_plan& plan, int units, int block_units, lstm_pass pass, std::size_t limit) {
    const bool backward = pass == lstm_pass::backward;
    plan.more_resident = units > 32 * lstm_resident<T>(false);
    const int resident = lstm_resident<T>(plan.more_resident);
    plan.warps = backward ? quotient_up(block_units, 8) * 4 : quotient_up(block_units, 2);
    plan.split.padded = kernels::lstm_padded_units<T>(units, resident);
    plan.split.unit_blocks = quotient_up(units, 2 * plan.warps);
    plan.shared = kernels::lstm_shared_bytes<T>(units, resident, plan.warps, backward);
    return plan.warps * 32 <= kernels::lstm_most_threads<T> && plan.shared <= limit;
}

} // namespace lstm_detail

/// Clusters of the given size: four samples each.
template <class T>
bool plan_lstm_clusters(lstm_plan& plan, const lstm_geometry& g, std::size_t shared_limit, lstm_pass pass, int size) {
    plan = {};
    plan.stage = lstm_stage::cluster;
    const int units = static_cast<int>(g.units);
    if (!lstm_detail::set_lstm_block<T>(plan, units, lstm_detail::quotient_up(units, size), pass, shared_limit))
        return false;
    plan.split.unit_blocks = size; // some may be without units
    plan.split.rows = kernels::lstm_rows;
    plan.parts = lstm_detail::quotient_up(g.batch, kernels::lstm_rows);
    return true;
}

/// A grid of at most `blocks` blocks of at least `block_units` units.
template <class T>
bool plan_lstm_grid(lstm_plan& plan, const lstm_geometry& g, std::size_t shared_limit, lstm_pass pass, int block_units,
                    int blocks) {
    plan = {};
    plan.stage = lstm_stage::grid;
    const int tiles = lstm_detail::quotient_up(g.batch, kernels::lstm_rows);
    if (!lstm_detail::set_lstm_block<T>(plan, static_cast<int>(g.units), block_units, pass, shared_limit)) return false;
    const int most_parts = blocks / plan.split.unit_blocks;
    if (most_parts == 0) return false;
    const int part_tiles = lstm_detail::quotient_up(tiles, most_parts < tiles ? most_parts : tiles);
    plan.split.rows = part_tiles * kernels::lstm_rows;
    plan.parts = lstm_detail::quotient_up(tiles, part_tiles);
    return true;
}

/// The way for a shape on a device, none beyond `most`. Depends on nothing else; whether the device can really hold the
/// grid or cluster at once is asked at the launch.
template <class T>
lstm_plan choose_lstm(const lstm_geometry& g, const driver::device_properties& device, lstm_pass pass,
                      lstm_stage most = lstm_stage::cluster) {
    lstm_plan plan;
    // A step's product with tiles of 64 samples has enough work for everyone: nothing is gained by keeping R.
    constexpr int many_tiles = 8;
    if (most >= lstm_stage::cluster && device.major >= 9) {
        // As few blocks as do with two warps a scheduler; else as few as it takes. Sixteen is more than every device has.
        int size = 0;
        for (const int c : {1, 2, 4, 8})
            if (size == 0 && plan_lstm_clusters<T>(plan, g, device.shared_per_block, pass, c) && plan.warps <= 8)
                size = c;
        for (const int c : {1, 2, 4, 8, 16})
            if (size == 0 && plan_lstm_clusters<T>(plan, g, device.shared_per_block, pass, c)) size = c;
        if (size != 0 && plan_lstm_clusters<T>(plan, g, device.shared_per_block, pass, size) &&
            static_cast<int>(plan.blocks()) <= many_tiles * device.multiprocessors)
            return plan;
    }
    if (most >= lstm_stage::grid)
        for (const int block_units : {16, 8, 32})
            if (plan_lstm_grid<T>(plan, g, device.shared_per_block, pass, block_units, device.multiprocessors) &&
                plan.split.rows <= many_tiles * kernels::lstm_rows)
                return plan;
    plan = {};
    plan.large_tile = g.batch > 32 && static_cast<std::int64_t>(lstm_detail::quotient_up(g.batch, 64)) *
                                              lstm_detail::quotient_up(g.units, 16) >=
                                          device.multiprocessors;
    return plan;
}

/// Bytes of scratch memory, aligned to 128, for whichever way is taken.
template <class T>
std::size_t lstm_workspace(const lstm_geometry& g, lstm_pass pass) {
    const auto counters = static_cast<std::size_t>(g.batch + kernels::lstm_rows - 1) / kernels::lstm_rows * 128;
    const auto states = static_cast<std::size_t>(g.batch * g.units) * sizeof(T);
    return counters + (pass == lstm_pass::backward ? 2 * states : 0);
}

namespace lstm_detail {

inline void check_lstm(const lstm_geometry& g, const char* operation) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    const auto refuse = [&](const char* what, std::int64_t value) {
        throw argument_error(std::string(operation) + ": " + what + " " + std::to_string(value) + " is out of range");
    };
    if (g.batch < 0 || g.batch > most - 64) refuse("batch", g.batch);
    if (g.time < 0 || g.time > most) refuse("time", g.time);
    if (g.units < 0 || g.units > most / 4 - 64) refuse("units", g.units);
}

/// f(kernel) with the kernel of a plan, and how it is launched.
template <class T, int Segments, class F>
auto with_resident_lstm(const lstm_plan& plan, const F& f) {
    driver::launch_shape shape{};
    shape.grid = {plan.blocks()}, shape.block = {static_cast<unsigned>(plan.warps * 32)}, shape.shared = plan.shared;
    if (plan.stage == lstm_stage::cluster)
        shape.cluster = static_cast<unsigned>(plan.split.unit_blocks);
    else
        shape.cooperative = true;
    const auto with = [&]<int Resident, class Exchange>() {
        if constexpr (Segments == 1)
            return f(shape, &kernels::lstm_forward_resident<T, Resident, Exchange>);
        else
            return f(shape, &kernels::lstm_backward_resident<T, Resident, Exchange>);
    };
    constexpr int few = lstm_resident<T>(false), more = lstm_resident<T>(true);
    using grid = kernels::grid_exchange<T, Segments>;
    using cluster = kernels::cluster_exchange<T, Segments>;
    if (plan.stage == lstm_stage::cluster)
        return plan.more_resident ? with.template operator()<more, cluster>()
                                  : with.template operator()<few, cluster>();
    return plan.more_resident ? with.template operator()<more, grid>() : with.template operator()<few, grid>();
}

/// The best plan that the device can hold at once.
template <class T, int Segments>
lstm_plan feasible_lstm(const lstm_geometry& g, const driver::device_properties& device, lstm_pass pass) {
    lstm_plan plan = choose_lstm<T>(g, device, pass);
    const auto holds = [&](const driver::launch_shape& shape, auto* kernel) {
        return shape.cooperative
                   ? driver::resident_blocks(kernel, shape) * device.multiprocessors >= static_cast<int>(plan.blocks())
                   : driver::resident_clusters(kernel, shape) > 0;
    };
    while (plan.stage != lstm_stage::steps && !with_resident_lstm<T, Segments>(plan, holds))
        plan =
            choose_lstm<T>(g, device, pass, plan.stage == lstm_stage::cluster ? lstm_stage::grid : lstm_stage::steps);
    return plan;
}

template <class T, int Segments, class Operands>
void run_resident_lstm(driver::stream s, const char* operation, const lstm_plan& plan, const lstm_geometry& g,
                       const Operands& operands, void* counters) {
    if (plan.stage == lstm_stage::grid) driver::fill(counters, 0, static_cast<std::size_t>(plan.parts) * 128, s);
    with_resident_lstm<T, Segments>(plan, [&](const driver::launch_shape& shape, auto* kernel) {
        driver::launch(s, operation, shape, kernel, operands, kernels::lstm_shape(g), plan.split,
                       static_cast<unsigned*>(counters));
    });
}

using lstm_small_tile = kernels::step_tile<32, 32, 16, 2, 4>;
using lstm_large_tile = kernels::step_tile<64, 64, 16, 4, 4>;

template <class Tile, class Problem>
void launch_lstm_step(driver::stream s, const char* operation, const Problem& problem) {
    driver::launch_shape shape{};
    shape.grid = {static_cast<unsigned>(quotient_up(problem.m, Tile::BM)),
                  static_cast<unsigned>(quotient_up(problem.n, Tile::BN)), 1};
    shape.block = {Tile::threads};
    driver::launch(s, operation, shape, kernels::step_gemm<Problem, Tile>, problem);
}

} // namespace lstm_detail

/// All states of a layer, as planned.
template <class T>
void run_lstm_forward(driver::stream s, const lstm_plan& plan, const lstm_geometry& g,
                      const lstm_forward_operands<T>& p, void* workspace) {
    constexpr const char* operation = "lstm";
    if (plan.stage != lstm_stage::steps)
        return lstm_detail::run_resident_lstm<T, 1>(s, operation, plan, g, p, workspace);
    const kernels::lstm_shape shape(g);
    const auto run = [&]<class Tile>() {
        for (int step = 0; step < shape.time; ++step)
            lstm_detail::launch_lstm_step<Tile>(s, operation, kernels::lstm_forward_step<T>(shape, p, step, Tile::BN));
    };
    plan.large_tile ? run.template operator()<lstm_detail::lstm_large_tile>()
                    : run.template operator()<lstm_detail::lstm_small_tile>();
}

/// The gradients of all z and of the first states, as planned. The carried states of `p` are in the workspace.
template <class T>
void run_lstm_backward(driver::stream s, const lstm_plan& plan, const lstm_geometry& g, lstm_backward_operands<T> p,
                       void* workspace) {
    constexpr const char* operation = "lstm's gradient";
    p.carried_dh =
        reinterpret_cast<T*>(static_cast<unsigned char*>(workspace) + lstm_workspace<T>(g, lstm_pass::forward));
    p.carried_dc = p.carried_dh + g.batch * g.units;
    if (plan.stage != lstm_stage::steps)
        return lstm_detail::run_resident_lstm<T, 4>(s, operation, plan, g, p, workspace);
    const kernels::lstm_shape shape(g);
    const auto run = [&]<class Tile>() {
        const int last = p.dh0.data != nullptr || p.dc0.data != nullptr ? -1 : 0;
        for (int step = shape.time - 1; step >= last; --step)
            lstm_detail::launch_lstm_step<Tile>(s, operation, kernels::lstm_backward_step<T>(shape, p, step));
    };
    plan.large_tile ? run.template operator()<lstm_detail::lstm_large_tile>()
                    : run.template operator()<lstm_detail::lstm_small_tile>();
}

/// h and c of all steps from xz = x W + b [batch, time, 4 units], and the gates if a gradient is to follow.
/// `workspace`: lstm_workspace<T>(g, lstm_pass::forward) bytes. Throws argument_error for extents that are negative or too
/// large.
template <class T>
void lstm_forward(driver::stream s, const driver::device_properties& device, const lstm_geometry& g,
                  const lstm_forward_operands<T>& p, void* workspace) {
    lstm_detail::check_lstm(g, "lstm");
    if (g.batch == 0 || g.units == 0 || g.time == 0) return;
    const lstm_plan plan = lstm_detail::feasible_lstm<T, 1>(g, device, lstm_pass::forward);
    run_lstm_forward<T>(s, plan, g, p, workspace);
}

/// dz [batch, time, 4 units], from which products give the rest: dx = dz W^T, dW = x^T dz, dR = h[t-1]^T dz, db = sum of dz;
/// and dh0, dc0 if they are not null. `workspace`: lstm_workspace<T>(g, lstm_pass::backward) bytes.
template <class T>
void lstm_backward(driver::stream s, const driver::device_properties& device, const lstm_geometry& g,
                   const lstm_backward_operands<T>& p, void* workspace) {
    lstm_detail::check_lstm(g, "lstm's gradient");
    if (g.batch == 0 || g.units == 0) return;
    const lstm_plan plan = g.time == 0 ? lstm_plan{} : lstm_detail::feasible_lstm<T, 4>(g, device, lstm_pass::backward);
    run_lstm_backward<T>(s, plan, g, p, workspace);
}

} // namespace tapegraph::cuda
