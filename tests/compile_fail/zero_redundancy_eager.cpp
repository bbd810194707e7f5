// Eager mode has no program of slices.
// expect: zero_redundancy: in eager mode every rank has the optimizer's state whole; take graph mode
// expect-elsewhere: a static_assert in the model's constructor
// expect-longer: the chain from there names the whole model twice
#include <tapegraph/cluster/sharded.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct network {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "out", x, {.units = 3}); }
};

int main() {
    auto model = tg::compile<tg::eager>(network{}, tg::spec<float, tg::dyn, 6>{}, tg::mean_squared_error{},
                                        tg::zero_redundancy{tg::sgd{}}, tg::sharded{.shards = 4});
    return static_cast<int>(model.step());
}
