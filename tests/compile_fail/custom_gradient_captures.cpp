// expect: in graph mode the backward function of custom_gradient cannot capture
// expect-elsewhere: the check stands in the function that is called, which the compiler names first
// expect-longer: the way there is long
// expect-errors: 3
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
