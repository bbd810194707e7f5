#pragma once

#include <tapegraph/core/convolution_algorithm.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/ops/convolution/cpu_fast.hpp>

/// The choice between convolutions of float by fewer products, which is the default, and direct sums.

namespace tapegraph {

/// Chooses how the CPU convolves float, in both modes and for the whole process, gradients included:
///
///     tg::set_convolution_algorithm(tg::convolution_algorithm::direct);
///
/// `fast`, the default, takes kernels of 3 by 3 and 5 by 5 of stride 1 between at least 32 channels, with outputs of at least 16 tiles
/// of 4 by 4 (13 by 13, say), and undilated long kernels along one dimension, any stride as phases, where Fourier transforms spare two
/// thirds of the products; everything else stays direct. Sums are rounded otherwise: in two dimensions with errors of a few 1e-6 of a tile's values
/// where direct sums have 1e-6, along one with about as much as direct sums. A NaN or infinity reaches all outputs of its tiles; zeros
/// become about 1e-6 of their neighbours. Choose before the first convolution: throws argument_error where memory has already been
/// planned for another choice.
inline void set_convolution_algorithm(convolution_algorithm algorithm) {
    cpu::detail::convolution_choice& choice = cpu::detail::chosen_convolution();
    const auto* const passes = algorithm == convolution_algorithm::fast ? &cpu::fast_convolution : nullptr;
    if (choice.asked.load() && choice.chosen.load() != passes)
        throw argument_error(
            "set_convolution_algorithm: choose before the first convolution, whose memory is planned for the other");
    choice.chosen.store(passes);
}

/// What has been chosen.
inline convolution_algorithm current_convolution_algorithm() {
    return cpu::detail::chosen_convolution().chosen.load() != nullptr ? convolution_algorithm::fast
                                                                      : convolution_algorithm::direct;
}

} // namespace tapegraph
