// expect: w: get_variable: it exists, and the scope is not one of reuse()
// expect: {"tower"}
// expect-longer-clang: clang lists the overloads it could not take
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct model {
    constexpr auto operator()(auto scope) const {
        const auto a = (scope / "tower").template get_variable<float>("w", {2});
        const auto b = (scope / "tower").template get_variable<float>("w", {2});
        return tg::fetches{tg::fetch("y", tg::eval(a + b))};
    }
};

int main() {
    tg::session<model> session;
    session.run<"y">();
}
