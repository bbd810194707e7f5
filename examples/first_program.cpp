#include <tapegraph/tapegraph.hpp>

#include <tapegraph/data/synthetic.hpp>

#include <cstdio>

namespace tg = tapegraph;

// Written once: `x` is a node of a graph while the program is compiled, or a tensor while it runs.
struct classifier {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "hidden", x, {.units = 32});
        return tg::dense(scope / "score", tanh(h), {.units = 1});
    }
};

template <class Mode>
void train(const char* name, const tg::data::dataset& moons) {
    auto model = tg::compile<Mode>(classifier{}, tg::spec<float, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{},
                                   tg::adam{.learning_rate = 0.02});
    const auto history = model.fit(moons, {.epochs = 20, .batch_size = 32, .verbose = false});
    for (std::size_t epoch : {0, 4, 9, 19})
        std::printf("%s, epoch %2zu: loss %.4f, accuracy %.3f\n", name, epoch + 1, history.epochs[epoch].loss,
                    history.epochs[epoch].accuracy);
}

int main() {
    const auto points = tg::data::two_moons(512, 1);
    tg::data::dataset moons;
    moons.add("point", points.points, {2});
    moons.add("label", std::vector<float>(points.labels.begin(), points.labels.end()), {1});

    train<tg::graph>("graph", moons); // the training step is compiled with this program
    train<tg::eager>("eager", moons); // the model runs statement by statement, a tape records it
}
