// The model of README.md's first program, traced when the program runs.
#include <tapegraph/traced.hpp>

#include <tapegraph/data/synthetic.hpp>

#include <cstdio>

namespace tg = tapegraph;

struct classifier {
    auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "hidden", x, {.units = 32});
        return tg::dense(scope / "score", tanh(h), {.units = 1});
    }
};

int main() {
    const auto points = tg::data::two_moons(512, 1);
    tg::data::dataset moons;
    moons.add("point", points.points, {2});
    moons.add("label", std::vector<float>(points.labels.begin(), points.labels.end()), {1});

    auto model = tg::compile<tg::traced>(classifier{}, tg::spec<float, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{},
                                         tg::adam{.learning_rate = 0.02});
    const auto history = model.fit(moons, {.epochs = 20, .batch_size = 32, .verbose = false});
    std::printf("loss %.4f\n", history.epochs.back().loss);
}
