// expect: ill_formed_model<
// expect: concat: extents
// expect: {"concat_extents.cpp:13"}
// expect: {"f32[6,4]"}
// expect: {"f32[6,3]"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    constexpr auto operator()(auto scope, auto x) const {
        const auto narrow = slice(x, {tg::all, {0, 3}});
        return tg::concat({x, x, narrow}, 0);
    }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, 6, 4>{}); }
