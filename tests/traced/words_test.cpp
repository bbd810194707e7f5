#include <models/conv1d_small.hpp>
#include <models/recurrent_medium.hpp>

#include "words.hpp"

namespace words_test {

/// Real models: a graph made at run time is the compiler's, word for word.

TEST_CASE("run-time graphs: a convolutional network, word for word and bit for bit") {
    check<cnn_spec<float>>(
        small_cnn{}, tg::sigmoid_cross_entropy{}, tg::momentum{.learning_rate = 0.05},
        [](std::int64_t size, std::uint64_t seed) {
            return std::pair(noise<float>({size, 26, 26, 3}, seed), coin_flips<float>(size, seed + 1));
        });
}

TEST_CASE("run-time graphs: an MLP of doubles with dropout and Adam, word for word and bit for bit") {
    check<mlp_spec<double>>(small_mlp{}, tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 0.01},
                            [](std::int64_t size, std::uint64_t seed) {
                                return std::pair(noise<double>({size, 6}, seed), classes(size, 3, seed));
                            });
}

TEST_CASE("run-time graphs: the studies' Conv1D and LSTM, word for word and bit for bit") {
    const auto batch = [](std::int64_t size, std::uint64_t seed) {
        return std::pair(noise<float>({size, 40, 16}, seed), coin_flips<float>(size, seed + 1));
    };
    SUBCASE("convolutions") {
        check<tg::spec<float, tg::dyn, 40, 16>>(models::conv1d_small<>{}, tg::sigmoid_cross_entropy{}, tg::adam{},
                                                batch);
    }
    SUBCASE("recurrence") {
        check<tg::spec<float, tg::dyn, 40, 16>>(models::recurrent_medium<3>{}, tg::sigmoid_cross_entropy{}, tg::adam{},
                                                batch);
    }
}

} // namespace words_test
