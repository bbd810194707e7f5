#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/cuda/kernel_memory.hpp>
#include <tapegraph/cuda/kernels/recurrent_resident.cuh>
#include <tapegraph/cuda/kernels/recurrent_step.cuh>
#include <tapegraph/cuda/ops/recurrent/plan.cuh>

#include <cstdint>
#include <limits>
#include <string>

/// Recurrent layers on the device, for any cell: the part after x W + b of the forward pass, and
/// the part before the products with dz of the backward pass. plan.cuh describes the ways to run a
/// pass.
///
/// Nothing here waits for the device or allocates, so everything may be captured into a graph. The
/// counters of one launch for all steps only count up; a fill before the launch, captured with it,
/// sets them to zero, so the workspace may hold anything before a replay.

namespace tapegraph::cuda {

namespace recurrent_detail {

inline void check_geometry(const recurrent_geometry& g, const char* operation) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    const auto refuse = [&](const char* what, std::int64_t value) {
        throw argument_error(std::string(operation) + ": " + what + " " + std::to_string(value) + " is out of range");
    };
    if (g.batch < 0 || g.batch > most - 64) refuse("batch", g.batch);
    if (g.time < 0 || g.time > most) refuse("time", g.time);
    if (g.units < 0 || g.units > most / 4 - 64) refuse("units", g.units);
}

/// Calls f(shape, kernel) with the kernel of a plan and the shape of its launch.
template <class Cell, class T, recurrent_pass Pass, class F>
auto with_resident(const recurrent_plan& plan, const F& f) {
    driver::launch_shape shape{};
    shape.grid = {plan.blocks()}, shape.block = {static_cast<unsigned>(plan.warps * 32)}, shape.shared = plan.shared;
    if (plan.stage == recurrent_stage::cluster)
        shape.cluster = static_cast<unsigned>(plan.split.unit_blocks);
    else
        shape.cooperative = true;
    constexpr int segments = Pass == recurrent_pass::forward ? 1 : Cell::columns;
    const auto with = [&]<int Resident, class Exchange>() {
        if constexpr (Pass == recurrent_pass::forward)
            return f(shape, &kernels::recurrent_forward_resident<Cell, T, Resident, Exchange>);
        else
            return f(shape, &kernels::recurrent_backward_resident<Cell, T, Resident, Exchange>);
    };
    constexpr int few = resident_k<T>(false), more = resident_k<T>(true);
    using grid = kernels::grid_exchange<T, segments>;
    using cluster = kernels::cluster_exchange<T, segments>;
    if (plan.stage == recurrent_stage::cluster)
        return plan.more_resident ? with.template operator()<more, cluster>()
                                  : with.template operator()<few, cluster>();
    return plan.more_resident ? with.template operator()<more, grid>() : with.template operator()<few, grid>();
}

/// How many blocks one multiprocessor of this thread's device holds at once or, for a kernel that
/// is not cooperative, how many clusters the whole device holds.
template <class... P>
int residents(void (*kernel)(P...), const driver::launch_shape& shape) {
    const detail::residency_answers::question q{driver::current_device(), reinterpret_cast<const void*>(kernel),
                                                shape.shared, shape.block.x, shape.cooperative ? 0 : shape.cluster};
    return detail::known_residency()(q, [&] {
        return shape.cooperative ? driver::resident_blocks(kernel, shape) : driver::resident_clusters(kernel, shape);
    });
}

/// The best plan that the device can hold at once, none beyond `most`.
template <class Cell, class T, recurrent_pass Pass>
recurrent_plan feasible_plan(const recurrent_geometry& g, const driver::device_properties& device,
                             recurrent_stage most = recurrent_stage::cluster) {
    const math_mode mode = current_math_mode();
    recurrent_plan plan = choose_recurrence<Cell, T>(g, device, Pass, most, mode);
    if constexpr (kernels::runs_resident<Cell>) {
        const auto holds = [&](const driver::launch_shape& shape, auto* kernel) {
            const int held = residents(kernel, shape);
            return shape.cooperative ? held * device.multiprocessors >= static_cast<int>(plan.blocks()) : held > 0;
        };
        while (plan.stage != recurrent_stage::steps && !with_resident<Cell, T, Pass>(plan, holds))
            plan = choose_recurrence<Cell, T>(
                g, device, Pass,
                plan.stage == recurrent_stage::cluster ? recurrent_stage::grid : recurrent_stage::steps, mode);
    }
    return plan;
}

/// Whether an operand of products on tensor cores is aligned for copies of 16 bytes; allocated
/// memory is.
inline bool in_whole_vectors(const float* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; }

template <class Cell, class T, recurrent_pass Pass, class Operands>
void run_resident(driver::stream s, const char* operation, const recurrent_plan& plan, const recurrent_geometry& g,
                  const Operands& operands, void* counters) {
    if (plan.stage == recurrent_stage::grid) driver::fill(counters, 0, static_cast<std::size_t>(plan.parts) * 128, s);
    with_resident<Cell, T, Pass>(plan, [&](const driver::launch_shape& shape, auto* kernel) {
        driver::launch(s, operation, shape, kernel, operands, kernels::recurrent_shape(g), plan.split,
                       static_cast<unsigned*>(counters));
    });
}

template <class Tile, class Problem>
void launch_step(driver::stream s, const char* operation, const Problem& problem) {
    driver::launch_shape shape{};
    shape.grid = {static_cast<unsigned>(quotient_up(problem.m, Tile::BM)),
                  static_cast<unsigned>(quotient_up(problem.n, Tile::BN)), 1};
    shape.block = {Tile::threads};
    driver::launch(s, operation, shape, kernels::step_gemm<Problem, Tile>, problem);
}

template <class Cell, class T, int Phase, bool Large>
void launch_forward_step(driver::stream s, const char* operation, const kernels::recurrent_shape& shape,
                         const recurrent_forward_operands<T>& p, int step) {
    using tile = step_tile_of<kernels::phase_gates<Cell, Phase>::count, Large>;
    launch_step<tile>(s, operation, kernels::recurrent_forward_step<Cell, T, Phase>(shape, p, step, tile::BN));
}
template <class Cell, class T, int Phase, bool Large>
void launch_backward_step(driver::stream s, const char* operation, const kernels::recurrent_shape& shape,
                          const recurrent_backward_operands<T>& p, int step) {
    launch_step<step_tile_of<1, Large>>(s, operation, kernels::recurrent_backward_step<Cell, T, Phase>(shape, p, step));
}

template <class Cell, class T, bool Large>
void run_forward_steps(driver::stream s, const char* operation, const kernels::recurrent_shape& shape,
                       const recurrent_forward_operands<T>& p) {
    each_launch<Cell, recurrent_pass::forward>(shape.time, p, [&]<int Phase>(int step) {
        launch_forward_step<Cell, T, Phase, Large>(s, operation, shape, p, step);
    });
}
template <class Cell, class T, bool Large>
void run_backward_steps(driver::stream s, const char* operation, const kernels::recurrent_shape& shape,
                        const recurrent_backward_operands<T>& p) {
    each_launch<Cell, recurrent_pass::backward>(shape.time, p, [&]<int Phase>(int step) {
        launch_backward_step<Cell, T, Phase, Large>(s, operation, shape, p, step);
    });
}

} // namespace recurrent_detail

/// Computes all states of a layer according to the plan. `operation` is named in errors.
template <class Cell, class T>
void run_recurrent_forward(driver::stream s, const char* operation, const recurrent_plan& plan,
                           const recurrent_geometry& g, const recurrent_forward_operands<T>& p, void* workspace) {
    if constexpr (kernels::runs_resident<Cell>)
        if (plan.stage != recurrent_stage::steps)
            return recurrent_detail::run_resident<Cell, T, recurrent_pass::forward>(s, operation, plan, g, p,
                                                                                    workspace);
    if constexpr (std::is_same_v<T, float>)
        if (plan.tensor && recurrent_detail::in_whole_vectors(p.recurrent)) {
            void* const products = static_cast<unsigned char*>(workspace) +
                                   recurrent_scratch<Cell, T>(g, recurrent_pass::forward).products;
            constexpr auto pass = recurrent_pass::forward;
            using recurrent_detail::run_tensor_pass;
            return plan.large_tile ? run_tensor_pass<Cell, pass, true>(s, operation, plan.exact, g, p, products)
                                   : run_tensor_pass<Cell, pass, false>(s, operation, plan.exact, g, p, products);
        }
    const kernels::recurrent_shape shape(g);
    plan.large_tile ? recurrent_detail::run_forward_steps<Cell, T, true>(s, operation, shape, p)
                    : recurrent_detail::run_forward_steps<Cell, T, false>(s, operation, shape, p);
}

/// Computes the gradients of all z and of the initial states according to the plan. The carried
/// states of `p` are in the workspace.
template <class Cell, class T>
void run_recurrent_backward(driver::stream s, const char* operation, const recurrent_plan& plan,
                            const recurrent_geometry& g, recurrent_backward_operands<T> p, void* workspace) {
    const recurrent_scratch<Cell, T> at(g, recurrent_pass::backward);
    p.carried_dh = reinterpret_cast<T*>(static_cast<unsigned char*>(workspace) + at.carried);
    p.carried_dc = Cell::states == 2 ? p.carried_dh + g.batch * g.units : nullptr;
    if constexpr (kernels::runs_resident<Cell>)
        if (plan.stage != recurrent_stage::steps)
            return recurrent_detail::run_resident<Cell, T, recurrent_pass::backward>(s, operation, plan, g, p,
                                                                                     workspace);
    if constexpr (std::is_same_v<T, float>)
        if (plan.tensor && recurrent_detail::in_whole_vectors(p.recurrent)) {
            void* const products = static_cast<unsigned char*>(workspace) + at.products;
            constexpr auto pass = recurrent_pass::backward;
            using recurrent_detail::run_tensor_pass;
            return plan.large_tile ? run_tensor_pass<Cell, pass, true>(s, operation, plan.exact, g, p, products)
                                   : run_tensor_pass<Cell, pass, false>(s, operation, plan.exact, g, p, products);
        }
    const kernels::recurrent_shape shape(g);
    plan.large_tile ? recurrent_detail::run_backward_steps<Cell, T, true>(s, operation, shape, p)
                    : recurrent_detail::run_backward_steps<Cell, T, false>(s, operation, shape, p);
}

/// Computes the states of all steps from xz = x W + b [batch, time, gates units], and what the cell
/// stores if a gradient is to follow. `workspace` has recurrent_workspace<Cell, T>(g,
/// recurrent_pass::forward) bytes. Throws argument_error for extents that are negative or too
/// large.
template <class Cell, class T>
void recurrent_forward(driver::stream s, const char* operation, const driver::device_properties& device,
                       const recurrent_geometry& g, const recurrent_forward_operands<T>& p, void* workspace) {
    recurrent_detail::check_geometry(g, operation);
    if (g.batch == 0 || g.units == 0 || g.time == 0) return;
    const recurrent_plan plan = recurrent_detail::feasible_plan<Cell, T, recurrent_pass::forward>(g, device);
    run_recurrent_forward<Cell, T>(s, operation, plan, g, p, workspace);
}

/// Computes dz [batch, time, columns units], from which products give the rest: for an lstm dx = dz
/// W^T, dW = x^T dz, dR = h[t-1]^T dz, db = sum of dz; and dh0, dc0 if they are not null.
/// `workspace` has recurrent_workspace<Cell, T>(g, recurrent_pass::backward) bytes.
template <class Cell, class T>
void recurrent_backward(driver::stream s, const char* operation, const driver::device_properties& device,
                        const recurrent_geometry& g, const recurrent_backward_operands<T>& p, void* workspace) {
    recurrent_detail::check_geometry(g, operation);
    if (g.batch == 0 || g.units == 0) return;
    const recurrent_plan plan =
        g.time == 0 ? recurrent_plan{} : recurrent_detail::feasible_plan<Cell, T, recurrent_pass::backward>(g, device);
    run_recurrent_backward<Cell, T>(s, operation, plan, g, p, workspace);
}

} // namespace tapegraph::cuda
