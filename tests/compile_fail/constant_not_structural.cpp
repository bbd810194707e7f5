// A model whose members are private, given as a constant.
// expect: Members of such a model are public
// expect: tg::compile<tg::traced>(model, spec, ...)
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

class net {
    int units_;

public:
    constexpr explicit net(int units) : units_(units) {}
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "score", x, {.units = units_});
    }
};

int main() {
    auto model = tg::compile<tg::graph, net(3)>(tg::spec<float, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{}, tg::adam{});
}
