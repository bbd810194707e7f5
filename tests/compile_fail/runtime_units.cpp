// Units that are known only at run time, in eager mode.
// expect: Give it as a constant
// expect: give it to tg::compile<tg::traced>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct net {
    int units = 1;
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "score", x, {.units = units});
    }
};

int main(int argc, char**) {
    auto model = tg::compile<tg::eager>(net{argc}, tg::spec<float, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{}, tg::adam{});
}
