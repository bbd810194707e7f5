#include <models/cats_and_dogs.hpp>
#include <nn/models.hpp>

namespace cats_and_dogs_test {

using namespace nn_test;

TEST_CASE("ten steps of the cats-and-dogs CNN give the same bits in both modes") {
    const auto make = [](auto mode) {
        return tg::compile<decltype(mode)>(models::cats_and_dogs{}, tg::spec<float, tg::dyn, 50, 50, 3>{},
                                           tg::sigmoid_cross_entropy{}, tg::sgd{.learning_rate = 0.01}, {.seed = 3});
    };
    auto g = make(tg::graph{});
    auto e = make(tg::eager{});
    CHECK(g.parameter_count() == 1674701);
    CHECK(g.trainable_parameter_count() == 1673801);
    for (int i = 0; i < 10; ++i) {
        CAPTURE(i);
        const auto x = noise<float>({2, 50, 50, 3}, 20 + static_cast<std::uint64_t>(i));
        const auto y = coin_flips<float>(2, static_cast<std::uint64_t>(i));
        const tg::step_result left = g.train_on_batch(x, y), right = e.train_on_batch(x, y);
        REQUIRE(left.loss == right.loss);
        REQUIRE(left.accuracy == right.accuracy);
        REQUIRE(first_difference(g, e) == "");
    }
    const auto x = noise<float>({3, 50, 50, 3}, 70);
    CHECK(same_bits(g.predict(x), e.predict(x)));
}

} // namespace cats_and_dogs_test
