// expect: ill_formed_model<
// expect: scan: a derivative of a third
#include <tapegraph/nn/scan.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

constexpr auto cubes = [](auto v, auto xs) {
    return tg::eval(sum(tg::scan(
                            [](auto state, auto x) {
                                return std::pair{tg::eval(state * state * x), x};
                            },
                            v, xs)
                            .last));
};

int main() {
    auto made = tg::function<tg::graph>(
        [](auto xs, auto v) {
            const auto first = [xs](auto v) {
                return tg::eval(sum(tg::gradient([xs](auto v) { return cubes(v, xs); })(v)));
            };
            const auto second = [first](auto v) { return tg::eval(sum(tg::gradient(first)(v))); };
            const auto third = [second](auto v) { return tg::eval(sum(tg::gradient(second)(v))); };
            return tg::gradient(third)(v);
        },
        tg::spec<float, 2, 5, 3>{}, tg::spec<float, 2, 3>{});
}
