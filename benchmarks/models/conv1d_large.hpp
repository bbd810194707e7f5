#pragma once

#include <tapegraph/tapegraph.hpp>

namespace models {

/// The large 1-D network of the mode study (45 convolutions, four dense layers): series [batch, time, channels] to one logit.
struct conv1d_large {
    constexpr auto operator()(auto scope, auto series) const {
        namespace tg = tapegraph;
        auto h = tg::conv1d(scope / "entry" / 0, series, {.filters = 64, .kernel = 400, .stride = 4});
        h = tg::conv1d(scope / "entry" / 1, relu(h), {.filters = 128, .kernel = 200});
        for (int i = 0; i < 40; ++i)
            h = tg::conv1d(scope / "body" / i, relu(h), {.filters = 256, .kernel = 12, .padding = tg::padding::same()});
        h = tg::conv1d(scope / "exit" / 0, relu(h), {.filters = 512, .kernel = 20, .stride = 2});
        h = tg::conv1d(scope / "exit" / 1, relu(h), {.filters = 1028, .kernel = 10, .stride = 2});
        h = tg::conv1d(scope / "exit" / 2, relu(h), {.filters = 256, .kernel = 1});
        h = mean(relu(h), 1); // global average pooling over time
        h = tg::dropout(scope / "drop", relu(tg::dense(scope / "dense" / 0, h, {.units = 256})), {.rate = 0.5});
        h = relu(tg::dense(scope / "dense" / 1, h, {.units = 128}));
        h = relu(tg::dense(scope / "dense" / 2, h, {.units = 64}));
        return tg::dense(scope / "score", h, {.units = 1});
    }
};

} // namespace models
