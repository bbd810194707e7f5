#pragma once

#include "gpt.hpp"

#include <tapegraph/nn/layers/grouped_attention.hpp>
#include <tapegraph/session/session.hpp>

namespace models {

/// The GPT as a session that continues texts by one character each: the placeholder "character" holds
/// the last ones [batch, 1], "place" says where they are, and "kept" writes their keys and values
/// beside those of the characters before. "next" are the likeliest successors, and "scores" the
/// logits. Other variables are those of `gpt`.
template <std::int64_t Batch>
struct next_character {
    static constexpr std::int64_t capacity = gpt::time;

    constexpr auto operator()(auto scope) const {
        namespace tg = tapegraph;
        const auto character = scope.template placeholder<std::int32_t>("character", {Batch, 1});
        const auto place = scope.template placeholder<std::int32_t>("place", {});
        tg::graph_operation<> kept;
        const auto remember = [&](auto variable, auto value) {
            for (const auto& update : tg::assign(variable, value).updates) kept.updates.push_back(update);
        };
        const auto scores = gpt::logits(
            scope, character, [&](auto table) { return gather(table, place, 0); },
            [&](auto at, auto h, int) {
                const auto zeros = [&](const char* name) {
                    return at.template variable<float>(
                        name, {Batch, capacity, gpt::heads, gpt::width / gpt::heads},
                        {.initializer = tg::init::zeros{}, .trainable = false, .collection = "local"});
                };
                const auto keys = zeros("kept_keys"), values = zeros("kept_values");
                const auto step = tg::cached_attention(
                    at, h, tg::attention_cache{keys, values}, place,
                    {.head_dim = gpt::width / gpt::heads, .num_query_heads = gpt::heads}, tg::write_in_place);
                remember(keys, step.cache.keys), remember(values, step.cache.values);
                return step.output;
            });
        return tg::fetches{tg::fetch("next", tg::cast<std::int32_t>(argmax(scores, -1))), tg::fetch("scores", scores),
                           tg::fetch("kept", kept)};
    }
};

} // namespace models
