// A branch on values, in a loss.
// expect: a model has no values yet: write tg::where(condition, a, b) for if and ?:, tg::scan for loops
// expect-longer-clang: clang prints the way into a model in twelve lines
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct own_loss {
    static constexpr tg::tensor_spec labels(tg::dtype type, const tg::shape& output) { return {type, output}; }
    constexpr auto operator()(auto x, auto z) const {
        if (mean(x) > 1) return tg::mean(square(x - z));
        return tg::mean(square(z));
    }
};

struct net {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "out", x, {.units = 2}); }
};

int main() { auto model = tg::compile<tg::graph>(net{}, tg::spec<float, tg::dyn, 2>{}, own_loss{}, tg::adam{}); }
