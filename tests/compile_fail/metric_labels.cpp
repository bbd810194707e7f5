// expect: output and labels differ in shape
#include <tapegraph/tapegraph.hpp>

#include <tapegraph/nn/metrics/confusion.hpp>

namespace tg = tapegraph;

struct line {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "d", x, {.units = 3}); }
};

int main() {
    auto model = tg::compile<tg::graph>(line{}, tg::spec<float, tg::dyn, 2>{}, tg::sparse_softmax_cross_entropy{},
                                        tg::sgd{}, tg::metrics{tg::precision{}});
}
