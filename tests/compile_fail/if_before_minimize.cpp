// A step that minimizes on a condition.
// expect: a model has no values yet: write tg::where(condition, a, b) for if and ?:, tg::scan for loops
// expect-longer-clang: clang prints the way into a step in twelve lines
#include <tapegraph/compile/training_step.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct fit {
    constexpr auto operator()(auto step, auto x) const {
        const auto loss = tg::eval(mean(square(tg::dense(step / "out", x, {.units = 1}))));
        if (loss < 1) step.minimize(loss, "*");
        return loss;
    }
};

int main() {
    auto step = tg::compile_step<tg::graph>(fit{}, tg::spec<float, tg::dyn, 3>{}, tg::optimizers{tg::sgd{}});
}
