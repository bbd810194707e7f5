#pragma once

#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstdint>

namespace models {

/// A transformer that predicts characters or tokens, of GPT-2's blocks (Radford et al. 2019): maps
/// their indices [batch, 256] to the logits of each one's successor [batch, 256, Vocabulary]. Six
/// blocks of width 384 with six heads.
template <std::int64_t Vocabulary>
struct gpt_of {
    static constexpr std::int64_t time = 256, vocabulary = Vocabulary, width = 384, heads = 6, blocks = 6;

    /// `positions(table)` are the rows of the table of positions that belong to the characters, and
    /// `attend(scope, h, i)` is the attention of block i.
    static constexpr auto logits(auto scope, auto characters, const auto& positions, const auto& attend) {
        namespace tg = tapegraph;
        auto h = tg::embedding(scope / "embedding", characters, {.input_dim = vocabulary, .output_dim = width});
        h = h +
            positions(scope.variable_like(h, "positions", {time, width}, {.initializer = tg::init::normal{0, 0.02}}));
        for (int i = 0; i < blocks; ++i) {
            const auto block = scope / "block" / i;
            h = h + attend(block / "attention", tg::layer_normalization(block / "norm1", h), i);
            const auto wide =
                tg::dense(block / "wide", tg::layer_normalization(block / "norm2", h), {.units = 4 * width});
            h = h + tg::dense(block / "narrow", gelu(wide, tg::approximate), {.units = width});
        }
        return tg::dense(scope / "next", tg::layer_normalization(scope / "norm", h), {.units = vocabulary});
    }

    constexpr auto operator()(auto scope, auto characters) const {
        return logits(
            scope, characters, [](auto table) { return table; },
            [](auto at, auto h, int) {
                return tapegraph::multi_head_attention(
                    at, h, h, {.num_heads = heads, .key_dim = width / heads, .use_causal_mask = true});
            });
    }
};

using gpt = gpt_of<65>;

} // namespace models
