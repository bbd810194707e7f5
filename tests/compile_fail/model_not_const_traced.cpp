// The same of a model that is traced at run time.
// expect: the call of a model is const: constexpr auto operator()(auto scope, auto x) const
#include <tapegraph/tapegraph.hpp>
#include <tapegraph/traced.hpp>

namespace tg = tapegraph;

struct net {
    constexpr auto operator()(auto scope, auto x) {
        return tg::dense(scope / "score", x, {.units = 1});
    }
};

int main() {
    auto model = tg::compile<tg::traced>(net{}, tg::spec<float, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{}, tg::adam{});
}
