#include <tapegraph/data/text/hashing_trick.hpp>
#include <tapegraph/data/text/padding.hpp>
#include <tapegraph/data/text/skipgrams.hpp>
#include <tapegraph/data/text/tokenizer_json.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// Expected numbers are those of Keras 3.15 (keras.src.legacy.preprocessing, keras.utils).

namespace tokenizer_test {

using namespace tapegraph;
using words = std::vector<std::string>;
using ints = std::vector<std::int32_t>;
using sequences = std::vector<ints>;

namespace {

const words texts{"The cat sat on the mat; the CAT!", "a dog, a cat & a bird...\n\xC3\x89tude \xC3\x89", "",
                  "Don't stop"};
const words new_texts{"the dog and a cat don't", "unknown \xC3\xA9tude", ""};

data::tokenizer fitted(data::tokenizer_options options = {}) {
    data::tokenizer t(std::move(options));
    t.fit_on_texts(texts);
    return t;
}
std::vector<double> values_of(const data::matrix<double>& m) { return m.values; }
void check_near(const std::vector<double>& got, const std::vector<double>& expected) {
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-14)); // of log
}

} // namespace

TEST_CASE("words are numbered by frequency, then by first appearance") {
    const auto t = fitted({.num_words = 6, .oov_token = "<OOV>"});
    words order;
    std::vector<std::int64_t> counts, docs, indices;
    for (const auto& each : t.words()) {
        order.push_back(each.word);
        counts.push_back(each.count);
        docs.push_back(each.docs);
        indices.push_back(each.index);
    }
    CHECK(order ==
          words{"the", "cat", "sat", "on", "mat", "a", "dog", "bird", "\xC3\xA9tude", "\xC3\xA9", "don't", "stop"});
    CHECK(counts == std::vector<std::int64_t>{3, 3, 1, 1, 1, 3, 1, 1, 1, 1, 1, 1});
    CHECK(docs == std::vector<std::int64_t>{1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    CHECK(indices == std::vector<std::int64_t>{2, 3, 5, 6, 7, 4, 8, 9, 10, 11, 12, 13});
    CHECK(t.document_count() == 4);
    CHECK(t.index_docs().at(3) == 2);
    CHECK(t.index_of("<OOV>") == 1);
    CHECK_FALSE(t.index_of("The"));
    CHECK(*t.word_of(13) == "stop");
    CHECK(t.word_of(0) == nullptr);
    CHECK(t.word_of(14) == nullptr);
    CHECK(t.size() == 6);

    const auto s = t.texts_to_sequences(new_texts);
    CHECK(s == sequences{{2, 1, 1, 4, 3, 1}, {1, 1}, {}});
    auto more = s;
    more.push_back({0, 1, 2, 50});
    CHECK(t.sequences_to_texts(more) ==
          words{"the <OOV> <OOV> a cat <OOV>", "<OOV> <OOV>", "", "<OOV> <OOV> the <OOV>"});
}

TEST_CASE("without an oov_token unknown words are left out; later texts number anew") {
    auto t = fitted();
    CHECK(t.texts_to_sequences(new_texts) == sequences{{1, 7, 3, 2, 11}, {9}, {}});
    CHECK(t("A mat") == ints{3, 6});
    CHECK(t.sequence_to_text(ints{0, 3, 99, 6}) == "a mat");
    CHECK(t.size() == 13);
    t.fit_on_texts(words{"bird bird bird"});
    CHECK(t.index_of("bird") == 1);
    CHECK(t.index_of("the") == 2);
    CHECK(t.index_docs().at(1) == 2);
    CHECK(t.index_docs().at(8) == 1);
    CHECK(t.document_count() == 5);
    data::tokenizer cut;
    cut.fit_on_texts(std::vector<words>{{"New York", "new york", "x!"}});
    CHECK(cut.index_of("new york") == 1);
    CHECK(cut.texts_to_sequences(std::vector<words>{{"X!", "NEW YORK"}}) == sequences{{2, 1}});
}

TEST_CASE("matrices in four modes") {
    const auto t = fitted({.num_words = 6, .oov_token = "<OOV>"});
    const sequences s{{1, 1, 2, 5}, {}, {9, 2, 2}};
    using mode = data::matrix_mode;
    const auto binary = t.sequences_to_matrix<double>(s, mode::binary);
    CHECK(binary.rows == 3);
    CHECK(binary.columns == 6);
    CHECK(values_of(binary) == std::vector<double>{0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0});
    CHECK(values_of(t.sequences_to_matrix<double>(s, mode::count)) ==
          std::vector<double>{0, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0});
    CHECK(values_of(t.sequences_to_matrix<double>(s, mode::freq)) ==
          std::vector<double>{0, 0.5, 0.25, 0, 0, 0.25, 0, 0, 0, 0, 0, 0, 0, 0, 2.0 / 3, 0, 0, 0});
    check_near(values_of(t.sequences_to_matrix<double>(s, mode::tfidf)),
               {0, 2.725015263724081, 1.0986122886681098, 0, 0, 1.0986122886681098, 0, 0, 0, 0, 0, 0, 0, 0,
                1.860112299086919, 0, 0, 0});
    const double b = 1.0986122886681098;
    check_near(values_of(fitted().texts_to_matrix<double>(words{new_texts[0]}, mode::tfidf)),
               {0, b, 0.8472978603872034, b, 0, 0, 0, b, 0, 0, 0, b, 0});
    CHECK(fitted().texts_to_matrix(new_texts).values[1] == 1.0f);
    CHECK(t.sequences_to_matrix(sequences{}).values.empty());

    data::tokenizer counted({.num_words = 5});
    counted.fit_on_sequences(sequences{{1, 2, 2}, {2, 3}});
    CHECK(counted.index_docs() == std::map<std::int64_t, std::int64_t>{{1, 1}, {2, 2}, {3, 1}});
    check_near(values_of(counted.sequences_to_matrix<double>(sequences{{1, 2, 2, 3}}, mode::tfidf)),
               {0, 0.6931471805599453, 0.8649029646371624, 0.6931471805599453, 0});

    CHECK(support::message_of<argument_error>([] { data::tokenizer().sequences_to_matrix(sequences{{1}}); }) ==
          "tokenizer.sequences_to_matrix: give num_words, or fit on texts first");
    CHECK_THROWS_AS(data::tokenizer({.num_words = 3}).sequences_to_matrix(sequences{{1}}, mode::tfidf), argument_error);
    CHECK(support::message_of<range_error>([&] {
              t.sequences_to_matrix(sequences{{1}, {-2}});
          }) == "tokenizer.sequences_to_matrix: index -2 in sequence 1");
    CHECK_THROWS_AS(data::tokenizer({.num_words = -1}), argument_error);
    CHECK_THROWS_AS(data::tokenizer({.split = ""}), argument_error);
}

TEST_CASE("characters, other splits, an oov_token that is a word") {
    data::tokenizer characters({.char_level = true});
    characters.fit_on_texts(words{"Aab ", "\xC3\x89"
                                          "a\n"});
    CHECK(characters.texts_to_sequences(words{"b\xC3\x89 z"}) == sequences{{2, 4, 3}});
    CHECK(characters.index_of("\n") == 5);

    data::tokenizer split({.filters = "x", .split = "--"});
    split.fit_on_texts(words{"a b--c xd--A B"});
    CHECK(split.index_of("a b") == 1);
    CHECK(split.index_of("c ") == 2);
    CHECK(split.index_of("d") == 3);

    data::tokenizer odd({.oov_token = "cat"});
    odd.fit_on_texts(words{"a cat", "cat"});
    CHECK(odd.index_of("cat") == 2);
    CHECK(odd.index_of("a") == 3);
    CHECK(odd.texts_to_sequences(words{"b cat a"}) == sequences{{2, 2, 3}});
    CHECK(odd.sequence_to_text(ints{1, 2, 3, 9}) == "cat cat a cat");
    CHECK(odd.texts_to_matrix<double>(words{"b cat a"}, data::matrix_mode::count).values ==
          std::vector<double>{0, 0, 2});

    const data::tokenizer unfitted({.oov_token = "?"});
    CHECK(unfitted("a b").empty());
    CHECK(unfitted.sequence_to_text(ints{1, 2}).empty());
    CHECK(data::text_to_word_sequence("a-b  C", {.lower = false}) == words{"a", "b", "C"});
    CHECK(data::text_to_word_sequence("", {}).empty());
    CHECK(data::text_to_word_sequence("a\xE2\x80\x93"
                                      "b",
                                      {.filters = "\xE2\x80\x93"}) == words{"a", "b"});
    CHECK_THROWS_AS(data::text_to_word_sequence("a", {.split = ""}), argument_error);
}

TEST_CASE("JSON as Keras writes and reads it") {
    // to_json() of Keras, but for the order of word_docs, which there changes with each process
    const std::string keras =
        R"({"class_name": "Tokenizer", "config": {"num_words": 6, "filters": "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n", "lower": true, "split": " ", "char_level": false, "oov_token": "<OOV>", "document_count": 4, "word_counts": "{\"the\": 3, \"cat\": 3, \"sat\": 1, \"on\": 1, \"mat\": 1, \"a\": 3, \"dog\": 1, \"bird\": 1, \"\\u00e9tude\": 1, \"\\u00e9\": 1, \"don't\": 1, \"stop\": 1}", "word_docs": "{\"sat\": 1, \"cat\": 2, \"on\": 1, \"mat\": 1, \"the\": 1, \"a\": 1, \"\\u00e9tude\": 1, \"dog\": 1, \"\\u00e9\": 1, \"bird\": 1, \"stop\": 1, \"don't\": 1}", "index_docs": "{\"5\": 1, \"3\": 2, \"6\": 1, \"7\": 1, \"2\": 1, \"4\": 1, \"10\": 1, \"8\": 1, \"11\": 1, \"9\": 1, \"13\": 1, \"12\": 1}", "index_word": "{\"1\": \"<OOV>\", \"2\": \"the\", \"3\": \"cat\", \"4\": \"a\", \"5\": \"sat\", \"6\": \"on\", \"7\": \"mat\", \"8\": \"dog\", \"9\": \"bird\", \"10\": \"\\u00e9tude\", \"11\": \"\\u00e9\", \"12\": \"don't\", \"13\": \"stop\"}", "word_index": "{\"<OOV>\": 1, \"the\": 2, \"cat\": 3, \"a\": 4, \"sat\": 5, \"on\": 6, \"mat\": 7, \"dog\": 8, \"bird\": 9, \"\\u00e9tude\": 10, \"\\u00e9\": 11, \"don't\": 12, \"stop\": 13}"}})";
    const auto read = data::tokenizer_from_json(keras);
    const auto ours = fitted({.num_words = 6, .oov_token = "<OOV>"});
    CHECK(data::to_json(read) == data::to_json(ours));
    CHECK(read.texts_to_sequences(new_texts) == ours.texts_to_sequences(new_texts));
    CHECK(read.index_docs() == ours.index_docs());
    const std::string written = data::to_json(ours);
    CHECK(written.starts_with(keras.substr(0, keras.find("word_counts"))));
    CHECK(support::contains(written, R"("word_counts": "{\"the\": 3, \"cat\": 3, )"));
    CHECK(support::contains(written, R"("word_index": "{\"<OOV>\": 1, \"the\": 2, )"));
    // A tokenizer that was read goes on counting.
    auto grown = read, other = ours;
    grown.fit_on_texts(words{"stop stop stop stop"});
    other.fit_on_texts(words{"stop stop stop stop"});
    CHECK(data::to_json(grown) == data::to_json(other));
    CHECK(grown.index_of("stop") == 2);

    const support::temporary_folder folder;
    for (const auto& each :
         {fitted(), fitted({.char_level = true}), data::tokenizer(), data::tokenizer({.oov_token = "?"})}) {
        data::save_tokenizer(folder.path() / "words.json", each);
        CHECK(data::to_json(data::load_tokenizer(folder.path() / "words.json")) == data::to_json(each));
    }
    data::tokenizer odd({.oov_token = "cat"});
    odd.fit_on_texts(words{"a cat", "cat"});
    CHECK(data::tokenizer_from_json(data::to_json(odd)).texts_to_sequences(words{"b cat a"}) == sequences{{2, 2, 3}});
}

TEST_CASE("JSON that is no tokenizer") {
    const auto refusal = [](const std::string& config) {
        return support::message_of<data_error>(
            [&] { data::tokenizer_from_json("{\"config\": {" + config + "}}", "'w.json'"); });
    };
    CHECK(refusal("") == "'w.json': no word_index");
    CHECK(support::message_of<data_error>([] { data::tokenizer_from_json("{}", "'w.json'"); }) ==
          "'w.json': no config");
    CHECK(support::contains(refusal(R"("word_index": 3)"), "'w.json'"));
    CHECK(support::contains(refusal(R"("word_index": "{\"a\": \"b\"}")"), "'w.json', word_index"));
    CHECK(refusal(R"("word_index": "{\"a\": 1, \"b\": 1}")") ==
          "'w.json': tokenizer: two words have the index 1, one is 'b'");
    CHECK(refusal(R"("word_index": "{\"a\": 3}")") ==
          "'w.json': tokenizer: the word 'a' has the index 3, not one of [1, 2)");
    CHECK(refusal(R"("word_counts": "{\"z\": 2}", "word_index": "{\"a\": 1}")") ==
          "'w.json': tokenizer: the word 'z' has the index 0, not one of [1, 3)");
    CHECK(refusal(R"("oov_token": "?", "word_index": "{\"a\": 1}")") ==
          "'w.json': tokenizer: the index 1 is the oov_token's, and 'a' has it");
    CHECK(refusal(R"("index_docs": "{\"x\": 1}", "word_index": "{}")") == "'w.json', index_docs: 'x' is not an index");
    CHECK(refusal(R"("split": "", "word_index": "{}")") == "'w.json': tokenizer: split is empty");
}

TEST_CASE("the hashing trick") {
    const auto length = [](std::string_view word) { return word.size(); };
    CHECK(data::hashing_trick("The cat sat, o, the mattress", 6, length) == ints{4, 4, 4, 2, 4, 4});
    CHECK(data::hashing_trick("a, b", 6, length, {.filters = ""}) == ints{3, 2});
    CHECK(data::hashing_trick("A", 50) == data::hashing_trick("a", 50));
    CHECK(data::hashing_trick("A", 50, {.lower = false}) != data::hashing_trick("a", 50));
    const auto hashes = data::one_hot("The cat sat on the mat", 50);
    REQUIRE(hashes.size() == 6);
    CHECK(hashes[0] == hashes[4]);
    CHECK(hashes[0] == static_cast<std::int32_t>(data::fingerprint64("the") % 49) + 1);
    CHECK(*std::min_element(hashes.begin(), hashes.end()) >= 1);
    CHECK(data::hashing_trick("a b", 2) == ints{1, 1});
    CHECK(support::message_of<argument_error>([] { data::hashing_trick("a", 1); }) ==
          "hashing_trick: n is 1: hashes are in [1, n)");
}

TEST_CASE("pad_sequences at either end") {
    const sequences s{{1, 2, 3}, {4}, {}};
    using end = data::sequence_end;
    CHECK(data::pad_sequences(s).values == ints{1, 2, 3, 0, 0, 4, 0, 0, 0});
    CHECK(data::pad_sequences(s, {.maxlen = 2}).values == ints{2, 3, 0, 4, 0, 0});
    CHECK(data::pad_sequences(s, {.maxlen = 2, .padding = end::post, .truncating = end::post, .value = 9}).values ==
          ints{1, 2, 4, 9, 9, 9});
    CHECK(data::pad_sequences(s, {.maxlen = 2, .padding = end::post}).values == ints{2, 3, 4, 0, 0, 0});
    const auto reals = data::pad_sequences<float>(s, {.maxlen = 4, .value = -0.5});
    CHECK(reals.columns == 4);
    CHECK(reals.values == std::vector<float>{-0.5f, 1, 2, 3, -0.5f, -0.5f, -0.5f, 4, -0.5f, -0.5f, -0.5f, -0.5f});
    CHECK(data::pad_sequences(sequences{}).values.empty());
    CHECK(data::pad_sequences(sequences{{}, {}}).columns == 0);
    CHECK_THROWS_AS(data::pad_sequences(s, {.maxlen = -1}), argument_error);
}

TEST_CASE("skip-grams: pairs of the windows, and as many others") {
    const ints s{1, 2, 0, 3, 4};
    const auto plain = data::skipgrams(s, 10, {.window_size = 1, .negative_samples = 0, .shuffle = false});
    CHECK(plain == std::vector<data::skipgram>{{1, 2, 1}, {2, 1, 1}, {3, 4, 1}, {4, 3, 1}});
    const auto wide = data::skipgrams(s, 10, {.negative_samples = 2.5, .shuffle = false}, 7);
    REQUIRE(wide.size() == 12 + 30);
    std::map<std::int32_t, int> targets;
    for (std::size_t i = 12; i < wide.size(); ++i) {
        CHECK(wide[i].label == 0);
        CHECK(wide[i].context >= 1);
        CHECK(wide[i].context < 10);
        ++targets[wide[i].target];
    }
    CHECK(targets.size() == 4); // each of 12 targets in turn, two or three times
    for (const auto& [word, count] : targets) CHECK((count >= 6 && count <= 9));
    auto shuffled = data::skipgrams(s, 10, {.negative_samples = 2.5}, 7);
    CHECK(shuffled == data::skipgrams(s, 10, {.negative_samples = 2.5}, 7));
    CHECK(shuffled != data::skipgrams(s, 10, {.negative_samples = 2.5}, 8));
    CHECK(shuffled != data::skipgrams(s, 10, {.negative_samples = 2.5}, 7, 1));
    CHECK(shuffled != wide);
    const auto before = [](const data::skipgram& a, const data::skipgram& b) {
        return std::tie(a.target, a.context, a.label) < std::tie(b.target, b.context, b.label);
    };
    auto ordered = wide;
    std::sort(ordered.begin(), ordered.end(), before);
    std::sort(shuffled.begin(), shuffled.end(), before);
    CHECK(ordered == shuffled);
    CHECK(data::skipgrams(ints{}, 10).empty());
    CHECK(data::skipgrams(ints{0, 5}, 10).empty());

    // A word that is taken with probability 0 or 1
    const auto sampled =
        data::skipgrams(s, 5, {.negative_samples = 0, .shuffle = false, .sampling_table = {0, 0, 1, 0, 1}});
    REQUIRE(sampled.size() == 6);
    CHECK(sampled[0] == data::skipgram{2, 1, 1});
    CHECK(sampled[3] == data::skipgram{4, 1, 1});
    CHECK(support::message_of<range_error>([&] { data::skipgrams(s, 4); }) ==
          "skipgrams: index 4 at position 4 is outside [0, 4)");
    CHECK_THROWS_AS(data::skipgrams(s, 10, {.sampling_table = {1, 1}}), range_error);
    CHECK_THROWS_AS(data::skipgrams(s, 1), argument_error);
    CHECK_THROWS_AS(data::skipgrams(s, 10, {.window_size = -1}), argument_error);
    CHECK_THROWS_AS(data::skipgrams(s, 10, {.negative_samples = -1}), argument_error);
    check_near(data::make_sampling_table(6), {0.0031522478751942504, 0.0031522478751942504, 0.0054759726939176976,
                                              0.007415564097374219, 0.009128167456366161, 0.010684345040995184});
    check_near(data::make_sampling_table(3, 0.5), {0.7048640530863617, 0.7048640530863617, 1.0});
    CHECK_THROWS_AS(data::make_sampling_table(-1), argument_error);
    CHECK_THROWS_AS(data::make_sampling_table(1, 0), argument_error);
}

} // namespace tokenizer_test
