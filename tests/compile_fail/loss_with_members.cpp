// expect: this loss has data members, which a compiled graph would ignore
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct line {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "d", x, {.units = 1}); }
};
struct weighted {
    double weight = 1;
    constexpr auto operator()(auto x, auto z) const { return mean(square(x - z) * weight); }
    static constexpr tg::tensor_spec labels(tg::dtype type, const tg::shape& output) { return {type, output}; }
};

int main() {
    auto model = tg::compile<tg::graph>(line{}, tg::spec<float, tg::dyn, 2>{}, weighted{2}, tg::sgd{});
}
