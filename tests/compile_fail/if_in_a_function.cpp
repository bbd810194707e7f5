// A branch on values, in a function.
// expect: a model has no values yet: write tg::where(condition, a, b) for if and ?:, tg::scan for loops
// expect-longer-clang: clang prints the way into a function in nine lines
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    auto f = tg::function<tg::graph>([](auto x) { 
        if (sum(x) > 0) return tg::eval(x + 1);
        return tg::eval(x);
    }, tg::spec<float, 3>{});
}
