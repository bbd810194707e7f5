#include <tapegraph/data/text/vectorizer.hpp>
#include <tapegraph/data/text/windows.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>

#include <common/opinions.hpp>
#include <nn/models.hpp>

#include <support/temporary_folder.hpp>

#include <cmath>

namespace text_test {

using namespace nn_test;

/// Models over texts, fed by data sets of texts.

namespace {

constexpr std::int64_t most_words = 60;

struct reader {
    constexpr auto operator()(auto scope, auto words) const {
        const auto rows = tg::embedding(scope / "words", words, {.input_dim = most_words, .output_dim = 12});
        const auto last = tg::lstm(scope / "lstm", rows, {.units = 24}, tg::embedding_mask(words));
        return tg::dense(scope / "classes", last, {.units = 3});
    }
};

/// The next character of every step.
struct region_encoder {
    constexpr auto operator()(auto scope, auto characters) const {
        const auto rows = tg::embedding(scope / "characters", characters, {.input_dim = 30, .output_dim = 8});
        const auto steps = tg::lstm(scope / "lstm", rows, {.units = 16, .return_sequences = true});
        return tg::dense(scope / "next", steps, {.units = 30});
    }
};

template <class Mode, class Model>
auto make(Model model, double rate) {
    return tg::compile<Mode>(model, tg::spec<float, tg::dyn, tg::dyn>{}, tg::sparse_softmax_cross_entropy{},
                             tg::adam{.learning_rate = rate}, {.seed = 3});
}

std::vector<double> losses_of(const tg::history& h) {
    std::vector<double> losses;
    for (const auto& e : h.epochs) losses.push_back(e.loss);
    return losses;
}

} // namespace

TEST_CASE("a classifier of texts learns from sentences, in both modes the same") {
    const auto parts = tg::data::train_validation_split(examples::opinion_sentences(1500, 1), 1, 0.2);
    tg::data::text_vectorizer words({.max_tokens = most_words});
    words.adapt(parts.train);
    const auto train = tg::data::make_dataset(parts.train, words),
               held = tg::data::make_dataset(parts.validation, words);
    const auto run = [&](auto mode) {
        auto model = make<decltype(mode)>(reader{}, 0.02);
        const auto h = model.fit(train, {.epochs = 8, .batch_size = 16, .validation_data = held, .verbose = false});
        // Whoever counts words is right in 0.48 of all sentences: of 300, 0.6 is four standard deviations more.
        CHECK(h.epochs.back().validation_accuracy > 0.6);
        return losses_of(h);
    };
    CHECK(run(tg::graph{}) == run(tg::eager{}));
}

TEST_CASE("an index outside the vocabulary is named with its position") {
    each_mode([](auto mode) {
        auto model = make<decltype(mode)>(reader{}, 0.01);
        tg::data::dataset set;
        set.add("tokens", std::vector<float>{2, 3, 4, 5, 60, 6}, {3}).add("label", std::vector<std::int32_t>{0, 1});
        const auto message = support::message_of<tg::range_error>(
            [&] { model.fit(set, {.epochs = 1, .batch_size = 2, .shuffle = false, .verbose = false}); });
        CAPTURE(message);
        CHECK(support::contains(message, "index 60 at position 4 is outside [0, 60)"));
    });
}

TEST_CASE("a model of characters: one label per step") {
    // "abcdeabcde...": every next character is known.
    const std::string text = [] {
        std::string s;
        for (int i = 0; i < 400; ++i) s += "abcde"[i % 5];
        return s;
    }();
    tg::data::text_vectorizer characters({.tokens = {.unit = tg::data::token_unit::character}});
    characters.adapt(std::vector<std::string>{text});
    const auto set = tg::data::next_token_windows(characters.indices_of(text), characters.words().size(), 8, 3);
    const auto run = [&](auto mode) {
        auto model = make<decltype(mode)>(region_encoder{}, 0.03);
        const auto h = model.fit(set, {.epochs = 10, .batch_size = 16, .verbose = false});
        CHECK(h.epochs.front().loss > 1); // log(30) = 3.4 at first
        CHECK(h.epochs.back().loss < 0.2);
        CHECK(h.epochs.back().accuracy == 1);
        return losses_of(h);
    };
    CHECK(run(tg::graph{}) == run(tg::eager{}));
}

TEST_CASE("cross-entropy of labels [batch, time] is the mean over all steps") {
    const auto x = noise<float>({2, 3, 4}, 5);
    const tg::tensor<std::int32_t> z{{0, 3, 1}, {2, 2, 0}};
    double sum = 0;
    int right = 0;
    for (int n = 0; n < 2; ++n)
        for (int t = 0; t < 3; ++t) {
            double total = 0;
            int best = 0;
            for (int k = 0; k < 4; ++k) {
                total += std::exp(static_cast<double>(x(n, t, k)));
                if (x(n, t, k) > x(n, t, best)) best = k;
            }
            sum += std::log(total) - static_cast<double>(x(n, t, z(n, t)));
            right += best == z(n, t);
        }
    const tg::sparse_softmax_cross_entropy loss;
    const tg::tensor<float> value = tg::eval(loss(x, z)), share = tg::eval(loss.accuracy(x, z));
    // log_softmax of numbers below 1 errs by a few 2^-24
    CHECK(std::abs(static_cast<double>(value.item()) - sum / 6) < 1e-6);
    CHECK(share.item() == static_cast<float>(right) / 6);
}

} // namespace text_test
