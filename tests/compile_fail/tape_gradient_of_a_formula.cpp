// A gradient by what is no tensor.
// expect: gradient takes a tensor or formula, and tensors that were watched: tape.gradient(loss, w)
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    tg::tensor<float> w = tg::ones<float>({2});
    tg::gradient_tape tape;
    tape.watch(w);
    const auto d = tape.gradient(sum(w), 2 * w);
}
