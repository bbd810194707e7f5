// expect: cached_attention: keys and values must be
// expect: {"cached_attention_heads.cpp:11"}
#include <tapegraph/nn/layers/grouped_attention.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct step {
    constexpr auto operator()(auto scope, auto x) const {
        const auto cache = tg::empty_attention_cache(x, 8, {.head_dim = 4, .num_query_heads = 2});
        const auto next = tg::cached_attention(scope / "look", x, cache, tg::fill<std::int32_t>(x, {}, 0), {.head_dim = 4});
        return next.output;
    }
};

const auto table = tg::summarize(step{}, tg::spec<float, tg::dyn, 1, 6>{});
