// expect: ill_formed_model<
// expect: custom_gradient: a derivative has another shape or type than its argument
// expect: {"f32[]"}
// expect: {"f32[4]"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

constexpr auto wrong = tg::custom_gradient([](auto x) { return 2 * x; }, [](auto dy, auto) { return sum(dy); });

int main() {
    auto made = tg::function<tg::graph>([](auto x) { return tg::gradient([](auto v) { return sum(wrong(v)); })(x); }, tg::spec<float, 4>{});
}
