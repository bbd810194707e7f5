// needs: unicode
#include <damaged/target.hpp>

#include <tapegraph/data/text/tokenizer_json.hpp>

#include <vector>

std::vector<std::string> sound_files() {
    using namespace tapegraph;
    const std::vector<std::string> texts{"The cat sat on the mat; the CAT!", "a dog & a bird \xC3\x89tude",
                                         "Don't stop"};
    std::vector<std::string> files;
    for (const auto& options :
         {data::tokenizer_options{}, data::tokenizer_options{.num_words = 5, .oov_token = "<OOV>"},
          data::tokenizer_options{.char_level = true}}) {
        data::tokenizer words(options);
        words.fit_on_texts(texts);
        files.push_back(data::to_json(words));
    }
    return files;
}

bool read_damaged(const std::string& bytes) {
    try {
        const auto words = tapegraph::data::tokenizer_from_json(bytes);
        static_cast<void>(words.sequence_to_text(words.text_to_sequence("the cat sat")));
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 64; // words, their counts and maps
