// What the compiler computes on the way to a graph function stays in the compiler, also at -O0: it was 31 MB of constants.
// expect-success
// expect-object: 4000000
// flags: -O0 -DTG_INSTRUCTION_SETS=4
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto f =
        tg::function<tg::graph>([](auto a, auto b) { return sum(a * b); }, tg::spec<float, 3>{}, tg::spec<float, 3>{});
    f(tg::ones<float>({3}), tg::ones<float>({3}));
}
