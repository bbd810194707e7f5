#pragma once

#include "binary_head.hpp"

#include <cstdint>

namespace models {

namespace tg = tapegraph;

/// Six convolutions of the mode study: [batch, time, channels] ([batch, 1400, 30]) to a logit.
/// `Drops` is false for comparisons with other libraries, whose random numbers differ.
template <bool Drops = true>
struct conv1d_medium {
    static constexpr std::int64_t filters[6]{64, 128, 256, 256, 128, 64};

    constexpr auto operator()(auto scope, auto series) const {
        auto h = series;
        for (int i = 0; i < 6; ++i) h = tg::conv1d(scope / "conv" / i, h, {.filters = filters[i], .kernel_size = 20});
        return binary_head(scope, tg::global_average_pooling1d(h), Drops ? 0.5 : 0);
    }
};

} // namespace models
