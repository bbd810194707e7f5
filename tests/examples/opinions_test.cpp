#include <common/opinions.hpp>

#include <tapegraph/data/text/tokens.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace opinions_test {

using namespace tapegraph;
using grammar = examples::opinion_grammar;
using words = std::vector<std::string>;

namespace {

words words_of(const std::string& text) {
    words all;
    data::for_each_token(text, data::token_unit::word, [&](std::string_view w) { all.emplace_back(w); });
    return all;
}
template <class List>
bool among(const List& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

/// A reader of its own, by the documentation: the main clause is the one no "although" begins, or that after "but"; a clause
/// that begins with "was" asks; "not" turns an adjective round.
int understood(const words& sentence) {
    std::vector<words> clauses(1);
    std::size_t main = 0;
    for (std::size_t i = 0; i < sentence.size(); ++i) {
        const bool described = !clauses.back().empty() && (among(grammar::good, clauses.back().back()) ||
                                                           among(grammar::bad, clauses.back().back()));
        if (described) clauses.emplace_back();
        if (sentence[i] == "but" || (sentence[i] == "although" && i == 0)) main = 1;
        if (sentence[i] != "but" && sentence[i] != "although") clauses.back().push_back(sentence[i]);
    }
    const words& clause = clauses.at(main);
    if (clause.front() == "was" || among(clause, "leaves")) return 1;
    return among(grammar::good, clause.back()) != among(clause, "not") ? 2 : 0;
}

} // namespace

TEST_CASE("sentences: balanced, short, a function of seed and record alone") {
    const auto set = examples::opinion_sentences(301, 5);
    CHECK(set.size() == 301);
    CHECK(set.class_names == words{"negative", "neutral", "positive"});
    for (std::size_t i = 0; i < 301; ++i) {
        CHECK(set.labels[i] == static_cast<int>(i % 3));
        const auto count = words_of(set.texts[i]).size();
        CHECK(count >= 4);
        CHECK(count <= 13);
    }
    const auto fewer = examples::opinion_sentences(10, 5);
    CHECK(std::equal(fewer.texts.begin(), fewer.texts.end(), set.texts.begin()));
    CHECK(examples::opinion_sentences(10, 6).texts != fewer.texts);
    CHECK(examples::opinion_sentences(0, 1).texts.empty());
    CHECK_THROWS_AS(examples::opinion_sentences(-1, 1), argument_error);
}

TEST_CASE("a reader of the order of words finds every label") {
    const auto set = examples::opinion_sentences(6000, 1);
    for (std::size_t i = 0; i < set.texts.size(); ++i) {
        CAPTURE(set.texts[i]);
        REQUIRE(understood(words_of(set.texts[i])) == set.labels[i]);
    }
}

TEST_CASE("a counter of words finds half of the labels") {
    // The best that any function of a bag of words can do: for every bag the label it has most often. What says nothing about
    // the label (which thing, how much, which adjective of its kind) is made equal first, so that bags repeat.
    const auto set = examples::opinion_sentences(30000, 2);
    std::map<words, std::array<int, 3>> bags;
    for (std::size_t i = 0; i < set.texts.size(); ++i) {
        words bag;
        for (const auto& word : words_of(set.texts[i])) {
            if (among(grammar::degrees, word) || among(grammar::towns, word) || among(grammar::days, word)) continue;
            bag.push_back(among(grammar::things, word) ? "thing"
                          : among(grammar::good, word) ? "good"
                          : among(grammar::bad, word)  ? "bad"
                                                       : word);
        }
        std::sort(bag.begin(), bag.end());
        ++bags[bag][static_cast<std::size_t>(set.labels[i])];
    }
    int right = 0;
    for (const auto& [bag, counts] : bags) right += *std::max_element(counts.begin(), counts.end());
    const double share = right / 30000.0;
    CAPTURE(share);
    // By the grammar's probabilities: sentences of two clauses (70 %) divide 25:20:25, of one clause (23 %) a statement is 17 % and
    // a question 7 %, facts (7 %) are known: 0.25 + 0.17 + 0.07. Four standard deviations are 0.012, the maximum over few noisy
    // counts adds less than 0.01.
    CHECK(share > 0.470);
    CHECK(share < 0.505);
}

} // namespace opinions_test
