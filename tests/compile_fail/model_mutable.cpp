// A lambda that is mutable.
// expect: the call of a model is const: constexpr auto operator()(auto scope, auto x) const
// expect: a lambda is not mutable
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto model = tg::compile<tg::graph>([](auto scope, auto x) mutable { return tg::dense(scope / "s", x, {.units = 1}); },
                                        tg::spec<float, tg::dyn, 2>{});
}
