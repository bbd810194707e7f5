// expect: in graph mode the backward function of custom_gradient cannot capture
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    tg::function<tg::graph>(
        [](auto x) {
            const auto scaled = tg::custom_gradient([](auto v) { return v; }, [x](auto dy, auto) { return dy * x; });
            return tg::gradient([&](auto v) { return sum(scaled(v)); })(x);
        },
        tg::spec<float, 4>{});
}
