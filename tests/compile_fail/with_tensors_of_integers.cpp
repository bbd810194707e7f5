// Numbers have a floating-point type.
// expect: with_tensors: arguments are tensors, numbers, and vectors, arrays and number_tensors of numbers of a floating-point type
#include <tapegraph/number_tensor.hpp>

#include <vector>

namespace tg = tapegraph;

int main() {
    const auto f = tg::with_tensors([](const auto& x) { return x; });
    f(std::vector<int>{1, 2});
}
