#pragma once

#include <tapegraph/tapegraph.hpp>

namespace models {

/// Maps images [batch, height, width, channels] to one logit through `blocks` residual blocks of
/// two convolutions each, with batch normalization. The input of a block is used twice: a graph
/// nested in one type would double with every block.
struct residual {
    int blocks = 8;
    int filters = 16;

    constexpr auto operator()(auto scope, auto image) const {
        namespace tg = tapegraph;
        auto h =
            tg::conv2d(scope / "entry", image, {.filters = filters, .padding = tg::padding::same(), .use_bias = false});
        for (int i = 0; i < blocks; ++i) {
            const auto block = scope / "block" / i;
            auto y = tg::batch_normalization(block / "norm1", h);
            y = tg::conv2d(block / "conv1", relu(y),
                           {.filters = filters, .padding = tg::padding::same(), .use_bias = false});
            y = tg::batch_normalization(block / "norm2", y);
            y = tg::conv2d(block / "conv2", relu(y),
                           {.filters = filters, .padding = tg::padding::same(), .use_bias = false});
            h = h + y;
        }
        return tg::dense(scope / "score", mean(relu(h), {1, 2}), {.units = 1});
    }
};

} // namespace models
