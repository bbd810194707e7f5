#include <models/recurrent_medium.hpp>
#include <models/text_classifier.hpp>

#include <nn/models.hpp>
#include <support/temporary_folder.hpp>

#include <cmath>

namespace study_recurrent_test {

/// The studies' recurrent networks, few units wide: both modes train to the same bits, and say at which step values stop being
/// finite.

using namespace nn_test;

namespace {

/// Word numbers below `count` as floating indices, [batch, time]; a third of them 0, which is padding.
tg::tensor<float> sentences(std::int64_t batch, std::int64_t time, int count, std::uint64_t seed) {
    auto x = noise<float>({batch, time}, seed);
    for (std::int64_t i = 0; i < x.size(); ++i) {
        float& word = x.mutable_data()[i];
        word = std::max(0.0f, std::floor((word * 1.5f + 0.5f) / 2 * static_cast<float>(count)));
    }
    return x;
}

template <class Mode, class Optimizer>
auto narrow_medium(const Optimizer& optimizer, bool check = false) {
    return tg::compile<Mode>(models::recurrent_medium<3>{}, tg::spec<float, tg::dyn, 11, 16>{},
                             tg::sigmoid_cross_entropy{}, optimizer, {.seed = 7, .check_finite = check});
}

} // namespace

TEST_CASE("both modes: the text classifier, over sentences of any length") {
    constexpr int vocabulary = 23;
    const auto make = [](auto mode) {
        return tg::compile<decltype(mode)>(models::text_classifier<vocabulary>{}, tg::spec<float, tg::dyn, tg::dyn>{},
                                           tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 1e-3},
                                           {.seed = 5});
    };
    auto graph = make(tg::graph{});
    auto eager = make(tg::eager{});
    const auto sentences_of = [](int size, std::uint64_t seed) {
        const std::int64_t time = 1 + static_cast<std::int64_t>(seed % 5) * 3;
        return std::pair{sentences(size, time, vocabulary, seed), classes(size, 3, seed)};
    };
    train_alike(graph, eager, {4, 3, 5}, sentences_of);
    // Padding after a sentence changes nothing.
    const auto words = sentences(2, 6, vocabulary, 3);
    auto longer = tg::tensor<float>(tg::zeros<float>({2, 9}));
    for (std::int64_t n = 0; n < 2; ++n)
        for (std::int64_t t = 0; t < 6; ++t) longer.set(words(n, t), n, t);
    CHECK(same_bits(graph.predict(words), graph.predict(longer)));
    // Whole numbers give the bits of floating ones.
    auto whole =
        tg::compile<tg::graph>(models::text_classifier<vocabulary>{}, tg::spec<std::int32_t, tg::dyn, tg::dyn>{},
                               tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 1e-3}, {.seed = 5});
    auto eager_whole =
        tg::compile<tg::eager>(models::text_classifier<vocabulary>{}, tg::spec<std::int32_t, tg::dyn, tg::dyn>{},
                               tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 1e-3}, {.seed = 5});
    train_alike(whole, eager_whole, {4, 3, 5}, [&](int size, std::uint64_t seed) {
        const auto [x, y] = sentences_of(size, seed);
        return std::pair{tg::tensor<std::int32_t>(tg::cast<std::int32_t>(x)), y};
    });
    CHECK(first_difference(whole, graph) == "");
}

TEST_CASE("both modes: the medium network of the recurrent pair") {
    auto graph = narrow_medium<tg::graph>(tg::adam{.learning_rate = 1e-3});
    auto eager = narrow_medium<tg::eager>(tg::adam{.learning_rate = 1e-3});
    train_alike(graph, eager, {4, 3, 4}, [](int size, std::uint64_t seed) {
        return std::pair{noise<float>({size, 11, 16}, seed), coin_flips<float>(size, seed)};
    });
}

TEST_CASE("LSTMs with relu that overflow report the step") {
    each_mode([](auto mode) {
        auto model = narrow_medium<decltype(mode)>(tg::sgd{.learning_rate = 1e4}, true);
        const auto x = noise<float>({4, 11, 16}, 1);
        const auto y = coin_flips<float>(4, 2);
        std::string message;
        while (message.empty() && model.step() < 50)
            message = support::message_of<tg::numeric_error>([&] { model.train_on_batch(x, y); });
        CAPTURE(message);
        REQUIRE(model.step() > 0); // the first step is finite
        CHECK(message.find("step " + std::to_string(model.step() + 1) + ": ") == 0);
        CHECK(support::contains(message, "is not finite"));
    });
}

} // namespace study_recurrent_test
