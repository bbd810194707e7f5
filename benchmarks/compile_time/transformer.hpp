#pragma once

#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstdio>

namespace tg = tapegraph;

// A language model of characters: their numbers [batch, 64] to the logits of each one's successor [batch, 64, 96].
template <int Blocks = 2>
struct transformer {
    constexpr auto operator()(auto scope, auto characters) const {
        auto h = tg::embedding(scope / "embedding", characters, {.input_dim = 96, .output_dim = 64});
        h = h + scope.variable_like(h, "positions", {64, 64}, {.initializer = tg::init::normal{0, 0.02}});
        for (int i = 0; i < Blocks; ++i) {
            const auto block = scope / "block" / i;
            const auto seen = tg::layer_normalization(block / "norm1", h);
            h = h + tg::multi_head_attention(block / "attention", seen, seen,
                                             {.num_heads = 4, .key_dim = 16, .use_causal_mask = true});
            const auto wide = tg::dense(block / "wide", tg::layer_normalization(block / "norm2", h), {.units = 256});
            h = h + tg::dense(block / "narrow", relu(wide), {.units = 64});
        }
        return tg::dense(scope / "next", tg::layer_normalization(scope / "norm", h), {.units = 96});
    }
};

template <class Mode, int Blocks = 2>
int train() {
    auto model = tg::compile<Mode>(transformer<Blocks>{}, tg::spec<std::int32_t, tg::dyn, 64>{},
                                   tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 0.001});
    tg::data::dataset texts;
    texts.add("text", std::vector<std::int32_t>(128 * 64, 1), {64});
    texts.add("next", std::vector<std::int32_t>(128 * 64, 2), {64});
    const auto history = model.fit(texts, {.epochs = 2, .batch_size = 16});
    std::printf("%g\n", history.epochs.back().loss);
    return 0;
}
