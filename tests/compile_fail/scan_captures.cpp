// expect: scan: in graph mode a cell cannot capture: pass what it needs as an argument, or take tg::traced
#include <tapegraph/nn/scan.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto made = tg::function<tg::graph>(
        [](auto xs, auto v) {
            return tg::scan([v](auto state, auto x) { return std::pair{tg::eval(state + x * v), x}; }, v, xs).sequence;
        },
        tg::spec<float, 2, 5, 3>{}, tg::spec<float, 2, 3>{});
}
