// expect: this model has data members, which a compiled graph would ignore. Give it as a constant
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct mlp {
    int layers = 2;
    constexpr auto operator()(auto scope, auto x) const {
        auto h = x;
        for (int i = 0; i < layers; ++i) h = tanh(tg::dense(scope / i, h, {.units = 4}));
        return tg::dense(scope / "out", h, {.units = 1});
    }
};

int main() {
    auto model = tg::compile<tg::graph>(mlp{5}, tg::spec<float, tg::dyn, 4>{}, tg::mean_squared_error{}, tg::sgd{});
    return static_cast<int>(model.parameter_count());
}
