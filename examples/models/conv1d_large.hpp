#pragma once

#include "binary_head.hpp"

namespace models {

namespace tg = tapegraph;

/// 45 convolutions of the mode study: [batch, time, channels] ([batch, 14000, 30]) to a logit.
/// `Drops` is false for comparisons with other libraries, whose random numbers differ.
template <bool Drops = true>
struct conv1d_large {
    constexpr auto operator()(auto scope, auto series) const {
        auto h = tg::conv1d(scope / "entry" / 0, series, {.filters = 64, .kernel_size = 400, .stride = 4});
        h = tg::conv1d(scope / "entry" / 1, h, {.filters = 128, .kernel_size = 200});
        for (int i = 0; i < 40; ++i)
            h = tg::conv1d(scope / "body" / i, h, {.filters = 256, .kernel_size = 12, .padding = tg::padding::same()});
        h = tg::conv1d(scope / "exit" / 0, h, {.filters = 512, .kernel_size = 20, .stride = 2});
        h = tg::conv1d(scope / "exit" / 1, h, {.filters = 1028, .kernel_size = 10, .stride = 2});
        h = tg::conv1d(scope / "exit" / 2, h, {.filters = 256, .kernel_size = 1});
        return binary_head(scope, tg::global_average_pooling1d(h), Drops ? 0.5 : 0);
    }
};

} // namespace models
