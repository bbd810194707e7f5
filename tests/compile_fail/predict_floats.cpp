// Floats for a model of doubles.
// expect: give it tg::cast<float>(x), or compile it for tg::spec<double, ...>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct net {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "score", x, {.units = 1});
    }
};

int main() {
    auto model = tg::compile<tg::graph>(net{}, tg::spec<double, tg::dyn, 2>{});
    const auto y = model.predict(tg::ones<float>({3, 2}));
}
