// A step of a session without an optimizer.
// expect: minimize takes a loss, a scalar of the model, and an optimizer: tg::minimize(mean(square(y)), tg::sgd{0.1})
// expect-elsewhere: minimize says it, so that nothing is said of the session
// expect-longer-clang: clang prints the way into a session in twelve lines
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct net {
    constexpr auto operator()(auto scope) const {
        const auto w = scope.template variable<float>("w", {2});
        return tg::fetches{tg::fetch("train", tg::minimize(sum(square(w))))};
    }
};

int main() {
    tg::session<net> session;
    session.run<"train">();
}
