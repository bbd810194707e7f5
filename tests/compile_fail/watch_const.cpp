// A source that is const.
// expect: watch marks tensors as sources: tg::tensor<float> w = ...; neither const nor temporary
// expect-longer-clang: clang shows the macro, too
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    const tg::tensor<float> w = tg::ones<float>({2});
    tg::gradient_tape tape;
    tape.watch(w);
}
