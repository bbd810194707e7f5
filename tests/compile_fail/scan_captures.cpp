// expect: scan: in graph mode a cell cannot capture
// expect-elsewhere: the check stands in the function that is called, which the compiler names first
// expect-longer: the way there is long
// expect-errors: 3
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
