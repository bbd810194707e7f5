// A spec that was forgotten.
// expect: tg::compile<mode>(model, spec, loss, optimizer), or (model, spec) for prediction alone; mode: tg::graph, tg::eager or tg::traced; spec:
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct net {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "score", x, {.units = 1});
    }
};

int main() {
    auto model = tg::compile<tg::graph>(net{}, tg::sigmoid_cross_entropy{}, tg::adam{});
}
