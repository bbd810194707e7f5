// expect: matmul, dot, einsum: elements must be floating-point; cast<float>(x) converts them
// expect-elsewhere: a kernel says so
// expect-longer: the way there is long
// expect-errors-clang: 2
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() { tg::matmul(tg::zeros<std::int32_t>({2, 3}), tg::zeros<std::int32_t>({3, 4})); }
