// Graphs made at run time, without their header.
// expect: tg::traced needs #include <tapegraph/traced.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct net {
    int units = 1;
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "score", x, {.units = units}); }
};

int main(int argc, char**) {
    auto model = tg::compile<tg::traced>(net{argc}, tg::spec<float, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{}, tg::adam{});
    return static_cast<int>(model.parameter_count());
}
