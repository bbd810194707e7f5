// Tensors of integers have no derivatives.
// expect: with_numbers: arguments are tensors of double, or of float, in eager mode; in graph mode write the function with tensors
// expect-errors-clang: 2, because it names the template and its instance
#include <tapegraph/number_tensor.hpp>

namespace tg = tapegraph;

int main() {
    const auto f = tg::with_numbers([](const auto& x) { return x[0]; });
    f(tg::tensor<int>{1, 2});
}
