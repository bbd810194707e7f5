// The transform of a function that captures: the message of the function itself.
// expect: a compiled function cannot capture: pass what it needs as an argument, or take tg::function<tg::traced>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    const float scale = 2;
    auto f =
        tg::function<tg::graph>(tg::gradient([scale](auto x) { return sum(x * x * scale); }), tg::spec<float, 4>{});
    f(tg::ones<float>({4}));
}
