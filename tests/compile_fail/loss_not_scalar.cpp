// In both modes: eager models are traced for their variables, too.
// expect: {"a loss must be a scalar
// expect-gcc: {"f32[?,1]"}
// expect-errors: 2, one for each call
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct line {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "d", x, {.units = 1}); }
};
struct of_each {
    constexpr auto operator()(auto x, auto z) const { return square(x - z); }
    static constexpr tg::tensor_spec labels(tg::dtype type, const tg::shape& output) { return {type, output}; }
};

int main() {
    auto eager = tg::compile<tg::eager>(line{}, tg::spec<float, tg::dyn, 2>{}, of_each{}, tg::sgd{});
    auto model = tg::compile<tg::graph>(line{}, tg::spec<float, tg::dyn, 2>{}, of_each{}, tg::sgd{});
}
