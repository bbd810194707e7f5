// expect: minimize: the loss must be a scalar (reduce it, say with mean)
// expect-longer-clang: clang lists the overloads it could not take
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct model {
    constexpr auto operator()(auto scope) const {
        const auto w = scope.template variable<float>("w", {2});
        return tg::fetches{tg::fetch("train", tg::minimize(square(w), tg::sgd{}))};
    }
};

int main() {
    tg::session<model> session;
    session.run<"train">();
}
