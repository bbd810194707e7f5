// A chain of transformations alone.
// expect: chain: exactly one element is an optimizer
// expect-elsewhere: a static_assert in the class
#include <tapegraph/tapegraph.hpp>

#include <tapegraph/nn/optimizers/clipping.hpp>

namespace tg = tapegraph;

int main() {
    tg::chain chain{tg::clip_by_global_norm{}, tg::clip_by_value{}};
}
