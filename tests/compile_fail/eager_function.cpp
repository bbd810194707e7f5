// expect: ill_formed_model<
// expect: {"matmul: inner extents differ"}
// expect: {"eager_function.cpp:12"}
// expect: {"f32[?,3]"}
// expect: {"f32[4,2]"}
// A function in eager mode promises its specs, too: the compiler says what graph mode's compiler says.
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto f = tg::function<tg::eager>([](auto x, auto w) { return matmul(x, w); }, tg::spec<float, tg::dyn, 3>{},
                                     tg::spec<float, 4, 2>{});
    return static_cast<int>(f(tg::zeros<float>({1, 3}), tg::zeros<float>({4, 2})).size());
}
