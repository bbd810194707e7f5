#include <tapegraph/data/text/tokens.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tokens_test {

using namespace tapegraph;
using words = std::vector<std::string>;

namespace {
words tokens(std::string_view text, const data::token_options& options = {}) {
    words all;
    const std::string standard = data::standardize(text, options);
    data::for_each_token(standard, options.unit, [&](std::string_view token) { all.emplace_back(token); });
    return all;
}
} // namespace

TEST_CASE("words: lower case, no punctuation, split at blanks") {
    CHECK(tokens("The crew, I think, DIDN'T care!") == words{"the", "crew", "i", "think", "didnt", "care"});
    CHECK(tokens("  a \t\n\v\f\r b  ") == words{"a", "b"});
    CHECK(tokens("...  !?") == words{});
    CHECK(tokens("") == words{});
    CHECK(tokens("A-b C", {.lower_case = false}) == words{"Ab", "C"});
    CHECK(tokens("A-b C", {.strip_punctuation = false}) == words{"a-b", "c"});
    CHECK(tokens("caf\xC3\xA9 \xC3\x89T\xC3\x89") ==
          words{"caf\xC3\xA9", "\xC3\x89t\xC3\x89"}); // letters beyond ASCII stay
}

TEST_CASE("all of ASCII's punctuation goes, and nothing else") {
    int gone = 0;
    for (int c = 1; c < 256; ++c) {
        const std::string one(1, static_cast<char>(c));
        const std::string left = data::standardize(one, {.lower_case = false});
        if (left.empty()) {
            ++gone;
            CHECK(std::string_view("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~").find(static_cast<char>(c)) !=
                  std::string_view::npos);
        } else {
            CHECK(left == one);
        }
    }
    CHECK(gone == 32);
}

TEST_CASE("characters: UTF-8 sequences are whole, blanks count") {
    const data::token_options characters{
        .lower_case = false, .strip_punctuation = false, .unit = data::token_unit::character};
    CHECK(tokens("a b\n.", characters) == words{"a", " ", "b", "\n", "."});
    CHECK(tokens("x\xC3\xA9\xF0\x9F\x9B\xAB!", characters) == words{"x", "\xC3\xA9", "\xF0\x9F\x9B\xAB", "!"});
    // no UTF-8: nothing is lost
    CHECK(tokens("\x80\xC3"
                 "a\x80",
                 characters) == words{"\x80", "\xC3", "a\x80"});
}

} // namespace tokens_test
