// A loss of the whole batch has no loss per record.
// expect: weighted needs a loss
#include <tapegraph/tapegraph.hpp>

#include <tapegraph/nn/losses/overlap.hpp>

namespace tg = tapegraph;

struct line {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "d", x, {.units = 1}); }
};

int main() {
    auto model = tg::compile<tg::graph>(line{}, tg::spec<float, tg::dyn, 2>{}, tg::weighted{tg::tversky{}}, tg::sgd{});
}
