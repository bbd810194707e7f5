// A lambda of a function, one of each mode would be two mistakes.
// expect: a compiled function cannot capture: pass what it needs as an argument
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    const float scale = 2;
    auto f = tg::function<tg::graph>([&scale](auto x) { return x * scale; }, tg::spec<float, 4>{});
    f(tg::ones<float>({4}));
}
