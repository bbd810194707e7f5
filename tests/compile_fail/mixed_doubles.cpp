// A 16-bit policy for doubles.
// expect: mixed: a model of doubles has no 16-bit policy, inputs are float or integers
// expect: mixed_doubles.cpp:
#include <tapegraph/tapegraph.hpp>

#include <tapegraph/nn/mixed_precision.hpp>

namespace tg = tapegraph;

struct network {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "out", x, {.units = 1}); }
};

int main() {
    auto model = tg::compile<tg::graph>(tg::mixed<tg::half>(network{}), tg::spec<double, tg::dyn, 2>{});
    model.predict(tg::zeros<double>({1, 2}));
}
