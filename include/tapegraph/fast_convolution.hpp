#pragma once

#include <tapegraph/core/convolution_algorithm.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/ops/convolution/cpu_fast.hpp>

/// Chooses the algorithm of float convolutions on the CPU, and whether devices may use Winograd's.

namespace tapegraph {

/// Chooses how the CPU convolves float, in both modes and for the whole process, gradients included;
/// and whether devices may use Winograd's algorithm for large convolutions (`automatic` and
/// `winograd`):
///
///     tg::set_convolution_algorithm(tg::convolution_algorithm::direct);
///
/// A layer's `.algorithm` takes precedence. `automatic`, the default, chooses
/// - `winograd` for kernels of 3 by 3 and 5 by 5 of stride 1 between at least 32 channels, where a
///   cost model of the pass favours it: forward for all images with outputs of 14 by 14 and more,
///   for smaller ones and for gradients from some number of images on;
/// - `fourier` for undilated long kernels along one dimension, any stride as phases, where the whole
///   batch has at least 64 outputs of a channel and a cost model favours it;
/// - direct sums for everything else.
///
/// So an image's rounding depends on its batch where its outputs are fewer than 14 by 14, and its
/// gradients' where they are fewer than 23 by 23; that of a line of at most 256 outputs depends on
/// whether it is alone, or in a batch of fewer than 64 outputs. An algorithm that is named
/// applies to every number of channels and outputs; where it cannot be used (other kernels,
/// strides, dilations, groups) direct sums are. The algorithms round differently: in two dimensions
/// with errors of a few 1e-6 of a tile's values where direct sums have 1e-6, along one dimension
/// with about as much as direct sums. A NaN or infinity reaches all outputs of its tiles; zeros
/// become about 1e-6 of their neighbours. Choose before the first convolution: throws
/// argument_error where memory has already been planned for another choice.
inline void set_convolution_algorithm(convolution_algorithm algorithm) {
    cpu::detail::convolution_choice& choice = cpu::detail::chosen_convolution();
    if (choice.memory_planned.load() && choice.chosen.load() != algorithm)
        throw argument_error(
            "set_convolution_algorithm: choose before the first convolution, whose memory is planned for the other");
    choice.chosen.store(algorithm);
}

/// Returns the current choice.
inline convolution_algorithm current_convolution_algorithm() { return cpu::detail::chosen_convolution().chosen.load(); }

} // namespace tapegraph
