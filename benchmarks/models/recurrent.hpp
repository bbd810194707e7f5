#pragma once

#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstdint>

namespace models {

/// Classifiers of sequences [batch, 64, 256]: two recurrent layers of 256 units, ten scores from the
/// last one's last step.
struct recurrent {
    static constexpr std::int64_t time = 64, features = 256, units = 256, classes = 10;

    static constexpr auto scores(auto scope, auto x, const auto& layer) {
        return tapegraph::dense(scope / "score", layer(scope / 1, layer(scope / 0, x, true), false),
                                {.units = classes});
    }
};

struct two_grus : recurrent {
    constexpr auto operator()(auto scope, auto x) const {
        return scores(scope, x, [](auto at, auto h, bool sequences) {
            return tapegraph::gru(at, h, {.units = units, .return_sequences = sequences});
        });
    }
};

struct two_lstms_both_ways : recurrent {
    constexpr auto operator()(auto scope, auto x) const {
        namespace tg = tapegraph;
        return scores(scope, x, [](auto at, auto h, bool sequences) {
            return tg::bidirectional(at, h, tg::lstm_layer_options{.units = units, .return_sequences = sequences});
        });
    }
};

} // namespace models
