#pragma once

#include <tapegraph/tapegraph.hpp>

namespace models {

namespace tg = tapegraph;

/// The convolution that is compared with the recurrent network of the first pair: maps series
/// [batch, time, channels], in the study [batch, 400, 16], to one logit.
struct recurrent_small {
    constexpr auto operator()(auto scope, auto series) const {
        auto h = tg::conv1d(scope / "conv", series,
                            {.filters = 128, .kernel_size = 400, .stride = 4, .padding = tg::padding::same()});
        const auto features = tg::dropout(scope / "drop", tg::flatten(h), {.rate = 0.5});
        const auto hidden = relu(tg::dense(scope / "dense", features, {.units = 64}));
        return tg::dense(scope / "score", hidden, {.units = 1});
    }
};

} // namespace models
