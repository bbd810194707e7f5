#pragma once

#include <tapegraph/tapegraph.hpp>

namespace models {

namespace tg = tapegraph;

/// The small convolution of the mode study: [batch, time, channels] ([batch, 140, 30]) to a logit.
/// `Drops` is false for comparisons with other libraries, whose random numbers differ.
template <bool Drops = true>
struct conv1d_small {
    constexpr auto operator()(auto scope, auto series) const {
        auto h = tg::conv1d(scope / "conv", series,
                            {.filters = 128, .kernel_size = 40, .stride = 4, .padding = tg::padding::same()});
        h = tg::dropout(scope / "drop", tg::global_average_pooling1d(h), {.rate = Drops ? 0.5 : 0});
        h = relu(tg::dense(scope / "dense", h, {.units = 64}));
        return tg::dense(scope / "score", h, {.units = 1});
    }
};

} // namespace models
