// expect: session: a variable is not given: assign to it
// expect-longer-clang: clang lists the overloads it could not take
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct model {
    constexpr auto operator()(auto scope) const {
        const auto w = scope.template variable<float>("w", {});
        return tg::fetches{tg::fetch("w", w), tg::fetch("y", tg::eval(w * w))};
    }
};

int main() {
    tg::session<model> session;
    session.run<"y">(tg::given<"w">(1.f));
}
