// expect: ill_formed_model<
// expect: split: the extent
// expect: {"split_not_divisible.cpp:11"}
// expect: {"f32[6,4]"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::split<3>(x, 1)[0];
    }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, 6, 4>{}); }
