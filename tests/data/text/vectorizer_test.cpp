#include <tapegraph/data/loader.hpp>
#include <tapegraph/data/text/vectorizer.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace vectorizer_test {

using namespace tapegraph;
using indices = std::vector<std::int32_t>;
using words = std::vector<std::string>;

namespace {

const words reviews{"The crew was GREAT!", "the seat was not great, not at all", "the crew"};

data::text_vectorizer adapted(data::vectorizer_options options = {}) {
    data::text_vectorizer v(options);
    v.adapt(reviews);
    return v;
}

} // namespace

TEST_CASE("adapt makes the vocabulary, texts become indices") {
    const auto v = adapted();
    // the 3; crew, great, not, was 2; all, at, seat 1
    CHECK(v.words().words() == words{"the", "crew", "great", "not", "was", "all", "at", "seat"});
    CHECK(v.indices_of("The seat was LATE") == indices{2, 9, 6, 1});
    CHECK(v.indices_of("  ").empty());
    CHECK(adapted({.max_tokens = 4}).indices_of(reviews[0]) == indices{2, 3, 1, 1});
    auto again = adapted();
    again.adapt(words{"nothing else"});
    CHECK(again.words().words() == words{"else", "nothing"});
}

TEST_CASE("rows are padded at either end, truncated at the back") {
    const auto whole = adapted().rows(reviews);
    CHECK(whole.count == 3);
    CHECK(whole.length == 8); // the longest
    CHECK(whole.lengths == indices{4, 8, 2});
    CHECK(whole.indices == indices{2, 3, 6, 4, 0, 0, 0, 0, 2, 9, 6, 5, 4, 5, 8, 7, 2, 3, 0, 0, 0, 0, 0, 0});
    CHECK(adapted({.length = 3}).rows(reviews).indices == indices{2, 3, 6, 2, 9, 6, 2, 3, 0});
    const auto front = adapted({.length = 5, .padding = data::pad_side::front}).rows(reviews);
    CHECK(front.indices == indices{0, 2, 3, 6, 4, 2, 9, 6, 5, 4, 0, 0, 0, 2, 3});
    CHECK(front.lengths == indices{4, 5, 2});
    CHECK(adapted({.length = 9}).rows(reviews).length == 9);
    const auto none = adapted({.length = 4}).rows(words{});
    CHECK(none.count == 0);
    CHECK(none.indices.empty());
}

TEST_CASE("characters as tokens") {
    data::text_vectorizer v(
        {.tokens = {.lower_case = false, .strip_punctuation = false, .unit = data::token_unit::character}});
    v.adapt(words{"aab\n\xC3\xA9"});
    CHECK(v.words().words() == words{"a", "\n", "b", "\xC3\xA9"});
    CHECK(v.indices_of("b\xC3\xA9\xC3") == indices{4, 5, 1});
}

TEST_CASE("texts that are too long or empty are named") {
    const auto strict = adapted({.length = 6, .truncate = false});
    CHECK(support::message_of<data_error>([&] { strict.rows(reviews); }) ==
          "text 1: 8 tokens, at most 6 are allowed: 'the seat was not great, not at all'");
    CHECK(adapted({.length = 8, .truncate = false}).rows(reviews).length == 8);
    data::labelled_texts table{{"the crew", " ... "}, {0, 1}, {"a", "b"}, "'t.csv'", {2, 5}};
    CHECK(support::message_of<data_error>([&] { adapted().rows(table); }) == "'t.csv', row 5: no tokens in ' ... '");
    const auto allowed = adapted({.empty = data::empty_text::unknown}).rows(table);
    CHECK(allowed.indices == indices{2, 3, 1, 0});
    CHECK(allowed.lengths == indices{2, 1});
    CHECK_THROWS_AS(data::text_vectorizer({.length = -1}), argument_error);
    CHECK_THROWS_AS(data::text_vectorizer({.max_tokens = -1}), argument_error);
    CHECK_THROWS_AS(adapted({.max_tokens = 2}), argument_error);
}

TEST_CASE("a data set of indices and labels, of any type a model may take") {
    const data::labelled_texts all{reviews, {2, 0, 1}, {"negative", "neutral", "positive"}, "", {}};
    const auto set = data::make_dataset(all, adapted({.length = 4}));
    REQUIRE(set.size() == 3);
    CHECK(set.columns()[0].name == "tokens");
    CHECK(set.columns()[0].type == dtype::f32);
    CHECK(set.columns()[0].shape == std::vector<std::int64_t>{4});
    CHECK(set.columns()[1].type == dtype::i32);
    CHECK(set.columns()[1].shape.empty());
    data::loader batches(set.batch(3));
    batches.begin_epoch(0);
    const data::batch* b = batches.next();
    CHECK(std::vector<float>(b->values<float>("tokens").begin(), b->values<float>("tokens").end()) ==
          std::vector<float>{2, 3, 6, 4, 2, 9, 6, 5, 2, 3, 0, 0});
    CHECK(b->values<std::int32_t>("label")[2] == 1);
    CHECK(data::make_dataset<std::int64_t>(all, adapted()).columns()[0].type == dtype::i64);
    // 2^24 + 1 is no float, 2^24 is
    CHECK_THROWS_AS(data::detail::indices_as<float>({1}, (1 << 24) + 2), argument_error);
    CHECK(data::detail::indices_as<float>({1 << 24}, (1 << 24) + 1)[0] == 16777216.0f);
    CHECK(data::detail::indices_as<double>({1}, (1 << 24) + 2).size() == 1);
}

TEST_CASE("texts are divided as records are, and keep their rows") {
    data::labelled_texts all;
    all.class_names = {"even", "odd"};
    all.origin = "'t.csv'";
    for (int i = 0; i < 50; ++i) {
        all.texts.push_back("text " + std::to_string(i));
        all.labels.push_back(i % 2);
        all.rows.push_back(i + 2);
    }
    const auto parts = data::train_validation_split(all, 7, 0.2);
    REQUIRE(parts.train.size() == 40);
    REQUIRE(parts.validation.size() == 10);
    words seen;
    for (const auto* part : {&parts.train, &parts.validation}) {
        CHECK(part->class_names == all.class_names);
        for (std::size_t i = 0; i < part->texts.size(); ++i) {
            const int number = std::stoi(part->texts[i].substr(5));
            CHECK(part->labels[i] == number % 2);
            CHECK(part->name_of(i) == "'t.csv', row " + std::to_string(number + 2));
            seen.push_back(part->texts[i]);
        }
    }
    std::sort(seen.begin(), seen.end());
    CHECK(std::unique(seen.begin(), seen.end()) == seen.end());
    data::dataset numbers;
    numbers.add("label", all.labels);
    const auto records = data::train_validation_split(numbers, 7, 0.2);
    for (std::int64_t i = 0; i < 10; ++i)
        CHECK(parts.validation.texts[static_cast<std::size_t>(i)] ==
              all.texts[static_cast<std::size_t>(records.validation.record_at(i))]);
    CHECK(data::train_validation_split(all, 8, 0.2).validation.texts != parts.validation.texts);
    CHECK(all.subset({3}).name_of(0) == "'t.csv', row 5");
    CHECK_THROWS_AS(all.subset({50}), range_error);
    // of texts that came from nowhere the number stays known
    const data::labelled_texts made{reviews, {0, 0, 0}, {"a"}, "", {}};
    CHECK(made.name_of(2) == "text 2");
    CHECK(made.subset({2, 1}).name_of(0) == "row 2");
}

} // namespace vectorizer_test
