// A transformation of gradients after the optimizer.
// expect: chain: what transforms gradients, accumulates or skips must come before the optimizer
// expect-elsewhere: a static_assert in the class
#include <tapegraph/tapegraph.hpp>

#include <tapegraph/nn/optimizers/clipping.hpp>

namespace tg = tapegraph;

int main() { tg::chain chain{tg::sgd{}, tg::clip_by_value{}}; }
