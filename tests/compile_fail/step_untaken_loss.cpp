// expect: add_loss: in a step a loss must include it: step.with_added_losses(loss)
// expect-elsewhere: compile_step says it where it looks
// expect-longer-clang: the same
#include <tapegraph/compile/training_step.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct fit {
    constexpr auto operator()(auto step, auto x) const {
        const auto y = tg::dense(step / "out", x, {.units = 1});
        step.add_loss(mean(abs(y)));
        const auto loss = tg::eval(mean(square(y)));
        step.minimize(loss);
        return loss;
    }
};

int main() {
    auto step = tg::compile_step<tg::graph>(fit{}, tg::spec<float, tg::dyn, 3>{}, tg::optimizers{tg::sgd{}});
    return static_cast<int>(step.step());
}
