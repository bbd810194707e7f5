// needs: unicode
#include <damaged/target.hpp>

#include <tapegraph/data/text/word_piece_files.hpp>

#include <string>
#include <vector>

/// A tokenizer.json, or a vocab.txt, which does not begin with a brace.

std::vector<std::string> sound_files() {
    using namespace tapegraph;
    const std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nlow\n##est\n1\n##23\n.\n";
    return {vocabulary, data::to_tokenizer_json(data::word_piece_from_vocabulary(vocabulary)),
            data::to_tokenizer_json(
                data::word_piece_from_vocabulary(vocabulary, {.lower_case = false, .longest_word = 3}))};
}

bool read_damaged(const std::string& bytes) {
    using namespace tapegraph;
    try {
        const auto words =
            bytes.starts_with("{") ? data::word_piece_from_json(bytes) : data::word_piece_from_vocabulary(bytes);
        static_cast<void>(words.decode(words.encode("lowest [MASK] L\xC3\xB6west 123.")));
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 128; // tokens and maps of them
