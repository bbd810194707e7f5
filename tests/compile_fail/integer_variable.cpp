// expect: variables are float or double
// expect-elsewhere: the check stands in the function that is called, which the compiler names first
// expect-longer: the way there is long
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct counter {
    constexpr auto operator()(auto scope, auto x) const {
        scope.template variable<int>("count", {}, {.trainable = false});
        return x + x;
    }
};

int main() {
    auto model = tg::compile<tg::graph>(counter{}, tg::spec<float, tg::dyn, 2>{});
}
