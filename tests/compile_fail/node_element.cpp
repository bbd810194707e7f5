// expect: ill_formed_model<
// expect: x(i, j) reads a number from a tensor; of a node take x[i][j]
// expect: {"node_element.cpp:9"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    constexpr auto operator()(auto, auto x) const { return x * x(0, 1); }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, 6, 4>{}); }
