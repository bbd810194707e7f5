// A const that is missing.
// expect: the call of a model is const: constexpr auto operator()(auto scope, auto x) const
// expect-errors: 2, one for each call
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct net {
    constexpr auto operator()(auto scope, auto x) {
        return tg::dense(scope / "score", x, {.units = 1});
    }
};

int main() {
    auto model = tg::compile<tg::graph>(net{}, tg::spec<float, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{}, tg::adam{});
    auto other = tg::compile<tg::eager>(net{}, tg::spec<float, tg::dyn, 2>{});
}
