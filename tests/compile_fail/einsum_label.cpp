// expect: ill_formed_model<
// expect: {"einsum: extents of label j differ"}
// expect: {"einsum_label.cpp:14"}
// expect: {"f32[?,3,4]"}
// expect: {"f32[5,6]"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto f = tg::function<tg::graph>(
        [](auto x, auto w) {
            // The label of the summed axis is named: 4 on one side, 5 on the other.
            return einsum("bij,jk->bik", x, w);
        },
        tg::spec<float, tg::dyn, 3, 4>{}, tg::spec<float, 5, 6>{});
    f(tg::zeros<float>({1, 3, 4}), tg::zeros<float>({5, 6}));
}
