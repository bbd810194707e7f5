// expect: ill_formed_model<
// expect-longer-clang: clang lists the overloads it could not take
// expect: session: the model has no fetch of this name
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct model {
    constexpr auto operator()(auto scope) const {
        const auto x = scope.template placeholder<float>("x");
        return tg::fetches{tg::fetch("y", tg::eval(x * x))};
    }
};

int main() {
    tg::session<model> session;
    session.run<"z">({{"x", 1.f}});
}
