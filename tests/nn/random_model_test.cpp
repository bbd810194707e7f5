#include <nn/models.hpp>

/// A model that draws through its scope and by random operations trains to the same bits in both modes: they share one
/// count of draws.

namespace random_model_test {

using namespace nn_test;

namespace {

struct noisy_mlp {
    constexpr auto operator()(auto scope, auto x) const {
        const auto noise = tg::random::truncated_normal_like(x, {0, 0.1});
        auto h = tg::dense(scope / "hidden", x + noise, {.units = 9});
        h = tg::dropout(scope / "drop", tanh(h), {.rate = 0.3});
        if (scope.training()) h = tg::dropout(h, 0.2);
        const auto slopes = tg::random::uniform(h, {9}, {0.5, 1.5});
        return tg::dense(scope / "out", h * slopes, {.units = 3});
    }
};

} // namespace

TEST_CASE("random operations in a model: the same bits in both modes") {
    const auto batch = [](std::int64_t size, std::uint64_t seed) {
        return std::pair(noise<float>({size, 6}, seed), classes(size, 3, seed));
    };
    const auto make = [](auto mode) {
        return tg::compile<decltype(mode)>(noisy_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{},
                                           tg::adam{.learning_rate = 0.01}, {.seed = 2});
    };
    auto g = make(tg::graph{});
    auto e = make(tg::eager{});
    tg::random::set_seed(99); // a model has a seed of its own
    const tg::tensor<double> before = tg::random::normal_like(tg::zeros<double>({3}));
    tg::random::set_seed(99);
    train_alike(g, e, {16, 1, 3, 300, 16}, batch);
    CHECK(same_bits(tg::random::normal_like(before), before)); // and leaves the free stream alone
    const auto x = noise<float>({5, 6}, 4);
    CHECK(same_bits(g.predict(x), e.predict(x)));
    tg::random::set_seed(0);
}

} // namespace random_model_test
