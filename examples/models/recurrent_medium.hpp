#pragma once

#include "binary_head.hpp"
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/sequence.hpp>

#include <cstdint>

namespace models {

namespace tg = tapegraph;

/// The recurrent network of the first pair: maps series [batch, time, channels], in the study
/// [batch, 400, 16], through LSTMs with relu for tanh and a convolution to one logit. Each LSTM has
/// `Units` units; 512 in the study.
template <std::int64_t Units = 512>
struct recurrent_medium {
    constexpr auto operator()(auto scope, auto series) const {
        const tg::lstm_layer_options recurrent{
            .units = Units, .activation = tg::cell_activation::relu, .return_sequences = true};
        auto h = tg::bidirectional(scope / "both", series, recurrent);
        h = tg::lstm(scope / "lstm", h, recurrent);
        h = tg::conv1d(scope / "conv", h,
                       {.filters = 128, .kernel_size = 400, .stride = 4, .padding = tg::padding::same()});
        return binary_head(scope, tg::flatten(h));
    }
};

} // namespace models
