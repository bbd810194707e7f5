#pragma once

#include <tapegraph/tapegraph.hpp>

namespace models {

namespace tg = tapegraph;

/// The end of the larger models of series: dense 256, dropout 0.5, dense 128 and 64, all with relu,
/// and one logit. Maps features [batch, n] to [batch, 1].
constexpr auto binary_head(const auto& scope, auto h, double dropout_rate = 0.5) {
    h = relu(tg::dense(scope / "dense" / 0, h, {.units = 256}));
    h = tg::dropout(scope / "drop", h, {.rate = dropout_rate});
    h = relu(tg::dense(scope / "dense" / 1, h, {.units = 128}));
    h = relu(tg::dense(scope / "dense" / 2, h, {.units = 64}));
    return tg::dense(scope / "score", h, {.units = 1});
}

} // namespace models
