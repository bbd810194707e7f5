// The same of a model given as a constant.
// expect: the call of a model is const: constexpr auto operator()(auto scope, auto x) const
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct net {
    int units = 1;
    constexpr auto operator()(auto scope, auto x) {
        return tg::dense(scope / "score", x, {.units = units});
    }
};

int main() {
    auto model = tg::compile<tg::graph, net{3}>(tg::spec<float, tg::dyn, 2>{}, tg::mean_squared_error{}, tg::adam{});
}
