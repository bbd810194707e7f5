// The norm of a variable's gradient is not known to a rank that has a slice.
// expect: zero_redundancy: the update of a variable, of which a rank has a slice, must be elementwise
// expect-elsewhere: the update is compiled where the step is
// expect-longer: the chain from there names the whole model twice
#include <tapegraph/cluster/sharded.hpp>
#include <tapegraph/nn/optimizers/clipping.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct network {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "out", x, {.units = 3}); }
};

int main() {
    auto model =
        tg::compile<tg::graph>(network{}, tg::spec<float, tg::dyn, 6>{}, tg::mean_squared_error{},
                               tg::zero_redundancy{tg::chain{tg::clip_by_norm{}, tg::sgd{}}}, tg::sharded{.shards = 4});
    return model.update_view().steps.size();
}
