#pragma once

#include <tapegraph/data/text/tokenizer_file.hpp>
#include <tapegraph/data/text/word_piece.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/json_reader.hpp>
#include <tapegraph/formats/path.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Reads and writes WordPiece tokens: Hugging Face's tokenizer.json, BERT's vocab.txt.

namespace tapegraph::data {

namespace detail {

/// The supported content of a tokenizer.json.
class word_piece_file {
public:
    word_piece_file(std::string_view text, const std::string& origin) : json_(text, origin, 64), origin_(origin) {
        options_.clean_text = options_.separate_chinese = options_.lower_case = false; // without a normalizer
    }

    word_piece read() {
        bool splits = false;
        added_ = read_tokenizer_file(json_, origin_, [&](const std::string& name) {
            if (name == "model") {
                read_model();
            } else if (name == "normalizer") {
                read_normalizer();
            } else if (name == "pre_tokenizer") {
                splits = true;
                if (const std::string type = read_type(); type != "BertPreTokenizer")
                    json_.refuse("the pre_tokenizer " + io::quoted_text(type) + " is not supported");
            } else {
                return false;
            }
            return true;
        });
        if (!splits) throw data_error(origin_ + ": no pre_tokenizer, BertPreTokenizer is supported");
        return word_piece(std::move(tokens_), std::move(options_), std::move(added_));
    }

private:
    std::string read_type() {
        std::string type;
        json_.begin_object();
        for (std::string name; json_.next_name(name);)
            if (name == "type")
                type = json_.string();
            else
                json_.skip();
        return type;
    }
    void read_normalizer() {
        json_.begin_object();
        for (std::string name; json_.next_name(name);) {
            if (json_.pass_null()) continue;
            if (name == "type") {
                if (const std::string type = json_.string(); type != "BertNormalizer")
                    json_.refuse("the normalizer " + io::quoted_text(type) + " is not supported");
            } else if (name == "clean_text") {
                options_.clean_text = json_.boolean();
            } else if (name == "handle_chinese_chars") {
                options_.separate_chinese = json_.boolean();
            } else if (name == "strip_accents") {
                options_.strip_accents = json_.boolean();
            } else if (name == "lowercase") {
                options_.lower_case = json_.boolean();
            } else {
                json_.skip();
            }
        }
    }
    void read_model() {
        std::vector<std::pair<std::string, std::int64_t>> vocabulary;
        json_.begin_object();
        for (std::string name; json_.next_name(name);) {
            if (name == "type") {
                expect_model(json_, "WordPiece");
            } else if (name == "unk_token") {
                options_.unknown = json_.string();
            } else if (name == "continuing_subword_prefix") {
                options_.prefix = json_.string();
            } else if (name == "max_input_chars_per_word") {
                options_.longest_word = json_.integer();
            } else if (name == "vocab") {
                json_.begin_object();
                for (std::string token; json_.next_name(token);) {
                    const std::int64_t id = json_.integer();
                    vocabulary.emplace_back(std::move(token), id);
                }
            } else {
                json_.skip();
            }
        }
        const auto limit = static_cast<std::int64_t>(2 * vocabulary.size() + 1000);
        for (auto& [token, id] : vocabulary) {
            if (id < 0 || id >= limit)
                json_.refuse("the id of " + io::quoted_text(token) + " is " + std::to_string(id));
            const auto at = static_cast<std::size_t>(id);
            if (at >= tokens_.size()) tokens_.resize(at + 1);
            if (!tokens_[at].empty()) json_.refuse("two tokens have the id " + std::to_string(id));
            tokens_[at] = std::move(token);
        }
    }

    io::json_reader json_;
    std::string origin_;
    std::vector<std::string> tokens_;
    word_piece_options options_;
    std::vector<added_token> added_;
};

} // namespace detail

/// Parses the text of a tokenizer.json whose model is WordPiece after a BertPreTokenizer, with
/// BertNormalizer or none. Post-processors are not applied: tokens are those of `encode(text,
/// add_special_tokens=False)`. Throws data_error for what would change tokens and is not supported.
inline word_piece word_piece_from_json(std::string_view tokenizer_json, const std::string& origin = "tokenizer.json") {
    return detail::made_of_file(origin, [&] { return detail::word_piece_file(tokenizer_json, origin).read(); });
}

/// Parses BERT's vocab.txt, a token a line. Those in brackets are special: "[CLS]".
inline word_piece word_piece_from_vocabulary(std::string_view text, const word_piece_options& options = {},
                                             const std::string& origin = "vocab.txt") {
    check_utf8(text, origin);
    std::vector<std::string> tokens;
    std::vector<added_token> added;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        for (const std::string_view special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
            if (line == special) added.push_back({std::string(line), static_cast<std::int32_t>(tokens.size())});
        tokens.emplace_back(line);
    }
    return detail::made_of_file(origin, [&] { return word_piece(std::move(tokens), options, std::move(added)); });
}

/// Reads a tokenizer.json or, by its extension, a vocab.txt, whose text was in lower case unless
/// `options` say otherwise. Throws data_error naming the file.
inline word_piece load_word_piece(const files::path& path, const word_piece_options& options = {}) {
    const std::string text = detail::text_of_file(path);
    const std::string origin = io::detail::quoted(path);
    return path.native().ends_with(".txt") ? word_piece_from_vocabulary(text, options, origin)
                                           : word_piece_from_json(text, origin);
}

/// A tokenizer.json that Hugging Face's tokenizers reads.
inline std::string to_tokenizer_json(const word_piece& from) {
    using detail::json_truth;
    const word_piece_options& o = from.options();
    detail::json_object_text vocabulary, model, normalizer, whole;
    for (std::size_t id = 0; id < from.tokens().size(); ++id) {
        const std::string& token = from.tokens()[id];
        if (!token.empty()) vocabulary.add(token, static_cast<std::int64_t>(id));
    }
    model.add("type", "\"WordPiece\"");
    model.add("unk_token", io::json_string(o.unknown));
    model.add("continuing_subword_prefix", io::json_string(o.prefix));
    model.add("max_input_chars_per_word", o.longest_word);
    model.add("vocab", vocabulary.text());
    normalizer.add("type", "\"BertNormalizer\"");
    normalizer.add("clean_text", json_truth(o.clean_text));
    normalizer.add("handle_chinese_chars", json_truth(o.separate_chinese));
    normalizer.add("strip_accents", o.strip_accents ? json_truth(*o.strip_accents) : "null");
    normalizer.add("lowercase", json_truth(o.lower_case));
    whole.add("version", "\"1.0\"");
    whole.add("truncation", "null");
    whole.add("padding", "null");
    whole.add("added_tokens", detail::added_tokens_text(from.added()));
    whole.add("normalizer", normalizer.text());
    whole.add("pre_tokenizer", R"({"type": "BertPreTokenizer"})");
    whole.add("post_processor", "null");
    whole.add("decoder", R"({"type": "WordPiece", "prefix": )" + io::json_string(o.prefix) + R"(, "cleanup": true})");
    whole.add("model", model.text());
    return whole.text();
}

/// Writes a tokenizer.json; an older file is only replaced by a complete new one. Throws data_error.
inline void save_word_piece(const files::path& tokenizer_json, const word_piece& from) {
    io::atomic_file out(tokenizer_json);
    out.write(to_tokenizer_json(from));
    out.commit();
}

} // namespace tapegraph::data
