// A branch on values, in a step of one's own; its header is named first.
// expect: a model has no values yet: write tg::where(condition, a, b) for if and ?:, tg::scan for loops
// expect-longer-clang: clang prints the way into a model in twelve lines
#include <tapegraph/compile/training_step.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct fit {
    constexpr auto operator()(auto step, auto x) const {
        auto h = tg::dense(step / "out", x, {.units = 1});
        if (h > 0) h = relu(h);
        const auto loss = tg::eval(mean(square(h)));
        step.minimize(loss, "*");
        return loss;
    }
};

int main() { auto step = tg::compile_step<tg::graph>(fit{}, tg::spec<float, tg::dyn, 3>{}, tg::optimizers{tg::sgd{}}); }
