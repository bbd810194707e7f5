// A step of one's own that has data members.
// expect: this step has data members
#include <tapegraph/compile/training_step.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct fit {
    int units = 1;
    constexpr auto operator()(auto step, auto x) const {
        const auto loss = tg::eval(mean(square(tg::dense(step / "out", x, {.units = 1}))));
        step.minimize(loss);
        return loss;
    }
};

int main() {
    auto step = tg::compile_step<tg::graph>(fit{}, tg::spec<float, tg::dyn, 3>{}, tg::optimizers{tg::sgd{}});
}
