// needs: unicode
#include <tapegraph/data/text/byte_pair_files.hpp>
#include <tapegraph/data/text/byte_pair_training.hpp>
#include <tapegraph/data/text/tokenizer_json.hpp>
#include <tapegraph/data/text/unigram_files.hpp>
#include <tapegraph/data/text/word_piece_files.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

/// Tokens for tokenizer.py. The texts are in a file, each followed by a 0; indices are printed, one line per text.
///
///     peer_tokenizer learn TEXTS VOCAB_SIZE TOKENIZER.json
///     peer_tokenizer encode TEXTS TOKENIZER.json | VOCAB.json MERGES.txt
///     peer_tokenizer decode TEXTS TOKENIZER.json            what becomes of texts, each followed by a 0
///     peer_tokenizer save TEXTS TOKENIZER.json OUT.json     the same tokenizer, as this library writes it
///     peer_tokenizer pieces | unpieces | save_pieces        encode, decode and save of WordPiece
///     peer_tokenizer unigram | ununigram                    encode and decode of Unigram
///     peer_tokenizer fit TEXTS NUM_WORDS WORDS.json         the indices of Keras's tokenizer, too
///     peer_tokenizer sequences TEXTS WORDS.json
///     peer_tokenizer lower TEXTS                            texts in lower case, each followed by a 0

namespace {

using namespace tapegraph;

void print(const std::vector<std::int32_t>& indices) {
    for (const auto index : indices) std::printf("%d ", index);
    std::printf("\n");
}

} // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() < 2) return 2;
    const std::string all = data::detail::text_of_file(words[1]);
    std::vector<std::string> texts;
    for (std::size_t at = 0; at < all.size();) {
        const std::size_t end = all.find('\0', at);
        texts.push_back(all.substr(at, end - at));
        at = end + 1;
    }
    try {
        if (words[0] == "learn") {
            data::save_byte_pair_encoding(words.at(3),
                                          data::learn_byte_pair_encoding(std::span<const std::string>(texts),
                                                                         {.vocab_size = std::atol(words.at(2).c_str()),
                                                                          .special_tokens = {"<|end|>"}}));
        } else if (words[0] == "encode") {
            const auto tokens = words.size() > 3 ? data::load_byte_pair_encoding(words[2], words[3])
                                                 : data::load_byte_pair_encoding(words.at(2));
            for (const auto& text : texts) {
                const auto ids = tokens.encode(text);
                const auto& tables = tokens.tables();
                const bool whole = tables.normalizers.empty() && !tables.add_prefix_space && !tables.characters;
                if (whole && tokens.decode(ids) != text) throw data_error("a text does not come back: " + text);
                print(ids);
            }
        } else if (words[0] == "decode") {
            const auto tokens = data::load_byte_pair_encoding(words.at(2));
            for (const auto& text : texts)
                std::printf("%s%c", data::repaired_utf8(tokens.decode(tokens.encode(text))).c_str(), 0);
        } else if (words[0] == "save") {
            data::save_byte_pair_encoding(words.at(3), data::load_byte_pair_encoding(words.at(2)));
        } else if (words[0] == "pieces") {
            const auto tokens = data::load_word_piece(words.at(2));
            for (const auto& text : texts) print(tokens(text));
        } else if (words[0] == "unpieces") {
            const auto tokens = data::load_word_piece(words.at(2));
            for (const auto& text : texts) std::printf("%s%c", tokens.decode(tokens(text)).c_str(), 0);
        } else if (words[0] == "save_pieces") {
            data::save_word_piece(words.at(3), data::load_word_piece(words.at(2)));
        } else if (words[0] == "unigram") {
            const auto tokens = data::load_unigram(words.at(2));
            for (const auto& text : texts) print(tokens(text));
        } else if (words[0] == "ununigram") {
            const auto tokens = data::load_unigram(words.at(2));
            for (const auto& text : texts)
                std::printf("%s%c", data::repaired_utf8(tokens.decode(tokens(text))).c_str(), 0);
        } else if (words[0] == "fit") {
            data::tokenizer tokens({.num_words = std::atol(words.at(2).c_str()), .oov_token = "<OOV>"});
            tokens.fit_on_texts(std::span<const std::string>(texts));
            data::save_tokenizer(words.at(3), tokens);
            for (const auto& text : texts) print(tokens(text));
        } else if (words[0] == "sequences") {
            const auto tokens = data::load_tokenizer(words.at(2));
            for (const auto& text : texts) print(tokens(text));
        } else {
            for (const auto& text : texts) std::printf("%s%c", data::unicode::lower_case_of(text).c_str(), 0);
        }
    } catch (const tapegraph::error& failure) {
        std::fprintf(stderr, "%s\n", failure.what());
        return 1;
    }
    return 0;
}
