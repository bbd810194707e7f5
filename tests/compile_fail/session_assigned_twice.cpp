// expect: session: two operations of one run assign one variable
// expect-longer-clang: clang lists the overloads it could not take
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct model {
    constexpr auto operator()(auto scope) const {
        const auto w = scope.template variable<float>("w", {2});
        const auto loss = tg::sum(square(w));
        return tg::fetches{tg::fetch("train", tg::minimize(loss, tg::sgd{})), tg::fetch("reset", tg::assign(w, 0))};
    }
};

int main() {
    tg::session<model> session;
    session.run<"train", "reset">();
}
