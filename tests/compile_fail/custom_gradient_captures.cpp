// expect: custom_gradient: in graph mode backward cannot capture: pass what it needs as an argument of both functions, or take tg::traced
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto made = tg::function<tg::graph>(
        [](auto x) {
            const auto scaled = tg::custom_gradient([](auto v) { return v; }, [x](auto dy, auto) { return dy * x; });
            return tg::gradient([&](auto v) { return sum(scaled(v)); })(x);
        },
        tg::spec<float, 4>{});
}
