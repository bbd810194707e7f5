// expect: dense: input needs an axis of features
// expect: dense_of_a_scalar.cpp:
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct scalar_dense {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "d", sum(x), {.units = 1}); }
};

int main() {
    auto model = tg::compile<tg::graph>(scalar_dense{}, tg::spec<float, tg::dyn, 2>{});
    model.predict(tg::zeros<float>({1, 2}));
}
