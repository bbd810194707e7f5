// expect: ill_formed_model<
// expect: {"scan: the cell
// expect-gcc: new state has another shape or type than the state"}
// expect: {"f32[2,7]"}
// expect: {"f32[2,4]"}
#include <tapegraph/nn/scan.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto made = tg::function<tg::graph>(
        [](auto xs, auto v) {
            const auto cell = [](auto state, auto x) { return std::pair{tg::concat(state, x, 1), x}; };
            return tg::scan(cell, v, xs).sequence;
        },
        tg::spec<float, 2, 5, 3>{}, tg::spec<float, 2, 4>{});
}
