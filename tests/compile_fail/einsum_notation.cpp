// expect: ill_formed_model<
// expect: einsum: label z of the result is in no operand
// expect: {"einsum_notation.cpp:10"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto f = tg::function<tg::graph>(
        [](auto x) { return einsum("ij->iz", x); }, tg::spec<float, tg::dyn, 3>{});
    f(tg::zeros<float>({1, 3}));
}
