// expect: ill_formed_model<
// expect: random::uniform: low must lie below high
// expect: {"random_range.cpp:10"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto f = tg::function<tg::graph>(
        [](auto x) { return tg::random::uniform_like(x, {2, 1}); }, tg::spec<float, 3>{});
    f(tg::zeros<float>({3}));
}
