#include "trained_model.hpp"

#include "../models/generation.hpp"

#include <array>
#include <tuple>

/// The GPT writes 128 characters after a first one, the likeliest each time, from a cache of keys and
/// values. A row's size is the number of texts that it writes at once; the time is that of a character
/// of all of them.

namespace compare {

constexpr std::int64_t written = 128;
using models::gpt, models::next_character;

/// The logits after the last character, and all characters.
struct text {
    tg::tensor<float> scores;
    tg::tensor<std::int32_t> characters;
};

inline text continued(auto& model, std::int64_t batch) {
    const tg::tensor<float> none = tg::zeros<float>({batch, next_character::capacity, gpt::heads, gpt::width / gpt::heads});
    std::array<tg::tensor<float>, 2 * gpt::blocks> kept;
    kept.fill(none);
    text y{.scores = {}, .characters = tg::zeros<std::int32_t>({batch, written})};
    tg::tensor<std::int32_t> character = characters(batch, 1, gpt::vocabulary);
    for (std::int32_t place = 0; place < written; ++place) {
        const auto step = std::apply(
            [&](auto&... each) { return model.predict(character, tg::tensor<std::int32_t>(place), each...); }, kept);
        character = step.template get<0>(), y.scores = step.template get<1>();
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            ((kept[I] = step.template get<I + 2>()), ...);
        }(std::make_index_sequence<2 * gpt::blocks>{});
        for (std::int64_t i = 0; i < batch; ++i) y.characters.set(character.data()[i], i, place);
    }
    return y;
}

} // namespace compare

int main(int argc, char** argv) {
    using namespace compare;
    return serve(argc, argv, [](const row& r, bool, const std::string& weights) {
        using model_type = decltype(tg::compile<tg::COMPARE_MODE>(next_character{}, next_character::specs(), {.seed = 1}));
        const auto model = std::make_shared<model_type>(
            tg::compile<tg::COMPARE_MODE>(next_character{}, next_character::specs(), {.seed = 1}));
        if (!weights.empty()) model->load(weights);
        prepared p;
        p.operations = written;
        p.save = [model](const std::string& path) { model->save(path); };
        p.step = [model, batch = r.size] { continued(*model, batch); };
        p.numbers = [model, batch = r.size](std::int64_t) {
            const text y = continued(*model, batch);
            auto numbers = digest(y.scores);
            for (const double c : digest(tg::cast<float>(y.characters))) numbers.push_back(c);
            return numbers;
        };
        p.profile = [step = p.step] { return tg::profile(step).text(); };
        return p;
    });
}
