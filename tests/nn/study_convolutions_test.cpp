#include <models/conv1d_large.hpp>
#include <models/conv1d_medium.hpp>
#include <models/conv1d_small.hpp>
#include <models/recurrent_small.hpp>

#include <nn/models.hpp>

namespace study_convolutions_test {

/// The studies' convolutions train to the same bits in both modes, over series that are as short as they can be.

using namespace nn_test;

namespace {

template <std::int64_t... Extents>
void check_modes(const auto& model, const std::vector<int>& sizes, const auto& optimizer) {
    const auto make = [&](auto mode) {
        return tg::compile<decltype(mode)>(model, tg::spec<float, tg::dyn, Extents...>{}, tg::sigmoid_cross_entropy{},
                                           optimizer, {.seed = 5});
    };
    auto graph = make(tg::graph{});
    auto eager = make(tg::eager{});
    train_alike(graph, eager, sizes, [](int size, std::uint64_t seed) {
        return std::pair{noise<float>({size, Extents...}, seed), coin_flips<float>(size, seed)};
    });
}

} // namespace

TEST_CASE("both modes: the small convolution") {
    check_modes<23, 30>(models::conv1d_small{}, {4, 3, 4}, tg::adam{.learning_rate = 1e-3});
}

TEST_CASE("both modes: the medium convolutions") {
    check_modes<117, 30>(models::conv1d_medium{}, {2, 3}, tg::adam{.learning_rate = 1e-4});
}

TEST_CASE("both modes: the small network of the recurrent pair") {
    check_modes<26, 16>(models::recurrent_small{}, {4, 3, 4}, tg::adam{.learning_rate = 1e-3});
}

// 1344 steps are the least: 237 after the first layer, 38 after the second, then 10 and 1. Plain descent, because Adam's state
// would take another 0.7 GB.
TEST_CASE("both modes: the large convolutions") {
    check_modes<1344, 30>(models::conv1d_large{}, {1, 2}, tg::sgd{.learning_rate = 1e-3});
}

} // namespace study_convolutions_test
