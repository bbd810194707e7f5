// expect: ill_formed_model<
// expect: scan: in graph mode a cell prints and checks nothing
// expect: {"scan_effect.cpp:12"}
#include <tapegraph/nn/scan.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto made = tg::function<tg::graph>(
        [](auto xs, auto v) {
            const auto cell = [](auto state, auto x) { return std::pair{tg::print<"state">(tg::eval(state + x)), x}; };
            return tg::scan(cell, v, xs).sequence;
        },
        tg::spec<float, 2, 5, 3>{}, tg::spec<float, 2, 3>{});
}
