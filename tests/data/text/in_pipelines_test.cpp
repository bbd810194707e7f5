#include <tapegraph/data/loader.hpp>
#include <tapegraph/data/pipeline.hpp>
#include <tapegraph/data/tables/hashing.hpp>
#include <tapegraph/data/tables/normalization.hpp>
#include <tapegraph/data/text/byte_pair_training.hpp>
#include <tapegraph/data/text/padding.hpp>
#include <tapegraph/data/text/tokenizer.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace in_pipelines_test {

using namespace tapegraph;
using ints = std::vector<std::int32_t>;

TEST_CASE("tokenizers, byte pairs and steps in map, on any number of threads") {
    const std::vector<std::string> texts{"the cat sat", "a dog", "the end of the cat", "on the mat", "", "dog"};
    data::tokenizer words({.oov_token = "?"});
    words.fit_on_texts(texts);
    const auto pairs = data::learn_byte_pair_encoding(std::span<const std::string>(texts), {.vocab_size = 280});
    const data::normalization scale({2}, {4});
    const data::hashing bins({.num_bins = 10});
    for (const int threads : {1, 3}) {
        CAPTURE(threads);
        std::size_t seen = 0;
        const auto set = data::elements(texts).map(
            [&](const std::string& text) {
                std::vector<float> length{static_cast<float>(text.size())};
                return std::tuple(words(text), pairs.encode(text), scale(length)[0], bins.index_of(text));
            },
            {.threads = threads});
        for (const auto& [indices, tokens, length, bin] : set) {
            const std::string& text = texts[seen++];
            CHECK(indices == words(text));
            CHECK(pairs.decode(tokens) == text);
            CHECK(length == (static_cast<float>(text.size()) - 2) / 2);
            CHECK(bin == bins.index_of(text));
        }
        CHECK(seen == texts.size());
    }
}

TEST_CASE("sequences of different lengths in padded batches") {
    const std::vector<std::string> texts{"the cat", "a", "the the a cat"};
    data::tokenizer words;
    words.fit_on_texts(texts);
    std::vector<ints> batches;
    const auto set = data::elements(texts).map([&](const std::string& text) { return words(text); });
    for (const auto& batch : set.padded_batch(2)) batches.push_back(ints(batch.data(), batch.data() + batch.size()));
    CHECK(batches == std::vector<ints>{{1, 2, 3, 0}, {1, 1, 3, 2}});
    // As rows of one length, cut and padded in front
    batches.clear();
    const auto rows = set.map([](const ints& indices) {
        std::array<std::int32_t, 3> row{};
        data::pad_sequence(std::span<const std::int32_t>(indices), std::span<std::int32_t>(row));
        return row;
    });
    for (const auto& batch : rows.batch(3)) batches.push_back(ints(batch.data(), batch.data() + batch.size()));
    CHECK(batches == std::vector<ints>{{0, 1, 2, 0, 0, 3, 1, 3, 2}});
}

} // namespace in_pipelines_test
