// expect: ill_formed_model<
// expect: {"assign: shape or type of
// expect: {"f32[3,2]"}
// expect: {"f32[2]"}
// expect: {"eager_model.cpp:15"}
// An optimizer that eager mode would run: its update is traced, and refused as in graph mode.
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    static constexpr int count = 1;
    std::array<double, count> numbers(std::int64_t) const { return {0.1}; }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        slots.assign(w, sum(w - (1 - n[0]) * g, 0));
    }
};
struct network {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "d", x, {.units = 2}); }
};

int main() {
    auto model = tg::compile<tg::eager>(network{}, tg::spec<float, tg::dyn, 3>{}, tg::mean_squared_error{}, wrong{});
    return static_cast<int>(model.parameter_count());
}
