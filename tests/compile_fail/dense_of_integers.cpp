// A layer of weights over integers.
// expect: matmul: element types differ
// expect: i32[?,2]
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct net {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "score", tg::cast<std::int32_t>(x), {.units = 1});
    }
};

int main() {
    auto model = tg::compile<tg::graph>(net{}, tg::spec<float, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{}, tg::adam{});
}
