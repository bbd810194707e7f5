// What stands before loss_scaling would see gradients multiplied by the scale.
// expect: chain: loss_scaling must come first
// expect-elsewhere: a static_assert in the class
#include <tapegraph/tapegraph.hpp>

#include <tapegraph/nn/optimizers/clipping.hpp>
#include <tapegraph/nn/optimizers/loss_scaling.hpp>

namespace tg = tapegraph;

int main() { tg::chain chain{tg::clip_by_global_norm{}, tg::loss_scaling{}, tg::sgd{}}; }
