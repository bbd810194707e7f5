// A result that is no number.
// expect: with_numbers: the function returns a number, or a sequence of numbers
// expect-elsewhere: the check stands in the function that is called, which the compiler names first
#include <tapegraph/number_tensor.hpp>

namespace tg = tapegraph;

int main() {
    const auto f = tg::with_numbers([](const auto&) { return "one"; });
    f(tg::tensor<double>{1, 2});
}
