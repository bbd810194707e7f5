// A program of integers.
// expect: tg::record takes functions of double or float
// expect-elsewhere: the check stands in the function that is called, which the compiler names first
#include <tapegraph/number_program.hpp>

#include <vector>

namespace tg = tapegraph;

int main() { tg::record([](const auto& x) { return x[0] * x[1]; }, std::vector<int>{1, 2}); }
