// A source of integers.
// expect: of a floating-point type
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    tg::tensor<int> w = tg::ones<int>({2});
    tg::gradient_tape tape;
    tape.watch(w);
}
