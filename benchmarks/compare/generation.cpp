#include "trained_model.hpp"

#include "../models/generation.hpp"

/// The GPT writes 128 characters after a first one, the likeliest each time, from keys and values
/// that it keeps. A row's size is the number of texts that it writes at once, 1 or 8; the time is that
/// of a character of all of them.

namespace compare {

constexpr std::int64_t written = 128;

/// The logits after the last character, and all characters.
struct text {
    tg::tensor<float> scores;
    tg::tensor<std::int32_t> characters;
};

template <std::int64_t Batch>
text continued(auto& session) {
    text y{.scores = {}, .characters = tg::zeros<std::int32_t>({Batch, written})};
    tg::tensor<std::int32_t> character = characters(Batch, 1, models::gpt::vocabulary);
    for (std::int32_t place = 0; place < written; ++place) {
        const auto [next, scores] = session.template run<"next", "scores", "kept">(
            {{"character", character}, {"place", tg::tensor<std::int32_t>(place)}});
        if constexpr (Batch == 1)
            character = tg::tensor<std::int32_t>{{next.item()}};
        else
            character = next;
        y.scores = scores;
        for (std::int64_t i = 0; i < Batch; ++i) y.characters.set(character.data()[i], i, place);
    }
    return y;
}

template <std::int64_t Batch>
prepared generation(const std::string& weights) {
    const auto session = std::make_shared<tg::session<models::next_character<Batch>>>(1);
    session->initialize();
    if (!weights.empty()) session->load(weights);
    prepared p;
    p.operations = written;
    p.save = [session](const std::string& path) { session->save(path); };
    p.step = [session] { continued<Batch>(*session); };
    p.numbers = [session](std::int64_t) {
        const text y = continued<Batch>(*session);
        auto numbers = digest(y.scores);
        for (const double c : digest(tg::cast<float>(y.characters))) numbers.push_back(c);
        return numbers;
    };
    p.profile = [step = p.step](int steps) { return tg::profile(step, profiled(steps)); };
    return p;
}

} // namespace compare

int main(int argc, char** argv) {
    using namespace compare;
    return serve(argc, argv, [](const row& r, bool, const std::string& weights) {
        if (r.size == 1) return generation<1>(weights);
        if (r.size == 8) return generation<8>(weights);
        throw tg::argument_error("generation is for 1 or 8 texts");
    });
}
