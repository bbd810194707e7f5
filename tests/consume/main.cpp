#include <tapegraph/tapegraph.hpp>

#include <cmath>
#include <cstdio>

namespace tg = tapegraph;

struct line {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "line", x, {.units = 1}); }
};

// One model in one mode; the loss after some steps.
template <class Mode>
double trained(const tg::tensor<float>& x, const tg::tensor<float>& y) {
    auto model = tg::compile<Mode>(line{}, tg::spec<float, tg::dyn, 1>{}, tg::mean_squared_error{},
                                   tg::sgd{.learning_rate = 0.1});
    double loss = 0;
    for (int step = 0; step < 50; ++step) loss = model.train_on_batch(x, y).loss;
    return loss;
}

int main() {
    std::printf("TapeGraph %d.%d.%d\n", TAPEGRAPH_VERSION_MAJOR, TAPEGRAPH_VERSION_MINOR, TAPEGRAPH_VERSION_PATCH);
    const auto x = reshape(tg::tensor<float>{-1, 0, 1, 2}, {4, 1});
    const auto y = reshape(tg::tensor<float>{-1, 1, 3, 5}, {4, 1});
    const double in_graph = trained<tg::graph>(x, y), eagerly = trained<tg::eager>(x, y);
    std::printf("loss %g\n", in_graph);
    // The same numbers in both modes, and a line is learned.
    return in_graph == eagerly && in_graph < 0.05 ? 0 : 1;
}
