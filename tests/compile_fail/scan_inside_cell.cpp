// expect: ill_formed_model<
// expect: matmul: inner extents differ
// expect: {"scan_inside_cell.cpp:15"}
// expect: {"f32[2,3]"}
// expect: {"f32[4,4]"}
#include <tapegraph/nn/scan.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto made = tg::function<tg::graph>(
        [](auto xs, auto v, auto w) {
            const auto cell = [](auto state, auto x, auto w) {
                const auto next = tg::eval(state + matmul(x, w));
                return std::pair{next, next};
            };
            return tg::scan(cell, v, xs, w).sequence;
        },
        tg::spec<float, 2, tg::dyn, 3>{}, tg::spec<float, 2, 4>{}, tg::spec<float, 4, 4>{});
}
