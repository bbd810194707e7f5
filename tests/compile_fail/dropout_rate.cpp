// expect: dropout: rate must lie in [0, 1)
// expect: dropout_rate.cpp:
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct all_dropped {
    constexpr auto operator()(auto scope, auto x) const { return tg::dropout(scope / "drop", x, {.rate = 1}); }
};

int main() {
    auto model = tg::compile<tg::graph>(all_dropped{}, tg::spec<float, tg::dyn, 2>{});
    model.predict(tg::zeros<float>({1, 2}));
}
