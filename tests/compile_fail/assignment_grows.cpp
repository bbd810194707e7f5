// expect: ill_formed_model<
// expect: the right side has more elements than the left; write a = a + b
// expect: {"assignment_grows.cpp:13"}
// expect: {"f32[6,4]"}
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    constexpr auto operator()(auto, auto x) const {
        auto row = x({0, 1});
        row *= 2;
        auto rows = x(tg::all, {0, 4}); // the operation before: += cannot ask for its line
        row += rows;
        return row;
    }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, 6, 4>{}); }
