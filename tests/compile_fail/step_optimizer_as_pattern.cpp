// An optimizer where a step names variables.
// expect: step.minimize(loss, "generator") takes a scalar of the step and a pattern of variables
// expect: step.template minimize<1>(loss, "generator")
// expect-longer-clang: clang prints the way into a model in twelve lines
// expect-errors-clang: 2, of the template and of what it is made into
#include <tapegraph/compile/training_step.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct fit {
    constexpr auto operator()(auto step, auto x) const {
        const auto loss = tg::eval(mean(square(tg::dense(step / "out", x, {.units = 1}))));
        step.minimize(loss, tg::sgd{});
        return loss;
    }
};

int main() {
    auto step = tg::compile_step<tg::graph>(fit{}, tg::spec<float, tg::dyn, 3>{}, tg::optimizers{tg::sgd{}});
}
