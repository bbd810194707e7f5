// Of tg::function, in both modes.
// expect: matmul: inner extents differ
// expect-errors: 2, one for each call
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

constexpr auto loss_of = [](auto x, auto w) { return sum(matmul(concat(x, x, 1), w)); };

int main() {
    auto f = tg::function<tg::graph>(loss_of, tg::spec<float, tg::dyn, 4>{}, tg::spec<float, 4, 3>{});
    auto g = tg::function<tg::eager>(loss_of, tg::spec<float, tg::dyn, 4>{}, tg::spec<float, 4, 3>{});
    const tg::tensor<float> x = tg::ones<float>({2, 4}), w = tg::ones<float>({4, 3});
    return static_cast<int>(f(x, w).item() + g(x, w).item());
}
