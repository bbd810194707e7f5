// expect: ill_formed_model<
// expect: {"multiply: element types differ"}
// expect: {"dtype_mismatch.cpp:14"}
// expect: {"f32[?,4]"}
// expect: {"f64[4]"}
// expect: {"wide"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = (scope / "wide").template variable<double>("w", {4});
        return eval(x * w);
    }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, tg::dyn, 4>{}); }
