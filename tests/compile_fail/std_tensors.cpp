// A function of std of two tensors, where std has one of any type: it would compare them.
// expect: leave_out_std
#include <tapegraph/tapegraph.hpp>

#include <algorithm>

namespace tg = tapegraph;

int main() {
    const tg::tensor<float> x = tg::ones<float>({2}), y = tg::ones<float>({2});
    const tg::tensor<float> z = tg::eval(std::max(x, y));
}
