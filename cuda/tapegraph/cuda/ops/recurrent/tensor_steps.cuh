#pragma once

#ifdef TG_SIMT
#include <simt/driver.hpp>
#else
#include <tapegraph/cuda/driver.cuh>
#endif
#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/cuda/kernels/tensor_step.cuh>

#include <algorithm>
#include <cstdint>
#include <type_traits>

/// Runs a recurrent layer's pass as one launch per step on tensor cores: tiles, predicted costs,
/// scratch memory, launches.

namespace tapegraph::cuda {

enum class recurrent_pass { forward, backward };

namespace recurrent_detail {

inline int quotient_up(std::int64_t a, std::int64_t b) { return static_cast<int>((a + b - 1) / b); }

/// Forward, the columns of a tile hold all gates of a unit; backward, a unit is one column.
template <int Gates, bool Large>
struct tensor_step_tile_choice {
    using small = kernels::tensor_tile<64, 16 * Gates, kernels::tensor_step_depth, 2, 2, 4>;
    using large = kernels::tensor_tile<128, 32 * Gates, kernels::tensor_step_depth, 2, 4, 3>;
    using type = std::conditional_t<Large, large, small>;
};
template <bool Large> // fewest columns, longest products: small tiles, so that there are enough
struct tensor_step_tile_choice<1, Large> {
    using type = std::conditional_t<Large, kernels::tensor_tile<64, 64, kernels::tensor_step_depth, 2, 2, 4>,
                                    kernels::tensor_tile<32, 32, kernels::tensor_step_depth, 2, 2, 6>>;
};
template <class Cell, recurrent_pass Pass, int Phase, bool Large>
using tensor_step_tile_of =
    typename tensor_step_tile_choice<Pass == recurrent_pass::forward ? kernels::phase_gates<Cell, Phase>::count : 1,
                                     Large>::type;

template <class Cell, recurrent_pass Pass, int Phase>
using tensor_problem = std::conditional_t<Pass == recurrent_pass::forward, kernels::tensor_forward_step<Cell, Phase>,
                                          kernels::tensor_backward_step<Cell, Phase>>;
template <class Cell, recurrent_pass Pass, int Phase, bool Large>
using tensor_parts =
    kernels::tensor_step_parts<tensor_problem<Cell, Pass, Phase>, tensor_step_tile_of<Cell, Pass, Phase, Large>>;

/// Predicted cycles of a phase of a step. Every k of a tile costs the slowest of three: fetching
/// its operands from the L2 cache, which holds R and the states, at 64 bytes per cycle and
/// multiprocessor; reads of the warps from shared memory, at 128; the products, at 640 of the 1,024
/// multiply-adds per cycle that tensor cores reach at best (mma.sync on sm_90). A launch that waits
/// for the previous one takes about 1.5 us, its first copies and the cell as much again.
template <class Cell, recurrent_pass Pass, int Phase, bool Large>
double tensor_phase_cycles(std::int64_t batch, std::int64_t units, int multiprocessors, bool exact) {
    using tile = tensor_step_tile_of<Cell, Pass, Phase, Large>;
    using problem = tensor_problem<Cell, Pass, Phase>;
    const double k = Pass == recurrent_pass::forward
                         ? static_cast<double>(units)
                         : static_cast<double>(units) * kernels::phase_gates<Cell, Phase>::count;
    const std::int64_t tiles =
        static_cast<std::int64_t>(quotient_up(batch, tile::BM)) * quotient_up(units, tile::BN / problem::gates);
    const double copied = (tile::BM + tile::BN) * 4 / 64.0,
                 read = (tile::BM * tile::WN + tile::BN * tile::WM) * 4 / 128.0,
                 products = tile::BM * tile::BN * (exact ? 3 : 1) / 640.0;
    return quotient_up(tiles, multiprocessors) * k * std::max({copied, read, products}) + 4000;
}
template <class Cell, recurrent_pass Pass, bool Large>
double tensor_step_cycles(std::int64_t batch, std::int64_t units, int multiprocessors, bool exact) {
    double cycles = tensor_phase_cycles<Cell, Pass, 0, Large>(batch, units, multiprocessors, exact);
    if constexpr (Cell::reset_before)
        cycles += tensor_phase_cycles<Cell, Pass, 1, Large>(batch, units, multiprocessors, exact);
    return cycles;
}

/// The operands of products on tensor cores in scratch memory: rows of A of two alternating steps,
/// for a cell with reset_before those of its second product, and a copy of R where its rows are not
/// multiples of 16 bytes.
template <class Cell>
class tensor_scratch {
public:
    tensor_scratch(std::int64_t batch, std::int64_t units, recurrent_pass pass, void* at = nullptr)
        : at_(static_cast<float*>(at)),
          batch_(batch),
          units_(units),
          padded_(up_to(4, units)),
          pitch_(up_to(kernels::tensor_step_depth,
                       pass == recurrent_pass::forward ? units : padded_ * kernels::phase_gates<Cell, 0>::count)),
          last_pitch_(Cell::reset_before ? up_to(kernels::tensor_step_depth, padded_) : 0) {}

    std::int64_t rows_elements() const { return batch_ * (2 * pitch_ + last_pitch_); }
    std::int64_t elements() const { return rows_elements() + (padded_ == units_ ? 0 : weights_rows() * padded_); }
    /// Forward, all rows have the same width.
    std::int64_t forward_rows() const { return batch_ * (Cell::reset_before ? 3 : 2); }

    /// Returns R, or the copy of it that this call enqueues.
    const float* weights(driver::stream s, const char* operation, const float* recurrent) const {
        if (padded_ == units_) return recurrent;
        float* const to = at_ + rows_elements();
        driver::launch(s, operation, spread(weights_rows() * padded_), kernels::pad_units<float>, recurrent, to,
                       weights_rows(), static_cast<int>(units_), static_cast<int>(padded_));
        return to;
    }
    /// `now` is the step whose products read what the step before it (forward) or after it
    /// (backward) left.
    kernels::tensor_operands of(int now, const float* weights, bool exact) const {
        float* const rows[2]{at_, at_ + batch_ * pitch_};
        return {rows[now & 1],
                rows[(now + 1) & 1],
                at_ + 2 * batch_ * pitch_,
                static_cast<int>(pitch_),
                static_cast<int>(last_pitch_),
                weights,
                static_cast<int>(padded_),
                exact};
    }
    /// A launch with one thread per element, or per several elements.
    static driver::launch_shape spread(std::int64_t elements) {
        constexpr unsigned threads = 256, most_blocks = 4096; // more than any device holds at once
        driver::launch_shape shape{};
        shape.grid = {static_cast<unsigned>(std::min<std::int64_t>((elements + threads - 1) / threads, most_blocks))};
        shape.block = {threads};
        return shape;
    }

private:
    static std::int64_t up_to(std::int64_t whole, std::int64_t x) { return (x + whole - 1) / whole * whole; }
    std::int64_t weights_rows() const { return units_ * Cell::gates; }

    float* at_;
    std::int64_t batch_, units_, padded_, pitch_, last_pitch_;
};

template <class Cell, recurrent_pass Pass, int Phase, bool Large>
void launch_tensor_step(driver::stream s, const char* operation, bool exact,
                        const tensor_problem<Cell, Pass, Phase>& problem) {
    using tile = tensor_step_tile_of<Cell, Pass, Phase, Large>;
    using parts = tensor_parts<Cell, Pass, Phase, Large>;
    driver::launch_shape shape{};
    shape.grid = {static_cast<unsigned>(quotient_up(problem.m, tile::BM)),
                  static_cast<unsigned>(quotient_up(problem.s.units, tile::BN / problem.gates)), 1};
    shape.block = {tile::threads};
    shape.shared = parts::bytes;
    using problem_type = tensor_problem<Cell, Pass, Phase>;
    if constexpr (!Large) // fewer kernels to compile
        if (exact)
            return driver::launch(s, operation, shape,
                                  kernels::tensor_step<problem_type, tile, kernels::tensor_precision::tf32x3>, problem);
    driver::launch(s, operation, shape, kernels::tensor_step<problem_type, tile, kernels::tensor_precision::tf32>,
                   problem);
}

/// Calls launch.template operator()<phase>(step) for the steps of a pass in order; step -1 computes
/// the gradients of the initial states.
template <class Cell, recurrent_pass Pass, class Operands, class Launch>
void each_launch(int time, const Operands& p, const Launch& launch) {
    const auto both_phases = [&](int step) {
        launch.template operator()<0>(step);
        if constexpr (Cell::reset_before) launch.template operator()<1>(step);
    };
    if constexpr (Pass == recurrent_pass::forward) {
        for (int step = 0; step < time; ++step) both_phases(step);
    } else {
        for (int step = time - 1; step >= 0; --step) both_phases(step);
        if (p.dh0.data != nullptr || p.dc0.data != nullptr) launch.template operator()<0>(-1);
    }
}

/// `workspace` has room for tensor_scratch::elements().
template <class Cell, recurrent_pass Pass, bool Large, class Operands>
void run_tensor_pass(driver::stream s, const char* operation, bool exact, const recurrent_geometry& g,
                     const Operands& p, void* workspace) {
    const kernels::recurrent_shape shape(g);
    const tensor_scratch<Cell> scratch(g.batch, g.units, Pass, workspace);
    const float* const weights = scratch.weights(s, operation, p.recurrent);
    if constexpr (Pass == recurrent_pass::forward)
        driver::launch(s, operation, scratch.spread(scratch.rows_elements()), kernels::begin_tensor_steps<float>, shape,
                       p.h0, p.dropped, scratch.of(0, weights, exact), scratch.forward_rows());
    else
        driver::fill(workspace, 0, static_cast<std::size_t>(scratch.rows_elements()) * sizeof(float), s);
    each_launch<Cell, Pass>(shape.time, p, [&]<int Phase>(int step) {
        const int now = Pass == recurrent_pass::forward ? step : step + 1;
        launch_tensor_step<Cell, Pass, Phase, Large>(
            s, operation, exact, tensor_problem<Cell, Pass, Phase>(shape, p, step, scratch.of(now, weights, exact)));
    });
}

} // namespace recurrent_detail
} // namespace tapegraph::cuda
