// An array that has another length than its spec.
// expect: tg::function: std::arrays of the specs' extents and element types, and numbers for scalars; or tensors alone
#include <tapegraph/tapegraph.hpp>

#include <array>

namespace tg = tapegraph;

int main() {
    auto f = tg::function<tg::graph>([](auto x) { return sum(x); }, tg::spec<double, 3>{});
    f(std::array<double, 2>{1, 2});
}
