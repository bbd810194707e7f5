#include <tapegraph/data/text/byte_pair_files.hpp>
#include <tapegraph/data/text/byte_pair_training.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

/// Expected tokens are those of Hugging Face's tokenizers 0.23.

namespace byte_pair_test {

using namespace tapegraph;
using ids = std::vector<std::int32_t>;
using texts = std::vector<std::string>;

namespace {

texts pieces(const std::string& text, data::byte_level_split split) {
    texts result;
    data::for_each_piece(text, split, [&](std::string_view piece) { result.emplace_back(piece); });
    return result;
}

const texts corpus{"low low low low low", "lower lower", "newest newest newest newest newest newest",
                   "widest widest widest"};

data::byte_pair_encoding learned(std::int64_t size, data::byte_level_split split = data::byte_level_split::gpt2) {
    return data::learn_byte_pair_encoding(std::span<const std::string>(corpus),
                                          {.vocab_size = size, .special_tokens = {"<|end|>"}, .split = split});
}
/// All bytes and what is given.
data::byte_pair_tables tables_of(const texts& more, std::vector<std::pair<std::string, std::string>> merges) {
    data::byte_pair_tables tables = learned(257).tables();
    for (const auto& each : more)
        tables.vocabulary.emplace_back(each, static_cast<std::int32_t>(tables.vocabulary.size()));
    tables.merges = std::move(merges);
    return tables;
}

} // namespace

TEST_CASE("pieces of texts") {
    using split = data::byte_level_split;
    CHECK(pieces("Hello  world's 'S it'll x12345", split::gpt2) ==
          texts{"Hello", " ", " world", "'s", " '", "S", " it", "'ll", " x", "12345"});
    CHECK(pieces("a\n\n b \t", split::gpt2) == texts{"a", "\n\n", " b", " \t"});
    CHECK(pieces("a\n\nb ", split::gpt2) == texts{"a", "\n", "\n", "b", " "});
    CHECK(pieces(" \xC3\xA9t\xC3\xA9 \xE2\x82\xAC!", split::gpt2) == texts{" \xC3\xA9t\xC3\xA9", " \xE2\x82\xAC!"});
    CHECK(pieces("a\xFF\x80"
                 "b",
                 split::gpt2) == texts{"a", "\xFF\x80", "b"});
    CHECK(pieces("I'LL (yes)\r\n\n  12345 end\xE2\x80\x83", split::cl100k) ==
          texts{"I", "'LL", " (", "yes", ")\r\n\n", " ", " ", "123", "45", " end", "\xE2\x80\x83"});
    CHECK(pieces("  \n \n x 12", split::cl100k) == texts{"  \n \n", " x", " ", "12"});
    CHECK(pieces(" 12", split::qwen2) == texts{" ", "1", "2"});
    CHECK(pieces("a b", split::none) == texts{"a b"});
    for (const auto each : {split::gpt2, split::cl100k, split::qwen2, split::none}) CHECK(pieces("", each).empty());
}

TEST_CASE("bytes as characters, and back") {
    CHECK(data::byte_level_text(" n\xC3\xA9\n") == "\xC4\xA0n\xC3\x83\xC2\xA9\xC4\x8A"); // ĠnÃ©Ċ
    std::string all, back;
    for (int b = 0; b < 256; ++b) all += static_cast<char>(static_cast<unsigned char>(b));
    REQUIRE(data::byte_level_bytes(data::byte_level_text(all), back));
    CHECK(back == all);
    CHECK_FALSE(data::byte_level_bytes("a b", back));
    CHECK_FALSE(data::byte_level_bytes("\xE2\x96\x81", back));
    CHECK_FALSE(data::byte_level_bytes("a\xC3", back));
}

TEST_CASE("merges are learned: the most frequent pair, then that of the smaller ids") {
    const auto b = learned(257 + 12);
    // BpeTrainer(vocab_size=269, special_tokens=["<|end|>"], initial_alphabet=ByteLevel.alphabet())
    const std::vector<std::pair<std::string, std::string>> expected{
        {"e", "s"},     {"es", "t"},         {"l", "o"},
        {"lo", "w"},    {"e", "w"},          {"n", "ew"},
        {"new", "est"}, {"\xC4\xA0", "low"}, {"\xC4\xA0", "newest"},
        {"d", "est"},   {"i", "dest"},       {"w", "idest"}};
    CHECK(b.tables().merges == expected);
    CHECK(b.size() == 269);
    CHECK(b.id_of("<|end|>") == 0);
    CHECK(b.id_of("!") == 1);
    CHECK(b.id_of("est") == 258);
    CHECK(b.bytes_of(265) == " newest");
    CHECK_FALSE(b.id_of("xyz"));
    CHECK(b.encode("lowest newest") == ids{260, 258, 265});
    CHECK(b.encode("<|end|>low<|end|>") == ids{0, 260, 0});
    CHECK(b.encode("<|end|>low", false).size() == 8);
    CHECK(b("") == ids{});
    CHECK(learned(257).tables().merges.empty());
    // Nothing is left to merge: far fewer than asked for.
    const auto all = learned(5000);
    CHECK(all.size() < 300);
    CHECK(all.encode(" newest").size() == 1);
    const auto frequent = data::learn_byte_pair_encoding(std::span<const std::string>(corpus), {.min_frequency = 6});
    for (const auto& [left, right] : frequent.tables().merges)
        CHECK(left + right != "\xC4\xA0"
                              "low"); // 4 times
    CHECK(support::message_of<argument_error>([] { learned(256); }) ==
          "learn_byte_pair_encoding: vocab_size is 256: it counts 256 bytes and 1 special tokens");
    // A pair that overlaps itself: "aaaaa" is aa aa a.
    const texts as{"aaaaa aaaaa"};
    const auto a = data::learn_byte_pair_encoding(std::span<const std::string>(as), {.vocab_size = 257});
    CHECK(a.encode("aaaaa") == ids{256, 256, a.encode("a")[0]});
}

TEST_CASE("every text comes back, byte for byte") {
    const auto b = learned(269);
    std::string all;
    for (int i = 0; i < 256; ++i) all += static_cast<char>(static_cast<unsigned char>(i));
    for (const std::string& text : {all, std::string("\xF0\x9F\x98\x80 n\xC3\xA9\xFF"), std::string(5000, 'l'),
                                    std::string("  \n newest's"), std::string()})
        CHECK(b.decode(b.encode(text)) == text);
    CHECK(b.decode(b.encode("a<|end|>b"), true) == "ab");
    CHECK(support::message_of<range_error>([&] {
              b.decode(ids{5, 269});
          }) == "byte_pair_encoding: no token has the id 269");
    CHECK_THROWS_AS(b.decode(ids{-1}), range_error);
}

TEST_CASE("added tokens: the longest, as words, with their blanks") {
    auto tables = learned(257).tables();
    tables.added.push_back({"<|end|>x", 257});
    tables.added.push_back({"cat", 258, false, true});
    tables.added.push_back({"[M]", 259, true, false, true, true});
    const data::byte_pair_encoding b(std::move(tables));
    CHECK(b.encode("<|end|><|end|>x") == ids{0, 257});
    CHECK(b.encode("cat") == ids{258});
    CHECK(b.encode("cats").size() == 4);
    CHECK(b.encode("\xC3\xA9"
                   "cat")
              .size() == 5);
    CHECK(b.encode("cat.cat").size() == 3);
    CHECK(b.encode("  [M] \n[M]") == ids{259, 259});
    CHECK(b.decode(ids{258, 259}, true) == "cat");
}

TEST_CASE("files of others: vocab.json with merges.txt, tokenizer.json") {
    const auto b = learned(269);
    const support::temporary_folder folder;
    const auto json = folder.path() / "tokenizer.json", vocabulary = folder.path() / "vocab.json",
               merges = folder.path() / "merges.txt";
    data::save_byte_pair_encoding(json, b);
    const auto whole = data::load_byte_pair_encoding(json);
    CHECK(data::to_tokenizer_json(whole) == data::to_tokenizer_json(b));
    CHECK(whole.encode("lowest<|end|> newest") == b.encode("lowest<|end|> newest"));
    data::save_byte_pair_encoding(vocabulary, merges, b);
    const auto two = data::load_byte_pair_encoding(vocabulary, merges);
    CHECK(two.encode("lowest newest") == ids{260, 258, 265});
    CHECK(support::read_text(merges).starts_with("#version: 0.2\ne s\nes t\n"));
    for (const auto split :
         {data::byte_level_split::cl100k, data::byte_level_split::qwen2, data::byte_level_split::none}) {
        const auto other = learned(269, split);
        const auto read = data::byte_pair_encoding_from_json(data::to_tokenizer_json(other));
        CHECK(read.tables().split == split);
        CHECK(read.encode("low 1234 lowest") == other.encode("low 1234 lowest"));
    }
    auto tables = tables_of({"ab"}, {{"a", "b"}});
    tables.add_prefix_space = true;
    const auto prefixed = data::byte_pair_encoding_from_json(data::to_tokenizer_json(data::byte_pair_encoding(tables)));
    CHECK(prefixed.decode(prefixed.encode("ab<|end|>ab")) == " ab<|end|> ab");
}

TEST_CASE("normalizers: before texts are split, with added tokens before and after them") {
    using normalizer = data::text_normalizer;
    auto tables = learned(257).tables();
    tables.normalizers = {normalizer::nfkc, normalizer::lower_case};
    tables.added.push_back({"\xE1\xBA\x9E", 257}); // capital sharp s, in the text as it is
    tables.added.push_back(
        {.content = "ON", .id = 258, .special = false, .normalized = true}); // "on" in the normalized one
    const data::byte_pair_encoding b(tables);
    CHECK(b.decode(b.encode("\xEF\xBC\xA1\xC3\x89"
                            "e\xCC\x81")) == "a\xC3\xA9\xC3\xA9"); // full-width A, E and e with accents
    CHECK(b.decode(b.encode("\xCE\xA3\xC4\xB0\xFF")) == "\xCF\x83i\xCC\x87\xFF");
    CHECK(b.encode("on") == ids{258});
    CHECK(b.encode("\xEF\xBC\xAFN\xE1\xBA\x9E") == ids{258, 257});
    CHECK(b.encode("\xC3\x9F") != ids{257}); // its lower case
    CHECK(b.encode("ON\xE1\xBA\x9E", false) == b.encode("oN\xE1\xBA\x9E", false));
    CHECK(b.encode("ON\xE1\xBA\x9E", false).size() == 4);
    CHECK(b.bytes_of(258) == "ON");

    const auto text = data::to_tokenizer_json(b);
    const auto read = data::byte_pair_encoding_from_json(text);
    CHECK(read.tables().normalizers == tables.normalizers);
    CHECK(data::to_tokenizer_json(read) == text);
    for (const auto one : {normalizer::nfd, normalizer::nfc, normalizer::nfkd, normalizer::nfkc, normalizer::lower_case,
                           normalizer::strip_accents}) {
        tables.normalizers = {one};
        const auto again =
            data::byte_pair_encoding_from_json(data::to_tokenizer_json(data::byte_pair_encoding(tables)));
        CHECK(again.tables().normalizers == tables.normalizers);
    }
    CHECK(data::normalized_text("\xC3\xA9", std::vector{normalizer::nfd, normalizer::strip_accents}) == "e");
    CHECK(data::normalized_text("\xC3\xA9\xCC\x81", normalizer::strip_accents) == "\xC3\xA9");
    // An added token of which nothing is left is not found.
    tables.normalizers = {normalizer::strip_accents};
    tables.added.push_back({.content = "\xCC\x81", .id = 259, .normalized = true});
    CHECK(data::byte_pair_encoding(tables).encode("e\xCC\x81").size() == 1);

    const texts loud{"LOW LOW LOW low low", "LOWER lower"}, quiet{"low low low low low", "lower lower"};
    const auto trained = data::learn_byte_pair_encoding(std::span<const std::string>(loud),
                                                        {.vocab_size = 260, .normalizers = {normalizer::lower_case}});
    CHECK(trained.tables().merges ==
          data::learn_byte_pair_encoding(std::span<const std::string>(quiet), {.vocab_size = 260}).tables().merges);
    CHECK(trained.encode("LoWeR") == trained.encode("lower"));
}

TEST_CASE("merges must agree with the vocabulary") {
    // "abc" is a token, but no merge leads to it.
    auto tables = tables_of({"ab", "abc"}, {{"a", "b"}});
    CHECK(data::byte_pair_encoding(tables).encode("abc").size() == 2);
    tables.ignore_merges = true;
    CHECK(data::byte_pair_encoding(tables).encode("abc") == ids{258});
    // A smaller vocabulary: bytes without a token are an error, or the unknown token.
    data::byte_pair_tables small{{{"a", 0}, {"b", 1}, {"?", 2}}, {}};
    CHECK(support::message_of<argument_error>([&] { data::byte_pair_encoding(small).encode("ac"); }) ==
          "byte_pair_encoding: no token for byte 99 of 'ac'");
    small.unknown = "?";
    CHECK(data::byte_pair_encoding(small).encode("acb") == ids{0, 2, 1});
    small.unknown = "!";
    CHECK_THROWS_AS(data::byte_pair_encoding{small}, argument_error);
    // A token that is no byte-level text is decoded as it stands.
    const data::byte_pair_encoding odd({{{"a", 0}, {"\xE2\x96\x81x", 1}}, {}});
    CHECK(odd.decode(ids{1, 0}) == "\xE2\x96\x81xa");

    const auto refusal = [](data::byte_pair_tables wrong) {
        return support::message_of<argument_error>([&] { data::byte_pair_encoding{std::move(wrong)}; });
    };
    CHECK(refusal({{{"a", 0}, {"b", 0}}, {}}) == "byte_pair_encoding: two tokens have the id 0, one is 'b'");
    CHECK(refusal({{{"a", 0}, {"a", 1}}, {}}) == "byte_pair_encoding: the token 'a' appears twice");
    CHECK(refusal({{{"a", 5000}}, {}}) == "byte_pair_encoding: the token 'a' has the id 5000, there are 1 tokens");
    CHECK(refusal({{{"a", -1}}, {}}) == "byte_pair_encoding: the token 'a' has the id -1, there are 1 tokens");
    CHECK(refusal({{{"a", 0}, {"b", 1}}, {{"a", "b"}}}) ==
          "byte_pair_encoding: merge 1 ('a', 'b'): 'ab' is not a token");
    CHECK(refusal({{{"a", 0}}, {}, {{"x", 0}}}) ==
          "byte_pair_encoding: the added token 'x' has the id 0, which is that of another token");
    CHECK(refusal({{{"a", 0}}, {}, {{"", 1}}}) == "byte_pair_encoding: an added token is empty");
}

TEST_CASE("o200k: capitals begin a word, endings and marks belong to it") {
    const auto cut = [](const std::string& text) { return pieces(text, data::byte_level_split::o200k); };
    CHECK(cut("HTMLParser isn't XY") == texts{"HTMLParser", " isn't", " XY"});
    CHECK(cut("aBc'LLd 12345/x") == texts{"a", "Bc'LL", "d", " ", "123", "45", "/x"});
    CHECK(cut("a/b//\n\nC") == texts{"a", "/b", "//\n\n", "C"});
    CHECK(cut("\xE4\xB8\xAD"
              "A") == texts{"\xE4\xB8\xAD", "A"}); // no capital and no small letter, then a capital
    CHECK(cut("A\xCC\x81"
              "b") == texts{"A\xCC\x81"
                            "b"}); // A, an accent, b
    CHECK(cut(" \xCC\x81x") == texts{" \xCC\x81x"});
    CHECK(cut("\xFFx  \n y ") == texts{"\xFFx", "  \n", " y", " "});
}

TEST_CASE("SentencePiece's tokens: characters, marked blanks, bytes of what has no token") {
    data::byte_pair_tables tables;
    tables.characters = tables.fuse_unknown = true;
    tables.unknown = "<unk>";
    tables.normalizers = {data::text_normalizer::prepend_blank, data::text_normalizer::mark_blanks};
    const std::string blank(data::blank_sign);
    for (const std::string& token : {std::string("<unk>"), blank, std::string("a"), std::string("b"), blank + "a",
                                     std::string("ab"), std::string("<0xC3>"), std::string("<0xA9>")})
        tables.vocabulary.emplace_back(token, static_cast<std::int32_t>(tables.vocabulary.size()));
    tables.merges = {{blank, "a"}, {"a", "b"}};
    tables.added = {{"</s>", 8}};
    const data::byte_pair_encoding unknown(tables);
    CHECK(unknown.encode("ab a") == ids{4, 3, 4});
    CHECK(unknown.encode("bab") == ids{1, 3, 5});
    CHECK(unknown.encode("cc\xC3\xA9"
                         "a") == ids{1, 0, 2});  // fused
    CHECK(unknown.encode("</s>a") == ids{8, 4}); // each text between added tokens begins with a blank
    CHECK(unknown.decode(ids{4, 3, 4}) == "ab a");
    CHECK(unknown.decode(ids{2, 4}) == "a a");
    tables.byte_fallback = true;
    const data::byte_pair_encoding bytes(tables);
    CHECK(bytes.encode("\xC3\xA9") == ids{1, 6, 7});
    CHECK(bytes.decode(bytes.encode("b\xC3\xA9")) == "b\xC3\xA9");
    CHECK(bytes.encode("\xC3\xA8") == ids{1, 0}); // 0xA8 is no token
    tables.fuse_unknown = false;
    CHECK(data::byte_pair_encoding(tables).encode("cc") == ids{1, 0, 0});
    const auto again = data::byte_pair_encoding_from_json(data::to_tokenizer_json(bytes));
    CHECK(again.tables().characters);
    CHECK(again.encode("a c\xC3\xA9</s>") == bytes.encode("a c\xC3\xA9</s>"));
    // Metaspace adds a blank where there is none.
    tables.normalizers.clear();
    tables.prefix = data::blank_prefix::first;
    CHECK(data::byte_pair_encoding(tables).encode("a</s>a a") == ids{4, 8, 2, 4});
    CHECK(data::byte_pair_encoding(tables).encode(" a") == ids{4});
    tables.prefix = data::blank_prefix::never;
    CHECK(data::byte_pair_encoding(tables).encode("a a") == ids{2, 4});
    CHECK(data::byte_pair_encoding(tables).decode(ids{4}) == " a");
    tables.vocabulary.emplace_back("a" + blank, 9), tables.merges.insert(tables.merges.begin(), {"a", blank});
    CHECK(data::byte_pair_encoding(tables).encode("a a") == ids{9, 2});
    tables.split_at_blanks = true;
    CHECK(data::byte_pair_encoding(tables).encode("a a") == ids{2, 4});
}

TEST_CASE("files that are wrong, or want what is not supported") {
    const auto refusal = [](const std::string& json) {
        return support::message_of<data_error>([&] { data::byte_pair_encoding_from_json(json, "'t.json'"); });
    };
    const std::string model = R"("model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})";
    const std::string cut = R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false})";
    CHECK(data::byte_pair_encoding_from_json("{" + cut + "," + model + "}").encode("ab") == ids{2});
    CHECK(refusal("{" + cut + "}") == "'t.json': no model");
    CHECK(refusal("{" + model + "}") ==
          "'t.json': the pre_tokenizer is neither ByteLevel nor Metaspace, and no other is supported");
    CHECK(support::contains(refusal(R"({"normalizer": {"type": "Replace"}})"),
                            "'t.json': the normalizer 'Replace' is not supported"));
    CHECK(support::contains(
        refusal(R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"prepend": "x"}]}})"),
        "'t.json': the normalizer '' is not supported"));
    CHECK(support::contains(refusal(R"({"model": {"type": "WordPiece"}})"),
                            "the model is 'WordPiece', only 'BPE' is supported"));
    CHECK(support::contains(refusal(R"({"model": {"dropout": 0.1}})"), "dropout is not supported"));
    CHECK(support::contains(
        refusal("{" + cut + R"(, "model": {"type": "BPE", "byte_fallback": true, "vocab": {}, "merges": []}})"),
        "ByteLevel with U+2581 for blanks or with byte_fallback is not supported"));
    CHECK(
        support::contains(refusal(R"({"model": {"merges": ["ab"]}})"), "the merge 'ab' is not two tokens and a blank"));
    CHECK(support::contains(refusal(R"({"model": {"merges": [["a"]]}})"), "a merge of 1 tokens"));
    CHECK(support::contains(refusal(R"({"model": {"vocab": {"a": 4294967296}}})"), "the id of 'a' is 4294967296"));
    CHECK(support::contains(refusal(R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "_"}})"),
                            "Metaspace with '_' is not supported"));
    CHECK(support::contains(refusal(R"({"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "last"}})"),
                            "the prepend_scheme 'last' is not supported"));
    CHECK(support::contains(refusal(R"({"pre_tokenizer": {"type": "Whitespace"}})"),
                            "the pre_tokenizer 'Whitespace' is not supported"));
    CHECK(support::contains(refusal(R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "x"}}})"),
                            "the Split by 'x' is not supported"));
    const auto two = [](const std::string& vocabulary, const std::string& merges) {
        return support::message_of<data_error>(
            [&] { data::byte_pair_encoding_from_gpt2(vocabulary, merges, "'v'", "'m'"); });
    };
    CHECK(two(R"({"a": 0})", "#version: 0.2\na b c\n") == "'m', line 2: 'a b c' is not two tokens and a blank");
    CHECK(two(R"({"a": 0})", "a b\n") == "'v' and 'm': byte_pair_encoding: merge 1 ('a', 'b'): 'b' is not a token");
    CHECK(support::contains(two("[]", ""), "'v'"));
    CHECK(two(R"({"a": 0})", "a \xFF\n") == "'m': no UTF-8 at byte 2: 0xff");
}

} // namespace byte_pair_test
