#pragma once

#include "training.hpp"

#include "../models/character_model.hpp"

#include <tapegraph/data/counter_random.hpp>

#include <algorithm>
#include <cmath>
#include <span>

/// Training and sampling for any mode. One source per mode includes this.

namespace character_model {

template <class Mode>
auto make_model(const options& o) {
    namespace tg = tapegraph;
    return tg::compile<Mode>(models::character_model<model_vocabulary>{}, tg::spec<float, tg::dyn, tg::dyn>{},
                             tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = o.learning_rate},
                             {.seed = o.seed});
}

struct drawn_character {
    std::int32_t index;
    double chance; ///< softmax(logits) there
};

/// Draws an index with probabilities softmax(logits / temperature), or the most likely one where
/// the temperature is 0. Padding, the unknown character and indices from `size` on stand for no
/// character and are never drawn.
inline drawn_character draw(std::span<const float> logits, std::int64_t size, double temperature,
                            tapegraph::data::counter_random& random) {
    constexpr auto first = static_cast<std::size_t>(tapegraph::data::vocabulary::first_word);
    const auto known = logits.subspan(first, static_cast<std::size_t>(size) - first);
    const auto likeliest = std::max_element(known.begin(), known.end()) - known.begin();
    auto chosen = static_cast<std::size_t>(likeliest);
    if (temperature > 0) {
        std::vector<double> weights;
        double sum = 0;
        for (const float x : known)
            weights.push_back(sum +=
                              std::exp((static_cast<double>(x) - static_cast<double>(known[chosen])) / temperature));
        const double at = random.uniform() * sum;
        chosen = static_cast<std::size_t>(std::upper_bound(weights.begin(), weights.end() - 1, at) - weights.begin());
    }
    double all = 0;
    for (const float x : known) all += std::exp(static_cast<double>(x) - static_cast<double>(known[chosen]));
    return {static_cast<std::int32_t>(chosen + first), 1 / all};
}

/// The prompt and the model's continuation. The model reads the last `length` characters, as many
/// as in training.
template <class Model>
std::vector<written_character> write(const Model& model, const options& o,
                                     const tapegraph::data::vocabulary& characters, std::vector<std::int32_t> text) {
    constexpr std::uint64_t stream = 0x777269746573; // of this program's random numbers
    tapegraph::data::counter_random random(o.seed, stream);
    std::vector<written_character> written;
    for (const std::int32_t index : text) written.push_back({characters.word(index)});
    for (std::int64_t i = 0; i < o.sample; ++i) {
        const auto seen = std::min(o.length, static_cast<std::int64_t>(text.size()));
        auto window = tapegraph::tensor<float>::uninitialized({1, seen});
        std::copy(text.end() - seen, text.end(), window.mutable_data());
        const tapegraph::tensor<float> logits = model.predict(window);
        const float* const last = logits.data() + (seen - 1) * model_vocabulary;
        const drawn_character next =
            draw({last, static_cast<std::size_t>(model_vocabulary)}, characters.size(), o.temperature, random);
        text.push_back(next.index);
        written.push_back({characters.word(next.index), next.chance});
    }
    return written;
}

template <class Mode>
result train(const options& o, const window_sets& sets, const tapegraph::data::vocabulary& characters,
             const std::vector<std::int32_t>& prompt) {
    auto model = make_model<Mode>(o);
    result r;
    r.epochs = model.fit(sets.train, {.epochs = o.epochs,
                                      .batch_size = o.batch_size,
                                      .validation_data = sets.validation,
                                      .steps_per_epoch = o.steps});
    r.written = write(model, o, characters, prompt);
    return r;
}

} // namespace character_model
