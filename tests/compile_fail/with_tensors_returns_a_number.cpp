// A tensor's element is a number: the derivative would be lost.
// expect: with_tensors: the function returns a tensor of the numbers' element type (use cast), or a std::tuple of such tensors
// expect-elsewhere: the check stands in the function that is called, which the compiler names first
#include <tapegraph/number_tensor.hpp>

#include <vector>

namespace tg = tapegraph;

int main() {
    const auto f = tg::with_tensors([](const auto& x) { return x.data()[0]; });
    f(std::vector<double>{1, 2});
}
