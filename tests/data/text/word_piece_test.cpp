#include <tapegraph/data/text/word_piece_files.hpp>

#include <support/messages.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace word_piece_test {

using namespace tapegraph;
using support::contains;
using support::message_of;
using ids = std::vector<std::int32_t>;

namespace {

const std::vector<std::string> vocabulary{"[PAD]", "[UNK]", "[CLS]", "[MASK]", "un", "##aff",        "##able", "a",
                                          "##b",   "ete",   ",",     "'",      "s",  "\xE4\xB8\xAD", "##x",    "."};

std::string vocabulary_file() {
    std::string text;
    for (const std::string& token : vocabulary) text += token + "\n";
    return text;
}
const std::string tokenizer_json =
    R"({"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
 "pre_tokenizer": {"type": "BertPreTokenizer"}, "added_tokens": [{"id": 2, "content": "[CLS]", "special": true}],
 "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 4,
 "vocab": {"[UNK]": 1, "[CLS]": 2, "a": 0, "##a": 3}}})";

} // namespace

TEST_CASE("words are cut into the longest pieces, from the left") {
    const data::word_piece words(vocabulary);
    CHECK(words.encode("unaffable") == ids{4, 5, 6});
    CHECK(words.encode("unaffab") == ids{1}); // "##ab" has no piece, so the word has none
    CHECK(words.encode("Un, a's.") == ids{4, 10, 7, 11, 12, 15});
    CHECK(words.encode("\xC3\x89t\xC3\xA9") == ids{9}); // E, t, e without accents
    CHECK(words.encode("a\xE4\xB8\xAD"
                       "b") == ids{7, 13, 1}); // an ideograph is a word
    CHECK(words.encode("a\tx\x01") == ids{7, 1});
    CHECK(words.encode("a\xC2\xAD"
                       "b") == ids{7, 8}); // a soft hyphen is removed
    CHECK(words.encode("a\xFF"
                       "b") == ids{7, 8}); // as is what is not UTF-8
    CHECK(words.encode("").empty());
    CHECK(words.encode(" \n").empty());
    CHECK(words.encode(std::string(101, 'a')) == ids{1}); // longer than longest_word
    CHECK(words.decode(words.encode("Unaffable, a's.")) == "unaffable, a ' s.");
    CHECK_THROWS_AS(words.decode(ids{16}), range_error);
    CHECK_THROWS_AS(words.decode(ids{-1}), range_error);

    const data::word_piece as_is(vocabulary, {.lower_case = false});
    CHECK(as_is.encode("un Un") == ids{4, 1});
    CHECK(as_is.encode("\xC3\xA9te") == ids{1}); // keeps accents
    CHECK(data::word_piece(vocabulary, {.lower_case = false, .strip_accents = true}).encode("\xC3\xA9te") == ids{9});
    CHECK(data::word_piece(vocabulary, {.separate_chinese = false}).encode("a\xE4\xB8\xAD") == ids{1});
    CHECK(data::word_piece(vocabulary, {.longest_word = 8}).encode("unaffable") == ids{1});
}

TEST_CASE("files: vocab.txt, tokenizer.json, and what is not supported") {
    const support::temporary_folder folder;
    const data::word_piece words = data::load_word_piece(folder.write("vocab.txt", vocabulary_file()));
    CHECK(words.encode("[CLS]un[MASK]") == ids{2, 4, 3});
    CHECK(words.encode("[MASK]", false) == ids{1, 1, 1});
    CHECK(words.decode(ids{2, 4, 3}, true) == "un");
    data::save_word_piece(folder.path() / "tokenizer.json", words);
    const data::word_piece again = data::load_word_piece(folder.path() / "tokenizer.json");
    CHECK(again.tokens() == words.tokens());
    CHECK(again.encode("[CLS] unaffable \xC3\x89t\xC3\xA9") == ids{2, 4, 5, 6, 9});
    CHECK(data::to_tokenizer_json(again) == data::to_tokenizer_json(words));

    CHECK(data::word_piece_from_json(tokenizer_json).encode("A [CLS] aaaa aaaaa") == ids{0, 2, 0, 3, 3, 3, 1});
    const auto refusal = [](std::string text, const std::string& from, const std::string& to) {
        text.replace(text.find(from), from.size(), to);
        return message_of<data_error>([&] { data::word_piece_from_json(text, "t.json"); });
    };
    CHECK(contains(refusal(tokenizer_json, "BertNormalizer", "NFC"), "the normalizer 'NFC' is not supported"));
    CHECK(contains(refusal(tokenizer_json, "BertPreTokenizer", "Whitespace"), "pre_tokenizer 'Whitespace'"));
    CHECK(contains(refusal(tokenizer_json, "WordPiece", "BPE"), "the model is 'BPE'"));
    CHECK(contains(refusal(tokenizer_json, "\"##a\": 3", "\"##a\": 2"), "two tokens have the id 2"));
    CHECK(contains(refusal(tokenizer_json, "\"##a\": 3", "\"##a\": 9999"), "the id of '##a' is 9999"));
    CHECK(contains(refusal(tokenizer_json, "[UNK]\": 1", "[U]\": 1"), "t.json: word_piece: the unknown token '[UNK]'"));
    CHECK(contains(refusal(tokenizer_json, "\"id\": 2", "\"id\": 3"), "which is that of another token"));
    CHECK(contains(message_of<argument_error>([] { data::word_piece({"[UNK]", "a", "a"}); }), "'a' appears twice"));
}

} // namespace word_piece_test
