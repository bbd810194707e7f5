// expect: output and labels differ in shape
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct column {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "d", x, {.units = 1}); }
};
struct of_a_line { // [batch] beside [batch, 1]
    constexpr auto operator()(auto x, auto z) const { return tg::mean_squared_error{}(x, z); }
    static constexpr tg::tensor_spec labels(tg::dtype type, const tg::shape& output) {
        return {type, tg::detail::dims_without_last(output)};
    }
};

int main() { auto model = tg::compile<tg::graph>(column{}, tg::spec<float, tg::dyn, 2>{}, of_a_line{}, tg::sgd{}); }
