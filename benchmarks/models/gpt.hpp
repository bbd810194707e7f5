#pragma once

#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstdint>

namespace models {

/// A transformer that predicts characters, of GPT-2's blocks (Radford et al. 2019): maps their
/// indices [batch, 256] to the logits of each one's successor [batch, 256, 65]. Six blocks of width
/// 384 with six heads.
struct gpt {
    static constexpr std::int64_t time = 256, vocabulary = 65, width = 384, heads = 6, blocks = 6;

    constexpr auto operator()(auto scope, auto characters) const {
        namespace tg = tapegraph;
        auto h = tg::embedding(scope / "embedding", characters, {.input_dim = vocabulary, .output_dim = width});
        h = h + scope.variable_like(h, "positions", {time, width}, {.initializer = tg::init::normal{0, 0.02}});
        for (int i = 0; i < blocks; ++i) {
            const auto block = scope / "block" / i;
            const auto seen = tg::layer_normalization(block / "norm1", h);
            h = h + tg::multi_head_attention(block / "attention", seen, seen,
                                             {.num_heads = heads, .key_dim = width / heads, .use_causal_mask = true});
            const auto wide =
                tg::dense(block / "wide", tg::layer_normalization(block / "norm2", h), {.units = 4 * width});
            h = h + tg::dense(block / "narrow", gelu(wide, tg::approximate), {.units = width});
        }
        return tg::dense(scope / "next", tg::layer_normalization(scope / "norm", h), {.units = vocabulary});
    }
};

} // namespace models
