// A tensor of numbers as a condition.
// expect: a tensor of numbers is not a condition: compare it, x > 0, or take its number, x.item()
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    const tg::tensor<float> x = tg::ones<float>({3});
    if (x) return 1;
}
