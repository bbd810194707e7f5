// Norms of a variable whose gradient is taken by rows.
// expect: clip_by_global_norm: the norm of a sparse gradient is not known, its rows may repeat
#include <tapegraph/tapegraph.hpp>

#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/optimizers/clipping.hpp>

namespace tg = tapegraph;

struct words {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::embedding(scope / "e", x, {.input_dim = 7, .output_dim = 5, .sparse = true});
    }
};

int main() {
    auto model = tg::compile<tg::eager>(words{}, tg::spec<float, tg::dyn, 2>{}, tg::mean_squared_error{},
                                        tg::chain{tg::clip_by_global_norm{}, tg::sgd{}});
}
