#include <nn/models.hpp>

namespace cnn_float_test {

using namespace nn_test;

namespace {
template <class Mode>
auto make() {
    return tg::compile<Mode>(small_cnn{}, cnn_spec<float>{}, tg::sigmoid_cross_entropy{},
                             tg::momentum{.learning_rate = 0.05}, {.seed = 11});
}
const auto batch = [](std::int64_t size, std::uint64_t seed) {
    return std::pair(noise<float>({size, 26, 26, 3}, seed), coin_flips<float>(size, seed + 1));
};
} // namespace

TEST_CASE("a float CNN trains to the same bits in both modes") {
    for (const int threads : {1, 2}) {
        CAPTURE(threads);
        const thread_limit limit(threads);
        for (const int size : {1, 3, 16}) {
            auto g = make<tg::graph>();
            auto e = make<tg::eager>();
            REQUIRE(first_difference(g, e) == "");
            train_alike(g, e, std::vector<int>(size == 3 ? 10 : 3, size), batch);
        }
    }
}

TEST_CASE("a float CNN trains to the same bits while the batch size changes") {
    for (const int threads : {1, 2}) {
        CAPTURE(threads);
        const thread_limit limit(threads);
        auto g = make<tg::graph>();
        auto e = make<tg::eager>();
        train_alike(g, e, {3, 16, 1, 7, 16, 2, 33, 1, 16, 5}, batch);
    }
}

TEST_CASE("a float CNN trains to the same bits on one thread and on two") {
    auto one = make<tg::graph>();
    auto two = make<tg::graph>();
    for (int i = 0; i < 5; ++i) {
        const auto [x, y] = batch(16, static_cast<std::uint64_t>(i));
        tg::set_thread_count(1);
        const double left = one.train_on_batch(x, y).loss;
        tg::set_thread_count(2);
        const double right = two.train_on_batch(x, y).loss;
        tg::set_thread_count(0);
        REQUIRE(left == right);
        REQUIRE(first_difference(one, two) == "");
    }
}

} // namespace cnn_float_test
