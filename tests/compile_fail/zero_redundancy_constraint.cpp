// A norm along an axis is of the whole variable, of which a rank updates a slice.
// expect: zero_redundancy: a constraint looks at a whole variable, of which a rank updates a slice
// expect-elsewhere: the update is compiled where the step is
// expect-longer: the chain from there names the whole model twice
#include <tapegraph/cluster/sharded.hpp>
#include <tapegraph/nn/constraint.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "out", x, {.units = 3, .kernel_constraint = tg::constraints::max_norm{}});
    }
};

int main() {
    auto model = tg::compile<tg::graph>(network{}, tg::spec<float, tg::dyn, 6>{}, tg::mean_squared_error{},
                                        tg::zero_redundancy{tg::sgd{}}, tg::sharded{.shards = 4});
    return model.update_view().steps.size();
}
