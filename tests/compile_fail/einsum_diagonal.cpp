// expect: ill_formed_model<
// expect: einsum: label i is repeated and its extent is not a number
// expect: {"einsum_diagonal.cpp:14"}
// expect: {"f32[?,?]"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto f = tg::function<tg::graph>(
        [](auto x) {
            // A diagonal is a slice of a row of n * n elements: n must be known while tracing. (This was once an
            // endless loop instead of a message.)
            return einsum("ii->i", x);
        },
        tg::spec<float, tg::dyn, tg::dyn>{});
    f(tg::zeros<float>({2, 2}));
}
