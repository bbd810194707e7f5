#pragma once

#include <tapegraph/data/counter_random.hpp>
#include <tapegraph/data/text/labelled_texts.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Texts that need no files: opinions on a journey, spoken by a small grammar.

namespace tapegraph::data {

namespace detail {

class opinion_grammar {
public:
    static constexpr std::array<std::string_view, 12> things{"crew",     "seat",    "food",    "flight",
                                                             "cabin",    "service", "screen",  "lounge",
                                                             "boarding", "landing", "captain", "coffee"};
    static constexpr std::array<std::string_view, 8> good{"friendly", "clean", "pleasant", "quick",
                                                          "great",    "fine",  "calm",     "lovely"};
    static constexpr std::array<std::string_view, 8> bad{"rude", "dirty",  "awful", "slow",
                                                         "poor", "broken", "noisy", "horrid"};
    static constexpr std::array<std::string_view, 4> degrees{"very", "really", "quite", "rather"};
    static constexpr std::array<std::string_view, 6> towns{"oslo", "lima", "cairo", "quito", "delhi", "porto"};
    static constexpr std::array<std::string_view, 5> days{"monday", "tuesday", "wednesday", "thursday", "friday"};

    opinion_grammar(std::uint64_t seed, std::uint64_t record) : random_(seed, record) {}

    /// An opinion says what it says by its main clause.
    std::string opinion(bool praise) {
        switch (random_.below(4)) {
        case 0: return statement(praise);
        case 1: return statement(!praise) + " but " + statement(praise);
        case 2: return "although " + statement(!praise) + " " + statement(praise);
        default: return statement(praise) + " although " + statement(!praise);
        }
    }
    /// No opinion: a plain fact, or a question, whose words are those of an opinion.
    std::string neutral() {
        const bool praise = random_.below(2) == 0;
        switch (random_.below(5)) {
        case 0: return fact();
        case 1: return question(praise);
        case 2: return statement(!praise) + " but " + question(praise);
        case 3: return "although " + statement(!praise) + " " + question(praise);
        default: return question(praise) + " although " + statement(!praise);
        }
    }

private:
    template <std::size_t N>
    std::string one_of(const std::array<std::string_view, N>& words) {
        return std::string(words[random_.below(N)]);
    }
    std::string thing() { return "the " + one_of(things); }
    /// "not rude" is praise, too.
    std::string predicate(bool praise) {
        std::string words;
        if (random_.below(2) == 0) {
            words += "not ";
            praise = !praise;
        }
        if (random_.below(2) == 0) words += one_of(degrees) + " ";
        return words + (praise ? one_of(good) : one_of(bad));
    }
    std::string statement(bool praise) {
        const std::string subject = thing();
        return subject + " was " + predicate(praise);
    }
    std::string question(bool praise) {
        const std::string subject = thing();
        return "was " + subject + " " + predicate(praise);
    }
    std::string fact() {
        const std::string town = one_of(towns);
        return "the flight to " + town + " leaves on " + one_of(days);
    }

    counter_random random_;
};

} // namespace detail

/// Sentences of at most 13 words in three balanced classes, "negative", "neutral" and "positive"; record i has the label i % 3
/// and depends on (seed, i) alone. An opinion is that of its main clause, a "not" turns it round, and a question has none: "the
/// crew was rude although the seat was not awful" is negative, "although the crew was rude the seat was not awful" positive,
/// "although the crew was rude was the seat not awful" neutral. All three have the same words, so a model that only counts
/// words is right in about half of the records, and one that reads their order in all. Throws argument_error for a negative
/// count.
inline labelled_texts opinion_sentences(std::int64_t count, std::uint64_t seed) {
    if (count < 0) throw argument_error("opinion_sentences: " + std::to_string(count) + " sentences");
    labelled_texts result;
    result.class_names = {"negative", "neutral", "positive"};
    for (std::int64_t i = 0; i < count; ++i) {
        detail::opinion_grammar grammar(seed, static_cast<std::uint64_t>(i));
        const auto label = static_cast<std::int32_t>(i % 3);
        result.texts.push_back(label == 1 ? grammar.neutral() : grammar.opinion(label == 2));
        result.labels.push_back(label);
    }
    return result;
}

} // namespace tapegraph::data
