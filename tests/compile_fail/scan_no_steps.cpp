// expect: ill_formed_model<
// expect: {"scan: a sequence of no steps"}
// expect: {"f32[2,0,3]"}
#include <tapegraph/nn/scan.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto made = tg::function<tg::graph>(
        [](auto xs, auto v) {
            return tg::scan([](auto state, auto x) { return std::pair{tg::eval(state + x), x}; }, v, xs).sequence;
        },
        tg::spec<float, 2, 0, 3>{}, tg::spec<float, 2, 3>{});
}
