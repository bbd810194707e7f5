// expect: a graph node and an eager tensor cannot meet in one expression
// expect-elsewhere: the check stands in the function that is called, which the compiler names first
// expect-longer: the way there is long
// expect-errors-gcc: 3
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/ir/node.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>

namespace tg = tapegraph;

auto meet(tg::graph::node n, const tg::tensor<float>& t) { return tg::eval(n + t); }
