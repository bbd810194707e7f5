// expect: matmul, dot, einsum: elements must be floating-point; cast<float>(x) converts them
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() { tg::matmul(tg::zeros<std::int32_t>({2, 3}), tg::zeros<std::int32_t>({3, 4})); }
