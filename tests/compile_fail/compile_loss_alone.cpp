// A loss without an optimizer.
// expect: a loss needs an optimizer
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct net {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "score", x, {.units = 1}); }
};

int main() { auto model = tg::compile<tg::graph>(net{}, tg::spec<float, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{}); }
