// expect: ill_formed_model<
// expect: gather, scatter_add: axis
// expect: {"gather_axis.cpp:12"}
// expect: {"f32[6,4]"}
// expect: {"i32[6]"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    constexpr auto operator()(auto scope, auto x) const {
        return gather(x, argmax(x, 1), 2);
    }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, 6, 4>{}); }
