#pragma once

#include <nn/models.hpp>

namespace nn_test {

/// Ten steps of an MLP under Adam in both modes: the same bits, at several batch sizes, on one thread and on two.
template <class T>
void check_mlp_modes() {
    const auto batch = [](std::int64_t size, std::uint64_t seed) {
        return std::pair(noise<T>({size, 6}, seed), classes(size, 3, seed));
    };
    const auto make = [](auto mode) {
        return tg::compile<decltype(mode)>(small_mlp{}, mlp_spec<T>{}, tg::sparse_softmax_cross_entropy{},
                                           tg::adam{.learning_rate = 0.01}, {.seed = 2});
    };
    const std::vector<std::vector<int>> runs{std::vector<int>(10, 1), std::vector<int>(10, 3), std::vector<int>(10, 16),
                                             {16, 1, 3, 700, 5, 16, 2, 1, 3, 16}};
    for (const int threads : {1, 2}) {
        CAPTURE(threads);
        const thread_limit limit(threads);
        for (const auto& sizes : runs) {
            auto g = make(tg::graph{});
            auto e = make(tg::eager{});
            REQUIRE(first_difference(g, e) == "");
            train_alike(g, e, sizes, batch);
        }
    }
}

} // namespace nn_test
