// expect: an expression cannot be assigned to: it is a formula without a value
// expect-elsewhere: the check stands in the function that is called, which the compiler names first
// expect-longer: the way there is long
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct wrong {
    constexpr auto operator()(auto, auto x) const {
        auto h = relu(x);
        h = h * 2;
        return eval(h);
    }
};

int main() { auto model = tg::compile<tg::graph>(wrong{}, tg::spec<float, tg::dyn, 4>{}); }
