// expect: ill_formed_model<
// expect: {"reduction: axis outside the rank"}
// expect: {"axis_out_of_range.cpp:11"}
// expect: {"f32[?,4]"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    constexpr auto operator()(auto scope, auto x) const {
        return sum(tanh(x), 2);
    }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, tg::dyn, 4>{}); }
