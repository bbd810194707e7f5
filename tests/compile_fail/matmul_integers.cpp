// expect: matmul: elements must be floating-point; cast<float>(x) converts them
// expect: {"matmul_integers.cpp:10"}
// expect: {"i32[2,3]"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto f = tg::function<tg::graph>(
        [](auto x, auto y) { return matmul(x, y); }, tg::spec<std::int32_t, 2, 3>{}, tg::spec<std::int32_t, 3, 4>{});
    f(tg::zeros<std::int32_t>({2, 3}), tg::zeros<std::int32_t>({3, 4}));
}
