#include <tapegraph/data/text/vocabulary.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace vocabulary_test {

using namespace tapegraph;
using data::vocabulary;
using words = std::vector<std::string>;

TEST_CASE("padding is 0, the unknown word 1, words follow") {
    const vocabulary v(words{"the", "was", "crew"});
    CHECK(v.size() == 5);
    CHECK(v.index_of("the") == 2);
    CHECK(v.index_of("crew") == 4);
    CHECK(v.index_of("seat") == 1);
    CHECK(v.index_of("") == 1);
    CHECK(v.word(0) == "");
    CHECK(v.word(1) == "[UNK]");
    CHECK(v.word(3) == "was");
    CHECK(support::message_of<range_error>([&] { v.word(5); }) == "vocabulary: index 5 is outside [0, 5)");
    CHECK_THROWS_AS(v.word(-1), range_error);
    CHECK(vocabulary().size() == 2);
    CHECK(support::contains(support::message_of<argument_error>([] {
                                vocabulary(words{"a", "b", "a"});
                            }),
                            "words 0 and 2 are both 'a'"));
    CHECK(support::contains(support::message_of<argument_error>([] {
                                vocabulary(words{"a", ""});
                            }),
                            "word 1 is empty"));
}

TEST_CASE("frequent words first, equally frequent ones by their bytes") {
    data::word_counter counter;
    for (const char* word : {"b", "z", "b", "a", "\xC3\xA9", "B", "c", "z", "b"}) counter.add(word);
    CHECK(counter.size() == 6);
    CHECK(counter.most_frequent().words() == words{"b", "z", "B", "a", "c", "\xC3\xA9"});
    CHECK(counter.most_frequent(5).words() == words{"b", "z", "B"});
    CHECK(counter.most_frequent(5).size() == 5);
    CHECK(counter.most_frequent(100).size() == 8);
    for (const int size : {-1, 1, 2}) CHECK_THROWS_AS(counter.most_frequent(size), argument_error);
    CHECK(data::word_counter().most_frequent(3).size() == 2);
}

TEST_CASE("a vocabulary's file has one word per line") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "words.txt";
    const vocabulary v(words{"the", "caf\xC3\xA9", "\n", "\r", "\\", "\\n", " ", "a b"});
    v.save(path);
    CHECK(support::read_text(path) == "the\ncaf\xC3\xA9\n\\n\n\\r\n\\\\\n\\\\n\n \na b\n");
    const vocabulary again = vocabulary::load(path);
    CHECK(again.words() == v.words());
    for (std::size_t i = 0; i < v.words().size(); ++i) CHECK(again.index_of(v.words()[i]) == static_cast<int>(i) + 2);
    CHECK(vocabulary::load(folder.write("crlf", std::string("a\r\nb"))).words() == words{"a", "b"});
    CHECK(vocabulary::load(folder.write("bom", std::string("\xEF\xBB\xBF"
                                                           "a\n")))
              .words() == words{"a"});
}

TEST_CASE("malformed files are named with the line") {
    const support::temporary_folder folder;
    const auto error = [&](const std::string& text) {
        const auto path = folder.write("words.txt", text);
        return support::message_of<data_error>([&] { vocabulary::load(path); });
    };
    CHECK(support::contains(error(""), "words.txt': no words"));
    CHECK(support::contains(error("a\n\nb\n"), "words.txt', line 2: no word"));
    CHECK(support::contains(error("a\n\r\n"), "line 2: no word"));
    CHECK(support::contains(error("a\nb\nc\nb\n"), "line 4: 'b' is in line 2 already"));
    CHECK(support::contains(error("a\nx\\t\n"), "line 2: 'x\\t': a backslash"));
    CHECK(support::contains(error("x\\"), "line 1: 'x\\': a backslash"));
    CHECK(support::contains(support::message_of<data_error>([&] { vocabulary::load(folder.path() / "none"); }),
                            "no such file"));
}

} // namespace vocabulary_test
