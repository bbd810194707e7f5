#include <tapegraph/tapegraph.hpp>

#include <tapegraph/distributed.hpp>
#include <tapegraph/mpi.hpp>

#include <cstdio>

namespace tg = tapegraph;

struct line {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "line", x, {.units = 1}); }
};

// The chief prints the loss, with all its bits.
void train(tg::distributed::exchange& ranks) {
    auto model = tg::compile<tg::graph>(line{}, tg::spec<float, tg::dyn, 1>{}, tg::mean_squared_error{},
                                        tg::sgd{.learning_rate = 0.1}, tg::sharded{.shards = 2, .ranks = &ranks});
    const auto x = reshape(tg::tensor<float>{-1, 0, 1, 2}, {4, 1});
    const auto y = reshape(tg::tensor<float>{-1, 1, 3, 5}, {4, 1});
    double loss = 0;
    for (int step = 0; step < 50; ++step) loss = model.train_on_batch(x, y).loss;
    if (ranks.is_chief()) std::printf("%d ranks, loss %a\n", ranks.size(), loss);
}

int main(int argc, char** argv) { return tg::mpi_run(argc, argv, train); }
