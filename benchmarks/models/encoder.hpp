#pragma once

#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstdint>

namespace models {

/// A transformer's encoder that classifies texts, with BERT's blocks (Devlin et al. 2018): maps the
/// indices of tokens [batch, 128] to ten scores. Four blocks of width 256 with four heads.
struct encoder {
    static constexpr std::int64_t time = 128, vocabulary = 8192, width = 256, heads = 4, classes = 10, blocks = 4;

    static constexpr auto scores(auto scope, auto tokens, std::int64_t length, std::int64_t depth) {
        namespace tg = tapegraph;
        auto h = tg::embedding(scope / "embedding", tokens, {.input_dim = vocabulary, .output_dim = width});
        h = h + scope.variable_like(h, "positions", {length, width}, {.initializer = tg::init::normal{0, 0.02}});
        for (int i = 0; i < depth; ++i) {
            const auto block = scope / "block" / i;
            const auto seen =
                tg::multi_head_attention(block / "attention", h, h, {.num_heads = heads, .key_dim = width / heads});
            h = tg::layer_normalization(block / "norm1", h + seen);
            const auto wide = gelu(tg::dense(block / "wide", h, {.units = 4 * width}));
            h = tg::layer_normalization(block / "norm2", h + tg::dense(block / "narrow", wide, {.units = width}));
        }
        return tg::dense(scope / "score", mean(h, 1), {.units = classes});
    }
    constexpr auto operator()(auto scope, auto tokens) const { return scores(scope, tokens, time, blocks); }
};

/// The same of any length and depth, for graphs made at run time.
struct any_encoder {
    std::int64_t length, blocks;

    constexpr auto operator()(auto scope, auto tokens) const { return encoder::scores(scope, tokens, length, blocks); }
};

} // namespace models
