#pragma once

#include "gpt.hpp"

#include <tapegraph/nn/layers/grouped_attention.hpp>

#include <array>
#include <cstddef>
#include <utility>

namespace models {

/// The GPT that continues a text by one character: maps it [batch, 1], its place and the keys and
/// values of the characters before it to the likeliest next one, its logits and the new keys and
/// values. Variables are those of `gpt`.
struct next_character {
    static constexpr std::int64_t capacity = gpt::time;

    constexpr auto operator()(auto scope, auto character, auto place, auto... kept) const {
        namespace tg = tapegraph;
        std::array caches{kept...};
        const auto scores = gpt::logits(
            scope, character, [&](auto table) { return gather(table, place, 0); },
            [&](auto at, auto h, int i) {
                const auto n = static_cast<std::size_t>(2 * i);
                const auto step =
                    tg::cached_attention(at, h, tg::attention_cache{caches[n], caches[n + 1]}, place,
                                         {.head_dim = gpt::width / gpt::heads, .num_query_heads = gpt::heads});
                caches[n] = step.cache.keys, caches[n + 1] = step.cache.values;
                return step.output;
            });
        const auto next = tg::cast<std::int32_t>(argmax(scores, -1));
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return tg::outputs{tg::output<"next">(next), tg::output<"scores">(scores), tg::output<name(I)>(caches[I])...};
        }(std::make_index_sequence<sizeof...(kept)>{});
    }

    /// "kept_00" to "kept_11".
    static constexpr auto name(std::size_t i) {
        tapegraph::fixed_string<8> text("kept_00");
        text.text[5] = static_cast<char>('0' + i / 10), text.text[6] = static_cast<char>('0' + i % 10);
        return text;
    }
    static constexpr auto specs() {
        namespace tg = tapegraph;
        using cache = tg::spec<float, tg::dyn, capacity, gpt::heads, gpt::width / gpt::heads>;
        return []<std::size_t... I>(std::index_sequence<I...>) {
            return tg::inputs{tg::input<"character">(tg::spec<std::int32_t, tg::dyn, 1>{}),
                              tg::input<"place">(tg::spec<std::int32_t>{}), tg::input<name(I)>(cache{})...};
        }(std::make_index_sequence<2 * gpt::blocks>{});
    }
};

} // namespace models
