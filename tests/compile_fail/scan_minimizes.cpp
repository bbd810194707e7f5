// A step of an optimizer in the cell of a scan.
// expect: minimize: not in a cell of a scan
// expect-longer-clang: clang lists the overloads it could not take
#include <tapegraph/nn/scan.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct cell {
    constexpr auto operator()(auto state, auto x) const {
        const auto next = tg::eval(state + x);
        const auto train = tg::minimize(mean(next), tg::sgd{});
        return std::pair{next, next};
    }
};
struct model {
    constexpr auto operator()(auto scope) const {
        const auto xs = scope.template placeholder<float>("xs", {2, -1});
        const auto w = scope.template variable<float>("w", {2});
        const auto [last, all] = tg::scan(cell{}, w, xs);
        return tg::fetches{tg::fetch("y", last)};
    }
};

int main() {
    tg::session<model> session;
    session.run<"y">({{"xs", tg::ones<float>({2, 4})}});
}
