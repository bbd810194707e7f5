// expect: ill_formed_model<
// expect: reshape: number of elements differs
// expect: {"reshape_count.cpp:11"}
// expect: {"f32[6,4]"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    constexpr auto operator()(auto scope, auto x) const {
        return reshape(x, {5, 5});
    }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, 6, 4>{}); }
