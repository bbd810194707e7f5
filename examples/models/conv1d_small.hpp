#pragma once

#include <tapegraph/tapegraph.hpp>

namespace models {

namespace tg = tapegraph;

/// The small convolution of the mode study: series [batch, time, channels], in the study [batch, 140, 30], to one logit.
/// `Drops` is false where results are compared with those of other libraries, whose random numbers are others.
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
