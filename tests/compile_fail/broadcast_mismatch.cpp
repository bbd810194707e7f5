// expect: ill_formed_model<
// expect: {"add: shapes do not broadcast"}
// expect: {"broadcast_mismatch.cpp:14"}
// expect: {"f32[?,4]"}
// expect: {"f32[3]"}
// expect: {"block/2"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = (scope / "block" / 2).variable_like(x, "w", {3});
        return eval(x + w * 2);
    }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, tg::dyn, 4>{}); }
