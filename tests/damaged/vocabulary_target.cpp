#include <damaged/folder.hpp>

#include <tapegraph/data/text/vocabulary.hpp>

#include <vector>

std::vector<std::string> sound_files() {
    return {"the\ncat\nsat\n", "\xEF\xBB\xBFone\r\ntwo\r\n", "a\\nb\n\\\\\n\xC3\xA9"};
}

bool read_damaged(const std::string& bytes) {
    try {
        const auto words = tapegraph::data::vocabulary::load(folder().write("damaged", bytes));
        return words.size() >= tapegraph::data::vocabulary::first_word;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 128; // a word of one letter is a line of two bytes
