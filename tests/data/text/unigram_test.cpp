// needs: unicode
#include <tapegraph/data/text/unigram_files.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace unigram_test {

using namespace tapegraph;
using ids = std::vector<std::int32_t>;

namespace {

// The greatest sum of scores over all ways to cut a text of single-byte characters.
double best_sum(const std::vector<std::pair<std::string, double>>& tokens, const std::string& text, double unknown) {
    if (text.empty()) return 0;
    double best = -std::numeric_limits<double>::infinity();
    bool known = false;
    for (const auto& [token, score] : tokens)
        if (!token.empty() && text.starts_with(token)) {
            known = known || token.size() == 1;
            best = std::max(best, score + best_sum(tokens, text.substr(token.size()), unknown));
        }
    return known ? best : std::max(best, unknown + best_sum(tokens, text.substr(1), unknown));
}

// SentencePiece's rules: a trie in which every node has its own block of 256 units, and the texts.
std::string rules(const std::vector<std::pair<std::string, std::string>>& changes) {
    std::vector<std::uint32_t> units(256, 0);
    std::string texts;
    units[0] = 1u << 18; // children of the root stand at 256 xor their byte
    units.resize(512, 0);
    for (const auto& [from, to] : changes) {
        std::size_t node = 0, block = 256;
        for (const char c : from) {
            node = block ^ static_cast<unsigned char>(c);
            if (units[node] == 0) { // a new block behind the others
                const std::size_t next = units.size();
                units.resize(next + 256, 0);
                units[node] = static_cast<std::uint32_t>((node ^ next) << 10) | static_cast<unsigned char>(c);
            }
            block = node ^ (units[node] >> 10);
        }
        units[node] |= 1u << 8; // a rule ends here: its value stands at the block's place for byte 0
        units[block] = static_cast<std::uint32_t>(texts.size()) | 1u << 31;
        texts += to + '\0';
    }
    const auto size = static_cast<std::uint32_t>(units.size() * 4);
    std::string bytes(4 + size, '\0');
    std::memcpy(bytes.data(), &size, 4);
    std::memcpy(bytes.data() + 4, units.data(), size);
    return bytes + texts;
}

} // namespace

TEST_CASE("the best way to cut a text, compared with all ways") {
    std::vector<std::pair<std::string, double>> tokens{{"<unk>", 0}, {"a", -1},  {"b", -1.5},   {"ab", -2.25},
                                                       {"aba", -3},  {"bb", -2}, {"bab", -2.5}, {"aabb", -4.25}};
    data::unigram_tables tables{
        .vocabulary = tokens, .unknown = 0, .prefix = data::blank_prefix::none, .split_at_blanks = false};
    const data::unigram words(tables);
    std::mt19937 draw(7);
    for (int n = 0; n < 300; ++n) {
        std::string text;
        for (int i = 0; i < n % 11; ++i) text += "abc"[draw() % 3];
        double sum = 0;
        for (const std::int32_t id : words.encode(text))
            sum += id == 0 ? 0 : tokens[static_cast<std::size_t>(id)].second;
        for (const char c : text) sum += c == 'c' ? -14.25 : 0; // the lowest score - 10
        CHECK(sum == best_sum(tokens, text, -14.25));
    }
    CHECK(words.encode("acccb") == ids{1, 0, 2}); // unknown neighbours are one token
    CHECK(words.encode("").empty());
}

TEST_CASE("blanks, bytes and added tokens") {
    data::unigram_tables tables{
        .vocabulary = {{"<unk>", 0}, {"\u2581", -3}, {"\u2581a", -1}, {"b", -1}, {"<0xC3>", -9}, {"<0xB6>", -9}},
        .unknown = 0,
        .byte_fallback = true,
        .added = {{"<m>", 6}}};
    const data::unigram words(tables);
    CHECK(words.size() == 7);
    CHECK(words.encode("a  ab") == ids{2, 1, 2, 3});
    CHECK(words.decode(words.encode("a  ab")) == "a  ab");
    CHECK(words.encode("a\u00f6\u00e4<m>b") ==
          ids{2, 0, 6, 1, 3}); // both unknown at once, and not all of their bytes are tokens
    CHECK(words.encode("a\u00f6") == ids{2, 4, 5});
    CHECK(words.decode(words.encode("a\u00f6")) == "a\u00f6");
    CHECK(words.encode("<m>", false) == ids{1, 0});
    CHECK(words.id_of("<m>") == 6);
    CHECK(words.decode(ids{6, 2}, true) == "a");
    tables.prefix = data::blank_prefix::first;
    CHECK(data::unigram(tables).encode("a<m>b") == ids{2, 6, 3});
    tables.split_at_spaces = true;
    tables.prefix = data::blank_prefix::always;
    CHECK(data::unigram(tables).encode(" a\u2003\tab ") == ids{2, 2, 3});
    tables.unknown.reset();
    CHECK_THROWS_WITH_AS(data::unigram(tables).encode("z"), doctest::Contains("unigram: no token for 'z'"),
                         argument_error);
    CHECK_THROWS_AS(data::unigram({.vocabulary = {}}), argument_error);
    CHECK_THROWS_AS(data::unigram({.vocabulary = {{"a", 0}}, .unknown = 1}), argument_error);
    CHECK_THROWS_AS(words.decode(ids{7}), range_error);
}

TEST_CASE("SentencePiece's rules: whole graphemes first, then characters") {
    const data::precompiled_normalizer by(
        rules({{"A", "a"}, {"\uFB01", "fi"}, {"e\u0301", "\u00e9"}, {"\u00AD", ""}, {"\t", " "}}));
    CHECK(by("A\uFB01x") == "afix");
    CHECK(by("e\u0301e") == "\u00e9e");
    CHECK(by("a\u00ADb\tA") == "ab a");
    CHECK(by("A\u0301\u0302\u0303").starts_with("a")); // longer than 5 bytes: character by character
    CHECK(by("A\u0301") == "a");                       // shorter: the grapheme becomes what its beginning becomes
    CHECK(by("\xFFq") == "\xFFq");
    CHECK_THROWS_WITH_AS(data::precompiled_normalizer("\x08"), doctest::Contains("precompiled_charsmap"),
                         argument_error);
    CHECK_THROWS_AS(data::precompiled_normalizer(std::string("\x08\0\0\0abcd", 8)), argument_error);
}

TEST_CASE("a tokenizer.json, and what it may not hold") {
    const auto file = [](const std::string& normalizer,
                         const std::string& pre = R"({"type": "Metaspace", "replacement": "\u2581"})") {
        return R"({"normalizer": )" + normalizer + R"(, "pre_tokenizer": )" + pre +
               R"(, "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["\u2581a", -1], ["b", -2.5], ["\"", -3], ["\u2581", -4]]}})";
    };
    const std::string albert =
        R"({"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "``"}, "content": "\""},)"
        R"({"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, {"type": "Strip"},)"
        R"({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]})";
    const auto words = data::unigram_from_json(file(albert));
    CHECK(words.encode("  \u00c1    B`` ") == ids{1, 4, 2, 3});
    CHECK(words.id_of("b") == 2);
    CHECK(data::unigram_from_json(file("null", "null")).encode("b b") == ids{2, 0, 2});
    const auto why = [](const std::string& text) -> std::string {
        try {
            data::unigram_from_json(text, "t5.json");
        } catch (const data_error& e) {
            return e.what();
        }
        return "none";
    };
    CHECK(why(file(R"({"type": "Nmt"})")).find("the normalizer 'Nmt' is not supported") != std::string::npos);
    CHECK(why(file(R"({"type": "Replace", "pattern": {"Regex": "x+"}, "content": ""})")).find("by the pattern 'x+'") !=
          std::string::npos);
    CHECK(why(file(R"({"type": "Precompiled", "precompiled_charsmap": "?"})")).find("is not base64") !=
          std::string::npos);
    CHECK(
        why(file(R"({"type": "Precompiled", "precompiled_charsmap": "AAAA"})")).find("precompiled_charsmap: a trie") !=
        std::string::npos);
    CHECK(why(file("null", R"({"type": "ByteLevel"})")).find("ByteLevel") != std::string::npos);
    CHECK(why(R"({"model": {"type": "BPE"}})").find("only 'Unigram' is supported") != std::string::npos);
    CHECK(why("{}").find("t5.json: no model") != std::string::npos);
}

} // namespace unigram_test
